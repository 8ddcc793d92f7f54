/* SPDX-License-Identifier: Apache-2.0 */
/* body_test: checks the verdict of a policy on a request with a body. */
#ifndef VETHGUARD_TESTS_UNIT_POLICY_DECIDE_BODY_TEST_H
#define VETHGUARD_TESTS_UNIT_POLICY_DECIDE_BODY_TEST_H

#include "../policy_test.h"
#include "vethguard/policy/body.h"

#define ALLOW(conditions) "vethguard: 1\nallow: [{to: a.example, " conditions "}]\n"
#define DENY(conditions) \
	"vethguard: 1\nallow: [{to: a.example}]\ndeny: [{to: a.example, " conditions "}]\n"
#define JSON_TYPE "Content-Type: application/json\n"

struct body_test {
	const char *policy, *method, *path, *query;
	const char *lines; /* header fields, each "Name: value\n" */
	const char *text;  /* NULL: no body; a ' stands for a " */
};

static inline bool body_test_line(const void *context, size_t *at, struct policy_field *out)
{
	const char *line = (const char *)context + *at, *end = strchr(line, '\n');
	const char *colon = strchr(line, ':');

	if (!end || !colon)
		return false;
	out->name = slice_of(line, (size_t)(colon - line));
	out->value = slice_trim(slice_of(colon + 1, (size_t)(end - colon) - 1));
	*at += (size_t)(end - line) + 1;
	return true;
}

static inline char *body_test_text(const char *text)
{
	char *copy = strdup(text);

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

static inline struct policy_decision body_test_decide(const struct body_test *b)
{
	const struct policy_fields fields = {b->lines ? b->lines : "", body_test_line};
	struct policy_body body = {.state = POLICY_BODY_UNREAD};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = slice_from_string(b->method ? b->method : "POST"),
	        .path = slice_from_string(b->path ? b->path : "/x"),
	        .query = slice_from_string(b->query),
	        .fields = &fields};
	char *text = b->text ? body_test_text(b->text) : NULL;
	struct policy_decision d;
	struct test_policy t;

	test_load(&t, b->policy, false);
	if (text) {
		policy_body_read(&body, &fields, slice_from_string(text));
		request.body = &body;
	}
	policy_decide(&t.policy, &request, &d);
	assert_false(d.needs_body);
	policy_body_fini(&body);
	free(text);
	test_unload(&t);
	return d;
}

static inline void body_test_check(const struct body_test *b, bool allowed)
{
	struct policy_decision d = body_test_decide(b);

	if ((d.verdict == POLICY_ALLOW) != allowed)
		fail_msg("%s\n%s %s?%s\n%s%s: verdict %d, reason %d", b->policy,
		        b->method ? b->method : "POST", b->path ? b->path : "/x",
		        b->query ? b->query : "", b->lines ? b->lines : "", b->text ? b->text : "",
		        (int)d.verdict, (int)d.reason);
}

/* Checks each text, up to a NULL. */
static inline void body_test_all(struct body_test b, const char *const texts[], bool allowed)
{
	for (size_t i = 0; texts[i]; i++) {
		b.text = texts[i];
		body_test_check(&b, allowed);
	}
}

#endif
