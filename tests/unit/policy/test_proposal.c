/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that a sandbox proposes: what is taken, what is refused, and that the policy written from
 * them allows what was proposed and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy_test.h"
#include "vethguard/base/buf.h"
#include "vethguard/policy/proposal.h"

#define GOOD(to, methods, paths, reason) \
	"{\"to\": " to ", \"methods\": " methods ", \"paths\": " paths ", \"reason\": " reason "}"
#define TO "\"https://api.example.com\""
#define METHODS "[\"GET\", \"HEAD\"]"
#define PATHS "[\"/v1/**\"]"
#define REASON "\"the task needs it\""

static int take(const char *json, struct policy_proposal *out)
{
	const char *fault = NULL;
	int rc = policy_proposal_read(out, slice_from_string(json), &fault);

	assert_true(rc == 0 || (rc == -EBADMSG && fault && *fault));
	return rc;
}

static void test_what_is_taken(void **state)
{
	static const char *const rows[] = {
	        GOOD(TO, METHODS, PATHS, REASON),
	        GOOD("\"http://a.b\"", "[\"GET\"]", "[\"/\"]", "\"\xc3\xa4\""),
	        GOOD("\"https://*.example.com:8443\"", "[\"X-Y\"]",
	                "[\"/a/*\", \"/%2F\", \"/~a;b=c,d@e!&'()+:\"]", REASON),
	        GOOD("\"https:\\/\\/api.example.com\"", METHODS, PATHS, REASON),
	};
	struct policy_proposal p, again;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(take(rows[i], &p), 0);
		assert_true(policy_proposal_take(&again, slice_from_string(p.to),
		        slice_from_string(p.methods), slice_from_string(p.paths),
		        slice_from_string(p.reason)));
		assert_memory_equal(&p, &again, sizeof(p));
	}
	take(rows[0], &p);
	assert_string_equal(p.to, "https://api.example.com");
	assert_string_equal(p.methods, "GET HEAD");
	assert_string_equal(p.paths, "/v1/**");
}

