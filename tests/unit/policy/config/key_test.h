/* SPDX-License-Identifier: Apache-2.0 */
/* key_test: a configuration of one key, from memory. */
#ifndef VETHGUARD_TESTS_POLICY_CONFIG_KEY_TEST_H
#define VETHGUARD_TESTS_POLICY_CONFIG_KEY_TEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/policy/config.h"

static struct diag_list diags;

static inline int key_read(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

/* Loads "KEY: VALUE" as /etc/vethguard/config.yaml. What is wrong is in diags. */
static inline int key_load(const char *key, const char *value, struct config *config)
{
	static char text[65536];
	struct policy_reader reader = {text, key_read, NULL};

	snprintf(text, sizeof(text), "%s: %s\n", key, value);
	memset(&diags, 0, sizeof(diags));
	config_init(config);
	return config_load(&reader, "/etc/vethguard/config.yaml", config, &diags);
}

#endif
