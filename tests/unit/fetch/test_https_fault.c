/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence about an answer without success: the service's reason, and nothing that was sent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "fetch/https_fault.h"

#define SECRET "s3cr3t-value-of-a-client"

struct row {
	long status;
	const char *text; /* the answer */
	const char *says;
	bool throttled;
};

static const struct row rows[] = {
        {400, "{\"error\":\"invalid_grant\"}", "it answered 400: invalid_grant", false},
        {400, "{\"error\":\"x\",\"error_description\":\"the token is old\"}",
                "it answered 400: the token is old", false},
        {403, "{\"errors\":[\"permission denied\"]}", "it answered 403: permission denied", false},
        {404, "{\"message\":\"Not Found\"}", "it answered 404: Not Found", false},
        {403, "{\"error\":{\"code\":7,\"message\":\"denied\"}}", "it answered 403: denied", false},
        {400, "{\"__type\":\"com.amazonaws#ThrottlingException\",\"message\":\"slow\"}",
                "it answered 400: slow", true},
        {400, "<R><Error><Code>Throttling</Code><Message>Rate exceeded</Message></Error></R>",
                "it answered 400: Rate exceeded", true},
        {400, "<R><Error><Code>AccessDenied</Code><Message>no</Message></Error></R>",
                "it answered 400: no", false},
        {429, "", "it answered 429", true},
        {503, "nothing", "it answered 503", true},
        {302, "",
                "it answered 302, a redirect, and none is followed: name the URL that it leads to",
                false},
        {200, "hello", "what it answered is not JSON", false},
        /* other members are not shown, and no controls */
        {400, "{\"debug\":\"deep\"}", "it answered 400", false},
        {400, "{\"error\":\"a\\u000a\\u001b[2Jb\\\\c\"}", "it answered 400: a??[2Jb?c", false},
        /* what was sent: a secret, 12 bytes of it or more, a field, the body */
        {400, "{\"error\":\"not " SECRET ", please\"}", "it answered 400: not ***, please", false},
        {400, "{\"error\":\"ends in of-a-client\"}", "it answered 400: ends in of-a-client", false},
        {400, "{\"error\":\"ends in e-of-a-client\"}", "it answered 400: ends in ***", false},
        {400, "{\"error\":\"bad Authorization: Bearer abcdef\"}", "it answered 400: bad ***",
                false},
        {400, "{\"error\":\"bad grant=password&x=1\"}", "it answered 400: bad ***", false},
        {400, "{\"error\":\"short PIN7\"}", "it answered 400: short ***", false},
};

static void test_words(void **state)
{
	static const char *const fields[] = {"Authorization: Bearer abcdef", NULL};
	const struct slice secrets[] = {SLICE(SECRET), SLICE("PIN7")};
	const struct https_call call = {
	        .method = "POST", .fields = fields, .body = SLICE("grant=password&x=1")};
	const struct https_sent sent = {secrets, 2, &call};
	char fault[HTTPS_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *json = json_loads(rows[i].text, 0, NULL);
		const struct https_answer answer = {
		        rows[i].status, slice_from_string(rows[i].text), json, false};

		https_fault_explain(&answer, &sent, fault);
		if (strcmp(fault, rows[i].says) != 0)
			fail_msg("\"%s\" instead of \"%s\"", fault, rows[i].says);
		assert_int_equal(https_fault_is_throttled(&answer), rows[i].throttled);
		json_decref(json);
	}
}

static void test_bounds(void **state)
{
	const struct https_call call = {.method = "GET"};
	const struct https_sent sent = {NULL, 0, &call};
	char text[4096], fault[HTTPS_TEXT_MAX];
	struct https_answer answer = {.status = 500, .has_retry_after = true};
	json_t *json;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	json = json_pack("{s:s}", "error", text);
	assert_non_null(json);
	answer.json = json;
	https_fault_explain(&answer, &sent, fault);
	assert_true(strlen(fault) < 330);
	assert_non_null(strstr(fault, "xxx (and asks to wait before the next request)"));
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_words),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
