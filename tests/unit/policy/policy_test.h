/* SPDX-License-Identifier: Apache-2.0 */
/* policy_test: a policy from a text in memory, and one question in one line. */
#ifndef VETHGUARD_TESTS_UNIT_POLICY_POLICY_TEST_H
#define VETHGUARD_TESTS_UNIT_POLICY_POLICY_TEST_H

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

/* A request, and what it borrows from. */
struct test_question {
	struct policy_request request;
	struct url url;
	char path[POLICY_PATH_MAX];
};

/* METHOD URL as `policy explain` reads them; CONNECT is about the connection. */
static inline const struct policy_request *test_question(
        struct test_question *q, const char *method, const char *url)
{
	struct policy_request *r = &q->request;
	size_t n;

	if (!url_parse(slice_from_string(url), &q->url))
		fail_msg("not a URL: %s", url);
	*r = (struct policy_request){.scheme = q->url.scheme,
	        .host = slice_of(q->url.authority.host, q->url.authority.host_n),
	        .address = q->url.authority.address,
	        .port = q->url.authority.port};
	if (strcmp(method, "CONNECT") != 0) {
		r->method = slice_from_string(method);
		r->path = q->url.path;
		if (url_canonical_path(r->path, q->path, sizeof(q->path), &n))
			r->path = slice_of(q->path, n);
	}
	return r;
}

static inline struct policy_decision test_ask(
        const struct policy *policy, const char *method, const char *url)
{
	struct policy_decision decision;
	struct test_question q;

	policy_decide(policy, test_question(&q, method, url), &decision);
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