static void test_what_is_refused(void **state)
{
	static const char *const rows[] = {
	        "",
	        "null",
	        "[]",
	        "{}",
	        "\"x\"",
	        "{\"to\": " TO "}",
	        GOOD(TO, METHODS, PATHS, REASON) "x",
	        "{\"to\": " TO ", \"methods\": " METHODS ", \"paths\": " PATHS ", \"why\": " REASON
	        "}",
	        "{\"more\": 1, \"to\": " TO ", \"methods\": " METHODS ", \"paths\": " PATHS
	        ", \"reason\": " REASON "}",
	        "{\"to\": " TO ", \"to\": " TO ", \"methods\": " METHODS ", \"paths\": " PATHS "}",
	        /* destinations */
	        GOOD("\"api.example.com\"", METHODS, PATHS, REASON),
	        GOOD("\"tcp://api.example.com:22\"", METHODS, PATHS, REASON),
	        GOOD("\"udp://api.example.com:53\"", METHODS, PATHS, REASON),
	        GOOD("\"https://api.example.com/\"", METHODS, PATHS, REASON),
	        GOOD("\"https://API.example.com\"", METHODS, PATHS, REASON),
	        GOOD("\"https://api.example.com.\"", METHODS, PATHS, REASON),
	        GOOD("\"https://api.example.com:0\"", METHODS, PATHS, REASON),
	        GOOD("\"https://api.example.com:65536\"", METHODS, PATHS, REASON),
	        GOOD("\"https://api.example.com:\"", METHODS, PATHS, REASON),
	        GOOD("\"https://a.example:1:2\"", METHODS, PATHS, REASON),
	        GOOD("\"https://u@api.example.com\"", METHODS, PATHS, REASON),
	        GOOD("\"https://10.0.0.1\"", METHODS, PATHS, REASON),
	        GOOD("\"https://[fd00::1]\"", METHODS, PATHS, REASON),
	        GOOD("\"https://[public]\"", METHODS, PATHS, REASON),
	        GOOD("\"https://169.254.169.254\"", METHODS, PATHS, REASON),
	        GOOD("\"https://0x7f.1\"", METHODS, PATHS, REASON),
	        GOOD("\"https://localhost\"", METHODS, PATHS, REASON),
	        GOOD("\"https://*\"", METHODS, PATHS, REASON),
	        GOOD("\"https://*.com\"", METHODS, PATHS, REASON),
	        GOOD("\"https://*.*.example.com\"", METHODS, PATHS, REASON),
	        GOOD("\"https://a.*.example.com\"", METHODS, PATHS, REASON),
	        GOOD("\"https://${x}.example.com\"", METHODS, PATHS, REASON),
	        GOOD("\"group:all\"", METHODS, PATHS, REASON),
	        GOOD("\"https://vethguard.internal\"", METHODS, PATHS, REASON),
	        GOOD("\"https://two.sandbox.internal\"", METHODS, PATHS, REASON),
	        GOOD("\"https://*.sandbox.internal\"", METHODS, PATHS, REASON),
	        GOOD("7", METHODS, PATHS, REASON),
	        GOOD("[" TO "]", METHODS, PATHS, REASON),
	        /* methods */
	        GOOD(TO, "[]", PATHS, REASON),
	        GOOD(TO, "\"GET\"", PATHS, REASON),
	        GOOD(TO, "[\"get\"]", PATHS, REASON),
	        GOOD(TO, "[\"GET\", 1]", PATHS, REASON),
	        GOOD(TO, "[\"*\"]", PATHS, REASON),
	        GOOD(TO, "[\"CONNECT\"]", PATHS, REASON),
	        GOOD(TO, "[\"TRACE\"]", PATHS, REASON),
	        GOOD(TO, "[\"PRI\"]", PATHS, REASON),
	        GOOD(TO, "[\"\"]", PATHS, REASON),
	        GOOD(TO, "[\"GET HEAD\"]", PATHS, REASON),
	        GOOD(TO, "[\"A\",\"B\",\"C\",\"D\",\"E\",\"F\",\"G\",\"H\",\"I\"]", PATHS, REASON),
	        /* paths */
	        GOOD(TO, METHODS, "[]", REASON),
	        GOOD(TO, METHODS, "\"/\"", REASON),
	        GOOD(TO, METHODS, "[\"\"]", REASON),
	        GOOD(TO, METHODS, "[\"v1\"]", REASON),
	        GOOD(TO, METHODS, "[\"/a b\"]", REASON),
	        GOOD(TO, METHODS, "[\"/a\\\"\"]", REASON),
	        GOOD(TO, METHODS, "[\"/a\\\\b\"]", REASON),
	        GOOD(TO, METHODS, "[\"/a?b\"]", REASON),
	        GOOD(TO, METHODS, "[\"/a#b\"]", REASON),
	        GOOD(TO, METHODS, "[\"/${a}\"]", REASON),
	        GOOD(TO, METHODS, "[\"/\\n\"]", REASON),
	        GOOD(TO, METHODS, "[\"/\xc3\xa4\"]", REASON),
	        GOOD(TO, METHODS, "[[\"/\"]]", REASON),
	        GOOD(TO, METHODS, "[\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\"]",
	                REASON),
	        /* reasons */
	        GOOD(TO, METHODS, PATHS, "\"\""),
	        GOOD(TO, METHODS, PATHS, "null"),
	        GOOD(TO, METHODS, PATHS, "\"a\\nb\""),
	        GOOD(TO, METHODS, PATHS, "\"\\u001b[2J\""),
	        GOOD(TO, METHODS, PATHS, "\"\\u007f\""),
	        GOOD(TO, METHODS, PATHS, "\"\\u0000\""),
	        GOOD(TO, METHODS, PATHS, "\"\xff\""),
	};
	struct policy_proposal p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (take(rows[i], &p) == 0)
			fail_msg("taken: %s", rows[i]);
}

/* Fills text with n times c between before and after. */
static const char *filled(char *text, const char *before, size_t n, const char *after)
{
	size_t at = strlen(before);

	memcpy(text, before, at);
	memset(text + at, 'a', n);
	strcpy(text + at + n, after);
	return text;
}

static void test_bounds(void **state)
{
	static char text[PROPOSAL_BYTES_MAX + 64];
	const char *head = "{\"to\": " TO ", \"methods\": " METHODS ", \"reason\": " REASON
	                   ", \"paths\": [\"/";
	const char *reason =
	        "{\"to\": " TO ", \"methods\": " METHODS ", \"paths\": " PATHS ", \"reason\": \"";
	struct policy_proposal p;

	(void)state;
	assert_int_equal(take(filled(text, head, PROPOSAL_PATH_MAX - 1, "\"]}"), &p), 0);
	assert_int_equal(take(filled(text, head, PROPOSAL_PATH_MAX, "\"]}"), &p), -EBADMSG);
	assert_int_equal(take(filled(text, reason, PROPOSAL_REASON_MAX, "\"}"), &p), 0);
	assert_int_equal(take(filled(text, reason, PROPOSAL_REASON_MAX + 1, "\"}"), &p), -EBADMSG);
	filled(text, GOOD(TO, METHODS, PATHS, REASON), 0, "");
	memset(text + strlen(text), ' ', sizeof(text) - strlen(text));
	assert_int_equal(
	        policy_proposal_read(&p, slice_of(text, PROPOSAL_BYTES_MAX), &(const char *){NULL}),
	        0);
	assert_int_equal(policy_proposal_read(
	                         &p, slice_of(text, PROPOSAL_BYTES_MAX + 1), &(const char *){NULL}),
	        -EBADMSG);
}

