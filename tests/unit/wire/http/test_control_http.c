/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of the control API's messages: what is accepted, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/wire/control_http.h"

static struct control_head head;

static int request(const char *text)
{
	/* In memory of exactly its size: one byte read beyond is a report. */
	size_t n = strlen(text);
	char *copy = malloc(n ? n : 1);
	int result;

	memcpy(copy, text, n);
	result = control_head_request(slice_of(copy, n), &head);
	head.method = head.target = head.content_type = (struct slice){0};
	free(copy);
	return result;
}

static void test_whole(void **state)
{
	static const char text[] = "POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\ncontent-type: \t "
	                           "application/json \r\nContent-Length: 12\r\n\r\n{";

	(void)state;
	assert_int_equal(control_head_request(SLICE(text), &head), CONTROL_HEAD_WHOLE);
	assert_int_equal(head.size, sizeof(text) - 2);
	assert_true(slice_equals(head.method, SLICE("POST")));
	assert_true(slice_equals(head.target, SLICE("/v1/sandboxes")));
	assert_true(slice_equals(head.content_type, SLICE("application/json")));
	assert_true(head.has_length && head.length == 12 && !head.closes && !head.expects_continue);
}

static void test_connection(void **state)
{
	(void)state;
	assert_int_equal(request("GET / HTTP/1.0\r\n\r\n"), CONTROL_HEAD_WHOLE);
	assert_true(head.closes);
	assert_int_equal(request("GET / HTTP/1.1\r\nHost:\r\nConnection: Close\r\n\r\n"),
	        CONTROL_HEAD_WHOLE);
	assert_true(head.closes);
	assert_int_equal(request("GET / HTTP/1.1\r\nHost:\r\nExpect: 100-Continue\r\n\r\n"),
	        CONTROL_HEAD_WHOLE);
	assert_true(head.expects_continue && !head.closes);
}

/* RFC 9112 section 3.2: HTTP/1.1 has one host, which may be empty; HTTP/1.0 need not have one. */
static void test_host(void **state)
{
	static const char *const good[] = {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	        "GET / HTTP/1.1\r\nhost:\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: api.moby.localhost\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: %2Frun%2Fvethguard%2Fcontrol.sock\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(request(good[i]), CONTROL_HEAD_WHOLE);
		assert_true(head.has_host);
	}
	assert_int_equal(request("GET / HTTP/1.0\r\n\r\n"), CONTROL_HEAD_WHOLE);
	assert_false(head.has_host);
}

static void test_every_prefix_waits(void **state)
{
	static const char text[] = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++)
		assert_int_equal(control_head_request(slice_of(text, n), &head), CONTROL_HEAD_MORE);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
	        {"\r\n\r\n", 400},
	        {"GET\r\n\r\n", 400},
	        {"GET /\r\n\r\n", 400},
	        {" GET / HTTP/1.1\r\n\r\n", 400},
	        {"G@T / HTTP/1.1\r\n\r\n", 400},
	        {"GET  / HTTP/1.1\r\n\r\n", 400},
	        {"GET status HTTP/1.1\r\n\r\n", 400},
	        {"GET http://localhost/ HTTP/1.1\r\n\r\n", 400},
	        {"GET /a\tb HTTP/1.1\r\n\r\n", 400},
	        {"GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400},
	        {"GET / FTP/1.1\r\n\r\n", 400},
	        {"GET / HTTP/1.1 \r\n\r\n", 505},
	        {"GET / HTTP/2.0\r\n\r\n", 505},
	        {"GET / HTTP/1.1\r\nHost:\r\nNo colon\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\n: empty\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nName : x\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nA: x\r\n folded\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nA: x\ny: z\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nA: \x01\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nContent-Length: -1\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nContent-Length: 1, 1\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
	        {"POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n", 411},
	        {"POST / HTTP/1.1\r\nHost:\r\nExpect: 200-ok\r\n\r\n", 417},
	        {"GET / HTTP/1.1\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHosts: a\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost:\r\nhost: a\r\n\r\n", 400},
	        {"GET / HTTP/1.0\r\nHOST: a\r\nhOST: b\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", 400},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (request(cases[i].text) != cases[i].status)
			fail_msg("%s: not %d", cases[i].text, cases[i].status);
}

/* A name has the bytes of a token (RFC 9110 section 5.6.2) and no other. */
static void test_tokens(void **state)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
	                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char field[] = "GET / HTTP/1.1\r\nA?B: x\r\nHost:\r\n\r\n",
	     method[] = "G?T / HTTP/1.1\r\nHost:\r\n\r\n";
	size_t n = sizeof(field) - 1, m = sizeof(method) - 1;

	(void)state;
	for (int c = 0; c < 256; c++) {
		int wanted = c && strchr(token, c) ? CONTROL_HEAD_WHOLE : 400;
		int got;

		field[17] = method[1] = (char)c;
		got = control_head_request(slice_of(field, n), &head);
		if (got != wanted && c != ':')
			fail_msg("byte %d in a name: %d", c, got);
		if (c != ' ' && control_head_request(slice_of(method, m), &head) != wanted)
			fail_msg("byte %d in a method", c);
	}
}

