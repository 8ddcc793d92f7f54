/* SPDX-License-Identifier: Apache-2.0 */
/* policy_test: a policy from a text in memory, and one question in one line. */
#ifndef POLICY_TEST_H
#define POLICY_TEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/policy/load.h"
#include "vethguard/policy/url.h"

struct test_policy {
	struct policy policy;
	uint8_t *image;
	size_t size;
	struct diag_list diags;
};

static inline int test_read(void *context, const char *path, char **text, size_t *n)
{
	if (strcmp(path, "/test.yaml") != 0)
		return -ENOENT;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

/* Loads text; fails the test where it does not load. */
static inline void test_load(struct test_policy *t, const char *text, bool observe)
{
	struct policy_reader reader = {(void *)(uintptr_t)text, test_read, NULL};
	struct policy_load_options options = {.observe = observe};

	memset(t, 0, sizeof(*t));
	if (policy_load(&reader, "/test.yaml", &options, &t->image, &t->size, &t->diags) != 0) {
		diag_print(&t->diags, stderr);
		fail_msg("the policy does not load");
	}
	assert_int_equal(policy_open(&t->policy, t->image, t->size), 0);
}

static inline void test_unload(struct test_policy *t)
{
	free(t->image);
}

/* Asks about METHOD URL as `policy explain` does; CONNECT judges the connection. */
static inline struct policy_decision test_ask(
        const struct policy *policy, const char *method, const char *url)
{
	struct policy_request request = {0};
	struct policy_decision decision;
	char path[POLICY_PATH_MAX];
	struct url u;
	size_t n;

	if (!url_parse(slice_from_string(url), &u))
		fail_msg("not a URL: %s", url);
	request.scheme = u.scheme;
	request.host = slice_of(u.authority.host, u.authority.host_n);
	request.address = u.authority.address;
	request.port = u.authority.port;
	if (strcmp(method, "CONNECT") != 0) {
		request.method = slice_from_string(method);
		request.path = u.path;
		if (url_canonical_path(u.path, path, sizeof(path), &n))
			request.path = slice_of(path, n);
	}
	policy_decide(policy, &request, &decision);
	return decision;
}

static inline enum policy_tls test_ask_tls(
        const struct policy *policy, const char *host, uint16_t port)
{
	struct policy_request request = {.host = slice_from_string(host), .port = port};
	struct policy_decision decision;

	return policy_decide_tls(policy, &request, &decision);
}

#endif