/* Another process may send what no JSON would give. */
static void test_words_of_another_process(void **state)
{
	struct policy_proposal p;
	const struct slice to = SLICE("https://a.example"), get = SLICE("GET"), path = SLICE("/"),
	                   reason = SLICE("r");

	(void)state;
	assert_true(policy_proposal_take(&p, to, get, path, reason));
	assert_false(policy_proposal_take(&p, to, SLICE(""), path, reason));
	assert_false(policy_proposal_take(&p, to, SLICE("GET "), path, reason));
	assert_false(policy_proposal_take(&p, to, SLICE(" GET"), path, reason));
	assert_false(policy_proposal_take(&p, to, SLICE("A B C D E F G H I"), path, reason));
	assert_false(policy_proposal_take(&p, to, get, SLICE("/ "), reason));
	assert_false(policy_proposal_take(&p, to, get, SLICE("/\0/"), reason));
	assert_false(policy_proposal_take(&p, to, get, path, SLICE("")));
	assert_false(policy_proposal_take(&p, SLICE(""), get, path, reason));
}

static void test_the_policy_it_makes(void **state)
{
	static const struct {
		const char *method, *url;
		bool allowed;
	} rows[] = {
	        {"GET", "https://api.example.com/v1/x", true},
	        {"HEAD", "https://api.example.com/v1/x/y", true},
	        {"POST", "https://api.example.com/v1/x", false},
	        {"GET", "https://api.example.com/v2", false},
	        {"GET", "http://api.example.com/v1/x", false},
	        {"GET", "https://x.api.example.com/v1/x", false},
	        {"GET", "https://api.example.com:8443/v1/x", false},
	        {"CONNECT", "tcp://api.example.com:443", false},
	};
	struct policy_proposal p;
	struct test_policy t;
	struct buf text;

	(void)state;
	assert_int_equal(take(GOOD(TO, METHODS, PATHS, REASON), &p), 0);
	buf_init(&text, 4096);
	assert_int_equal(policy_proposal_write(&p, 0xabc, &text), 0);
	buf_append(&text, "", 1);
	test_load(&t, (const char *)buf_bytes(&text), false);
	assert_true(
	        slice_equals(policy_rule_name(&t.policy, 0), SLICE("proposal-0000000000000abc")));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(test_ask(&t.policy, rows[i].method, rows[i].url).verdict,
		        rows[i].allowed ? POLICY_ALLOW : POLICY_DENY);
	test_unload(&t);
	buf_fini(&text);
}

/* Deny rules of the policy come before a rule that is loaded beside it. */
static void test_beside_a_policy(void **state)
{
	static const char main_text[] =
	        "vethguard: 1\nallow:\n  - {name: a, to: a.example}\n"
	        "deny:\n  - {name: no, to: api.example.com, paths: [/v1/secret]}\n";
	static const char *const bad[] = {"", "x", "vethguard: 1\nmode: observe\n",
	        "vethguard: 1\ninclude: /etc/passwd\n",
	        "vethguard: 1\nallow: [{name: a, to: b.c}]\n"};
	struct policy_reader reader = {(void *)(uintptr_t)main_text, test_read, NULL};
	struct policy_more more = {.name = "more"};
	struct policy_load_options options = {.more = &more, .more_count = 1};
	struct diag_list diags = {.count = 0};
	struct policy_proposal p;
	struct policy policy;
	uint8_t *image;
	struct buf text;
	size_t size;

	(void)state;
	take(GOOD(TO, METHODS, PATHS, REASON), &p);
	buf_init(&text, 4096);
	policy_proposal_write(&p, 1, &text);
	more.text = buf_slice(&text);
	assert_int_equal(policy_load(&reader, "/test.yaml", &options, &image, &size, &diags), 0);
	assert_int_equal(policy_open(&policy, image, size), 0);
	assert_int_equal(
	        test_ask(&policy, "GET", "https://api.example.com/v1/x").verdict, POLICY_ALLOW);
	assert_int_equal(
	        test_ask(&policy, "GET", "https://api.example.com/v1/secret").verdict, POLICY_DENY);
	assert_int_equal(test_ask(&policy, "GET", "https://a.example/").verdict, POLICY_ALLOW);
	free(image);
	buf_fini(&text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		more.text = slice_from_string(bad[i]);
		assert_int_equal(
		        policy_load(&reader, "/test.yaml", &options, &image, &size, &diags),
		        -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_what_is_taken),
	        cmocka_unit_test(test_what_is_refused),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_words_of_another_process),
	        cmocka_unit_test(test_the_policy_it_makes),
	        cmocka_unit_test(test_beside_a_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