static void test_bounds(void **state)
{
	char text[CONTROL_HEAD_MAX + 64];
	size_t n;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(control_head_request(slice_of(text, CONTROL_HEAD_MAX - 1), &head),
	        CONTROL_HEAD_MORE);
	assert_int_equal(control_head_request(slice_of(text, CONTROL_HEAD_MAX), &head), 431);
	memcpy(text, "GET /", 5);
	memcpy(text + 4 + CONTROL_TARGET_MAX, " HTTP/1.0\r\n\r\n", 13);
	n = 4 + CONTROL_TARGET_MAX + 13;
	assert_int_equal(control_head_request(slice_of(text, n), &head), CONTROL_HEAD_WHOLE);
	memset(text + 4 + CONTROL_TARGET_MAX, 'a', 1);
	memcpy(text + 5 + CONTROL_TARGET_MAX, " HTTP/1.1\r\n\r\n", 13);
	assert_int_equal(control_head_request(slice_of(text, n + 1), &head), 414);
	n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.0\r\n");
	for (int i = 0; i < CONTROL_FIELDS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "a:\r\n");
	memcpy(text + n, "\r\n", 2);
	assert_int_equal(control_head_request(slice_of(text, n + 2), &head), CONTROL_HEAD_WHOLE);
	memcpy(text + n, "a:\r\n\r\n", 6);
	assert_int_equal(control_head_request(slice_of(text, n + 6), &head), 431);
}

static void test_responses(void **state)
{
	static const char good[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
	static const char *const bad[] = {"HTTP/1.1 99 x\r\n\r\n", "HTTP/1.1 600 x\r\n\r\n",
	        "HTTP/1.1 20 x\r\n\r\n", "HTTP/3 200 x\r\n\r\n", "200 OK\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"};

	(void)state;
	assert_int_equal(control_head_response(SLICE(good), &head), CONTROL_HEAD_WHOLE);
	assert_int_equal(head.status, 404);
	assert_int_equal(head.length, 2);
	assert_int_equal(
	        control_head_response(SLICE("HTTP/1.1 200\r\n\r\n"), &head), CONTROL_HEAD_WHOLE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(control_head_response(slice_from_string(bad[i]), &head), 400);
}

static void test_problem(void **state)
{
	struct buf out;
	struct json j;

	(void)state;
	buf_init(&out, 1024);
	control_problem_begin(&j, &out, 404, SLICE("no \"x\""));
	json_end_object(&j);
	assert_true(slice_equals(buf_slice(&out),
	        SLICE("{\"type\":\"urn:vethguard:problem:control:not-found\",\"title\":\"Not "
	              "Found\",\"status\":404,\"detail\":\"no \\\"x\\\"\"}")));
	assert_string_equal(control_status_name(299), "Unknown");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_whole),
	        cmocka_unit_test(test_connection),
	        cmocka_unit_test(test_host),
	        cmocka_unit_test(test_every_prefix_waits),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_tokens),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_responses),
	        cmocka_unit_test(test_problem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
