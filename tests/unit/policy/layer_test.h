/* SPDX-License-Identifier: Apache-2.0 */
/* layer_test: a policy and a floor from texts in memory. */
#ifndef VETHGUARD_TESTS_UNIT_POLICY_LAYER_TEST_H
#define VETHGUARD_TESTS_UNIT_POLICY_LAYER_TEST_H

#include "policy_test.h"

struct layer_texts {
	const char *policy, *floor; /* floor NULL: the file does not exist */
};

static inline int layer_read(void *context, const char *path, char **text, size_t *n)
{
	const struct layer_texts *texts = context;
	const char *found = strcmp(path, "/test.yaml") == 0    ? texts->policy
	                    : strcmp(path, "/floor.yaml") == 0 ? texts->floor
	                                                       : NULL;

	if (!found)
		return -ENOENT;
	*text = strdup(found);
	*n = strlen(found);
	return *text ? 0 : -ENOMEM;
}

/* Returns what policy_load() returns; a policy that loaded is open. */
static inline int layer_try(
        struct test_policy *t, const char *policy, const char *floor, bool observe)
{
	struct layer_texts texts = {policy, floor};
	struct policy_reader reader = {&texts, layer_read, NULL};
	struct policy_load_options options = {.observe = observe, .floor = "/floor.yaml"};
	int rc;

	memset(t, 0, sizeof(*t));
	rc = policy_load(&reader, "/test.yaml", &options, &t->image, &t->size, &t->diags);
	return rc ? rc : policy_open(&t->policy, t->image, t->size);
}

static inline void layer_load(
        struct test_policy *t, const char *policy, const char *floor, bool observe)
{
	if (layer_try(t, policy, floor, observe) != 0) {
		diag_print(&t->diags, stderr);
		fail_msg("the policy does not load");
	}
}

#endif
