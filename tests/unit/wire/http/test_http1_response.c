/* SPDX-License-Identifier: Apache-2.0 */
/* Responses in HTTP/1.1: heads, and where their content ends, however they are cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/wire/http1_response.h"

static enum http1_response_status parse(
        const char *text, enum http1_request_kind request, struct http1_response *out)
{
	size_t looked = 0;

	return http1_response_parse((const uint8_t *)text, strlen(text), &looked, request, out);
}

static void is(const char *text, enum http1_request_kind request, unsigned status,
        enum http1_content_kind content)
{
	struct http1_response head;
	size_t looked = 0;

	assert_int_equal(parse(text, request, &head), HTTP1_RESPONSE_DONE);
	assert_int_equal(head.status, status);
	assert_int_equal(head.content, content);
	assert_int_equal(head.used, strlen(text));
	for (size_t n = 0; n < strlen(text); n++) /* byte by byte */
		assert_int_equal(
		        http1_response_parse((const uint8_t *)text, n, &looked, request, &head),
		        HTTP1_RESPONSE_MORE);
}

static void test_heads(void **state)
{
	(void)state;
	is("HTTP/1.1 200 OK\r\n\r\n", HTTP1_REQUEST_OTHER, 200, HTTP1_CONTENT_REST);
	is("HTTP/1.0 200\r\n\r\n", HTTP1_REQUEST_OTHER, 200, HTTP1_CONTENT_REST);
	is("HTTP/1.1 200 \r\nA:\r\n\r\n", HTTP1_REQUEST_CONNECT, 200, HTTP1_CONTENT_REST);
	is("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP1_REQUEST_CONNECT, 200,
	        HTTP1_CONTENT_REST);
	is("HTTP/1.1 403 No\r\ncontent-length: 5\r\n\r\n", HTTP1_REQUEST_CONNECT, 403,
	        HTTP1_CONTENT_LENGTH);
	is("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP1_REQUEST_OTHER, 200,
	        HTTP1_CONTENT_NONE);
	is("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", HTTP1_REQUEST_OTHER, 200,
	        HTTP1_CONTENT_CHUNKED);
	is("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP1_REQUEST_HEAD, 200,
	        HTTP1_CONTENT_NONE);
	is("HTTP/1.1 204 x\r\n\r\n", HTTP1_REQUEST_OTHER, 204, HTTP1_CONTENT_NONE);
	is("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", HTTP1_REQUEST_OTHER, 304,
	        HTTP1_CONTENT_NONE);
	is("HTTP/1.1 100 Continue\r\n\r\n", HTTP1_REQUEST_OTHER, 100, HTTP1_CONTENT_NONE);
}

static void test_malformed_heads(void **state)
{
	static const char *const cases[] = {"\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 20\r\n\r\n",
	        "HTTP/1.1 600 x\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
	        "HTTP/2.0 200 x\r\n\r\n", "http/1.1 200 x\r\n\r\n", "HTTP/1.1 200 OK\n\r\n",
	        "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
	        "HTTP/1.1 200 OK\r\n: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", "HTTP/1.1 200 OK\r\nA: \x7f\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"};
	struct http1_response head;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(parse(cases[i], HTTP1_REQUEST_OTHER, &head), HTTP1_RESPONSE_BAD);
}

static void test_bounds(void **state)
{
	const size_t most = HTTP1_RESPONSE_HEAD_MAX + 100;
	char *text = malloc(most);
	struct http1_response head;
	size_t looked = 0, n;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', most);
	memcpy(text, "HTTP/1.1 200 OK\r\na: ", 20);
	assert_int_equal(http1_response_parse((uint8_t *)text, HTTP1_RESPONSE_HEAD_MAX - 1, &looked,
	                         HTTP1_REQUEST_OTHER, &head),
	        HTTP1_RESPONSE_MORE);
	assert_int_equal(http1_response_parse((uint8_t *)text, HTTP1_RESPONSE_HEAD_MAX, &looked,
	                         HTTP1_REQUEST_OTHER, &head),
	        HTTP1_RESPONSE_BAD);
	for (size_t fields = HTTP1_RESPONSE_FIELDS_MAX; fields <= HTTP1_RESPONSE_FIELDS_MAX + 1;
	        fields++) {
		n = 17;
		for (size_t i = 0; i < fields; i++, n += 5)
			memcpy(text + n, "a: \r\n", 5);
		memcpy(text + n, "\r\n", 3);
		assert_int_equal(parse(text, HTTP1_REQUEST_OTHER, &head),
		        fields > HTTP1_RESPONSE_FIELDS_MAX ? HTTP1_RESPONSE_BAD
		                                           : HTTP1_RESPONSE_DONE);
	}
	free(text);
}

static void test_fields(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nA: 1\r\nConnection: close\r\nb:\t2 \r\n\r\n";
	struct http1_response head;
	struct slice name, value;
	size_t at = 0;

	(void)state;
	assert_int_equal(parse(text, HTTP1_REQUEST_OTHER, &head), HTTP1_RESPONSE_DONE);
	assert_true(http1_response_next_field((const uint8_t *)text, &head, &at, &name, &value));
	assert_true(slice_equals(name, SLICE("A")) && slice_equals(value, SLICE("1")));
	assert_false(http1_response_is_of_connection(name));
	assert_true(http1_response_next_field((const uint8_t *)text, &head, &at, &name, &value));
	assert_true(http1_response_is_of_connection(name));
	assert_true(http1_response_next_field((const uint8_t *)text, &head, &at, &name, &value));
	assert_true(slice_equals(name, SLICE("b")) && slice_equals(value, SLICE("2")));
	assert_false(http1_response_next_field((const uint8_t *)text, &head, &at, &name, &value));
	assert_int_equal(head.field_count, 3);
}

/* Takes text in pieces of step bytes; out: its content. Returns how many bytes were taken. */
static size_t take(struct http1_content *c, const char *text, size_t step, char *out)
{
	size_t used = 0, n = strlen(text), length = 0;

	while (used < n) {
		const size_t piece = n - used < step ? n - used : step;
		struct slice data;
		const size_t took =
		        http1_content_take(c, (const uint8_t *)text + used, piece, &data);

		memcpy(out + length, data.p, data.n);
		length += data.n;
		used += took;
		if (!took)
			break;
	}
	out[length] = 0;
	return used;
}

static void holds(
        const struct http1_response *head, const char *text, const char *content, size_t behind)
{
	struct http1_content c;
	char out[256];

	for (size_t step = 1; step <= strlen(text); step++) {
		http1_content_begin(&c, head);
		assert_int_equal(take(&c, text, step, out), strlen(text) - behind);
		assert_string_equal(out, content);
		assert_true(http1_content_may_end(&c));
	}
}

static void test_content(void **state)
{
	static const char *const wrong[] = {"\r\n", "g\r\n", "1;a\r\n", " 1\r\n", "1\n", "1\r\r",
	        "1\r\nab", "1\r\na\rb", "0\r\n\n", "0\r\nA\n", "0\r\n\r\r", "1234567890123456\r\n"};
	const struct http1_response chunked = {.content = HTTP1_CONTENT_CHUNKED},
	                            length = {.content = HTTP1_CONTENT_LENGTH, .length = 3},
	                            rest = {.content = HTTP1_CONTENT_REST},
	                            none = {.content = HTTP1_CONTENT_NONE};
	struct http1_content c;
	char out[256];

	(void)state;
	holds(&chunked, "3\r\nabc\r\n0\r\n\r\n", "abc", 0);
	holds(&chunked, "1\r\na\r\nA\r\n0123456789\r\n0\r\nA: b\r\n\r\nHTTP", "a0123456789", 4);
	holds(&length, "abcdef", "abc", 3);
	holds(&rest, "abcdef", "abcdef", 0);
	holds(&none, "abcdef", "", 6);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		http1_content_begin(&c, &chunked);
		take(&c, wrong[i], 3, out);
		assert_int_equal(c.state, HTTP1_CONTENT_BAD);
		assert_false(http1_content_may_end(&c));
	}
	http1_content_begin(&c, &length);
	take(&c, "ab", 2, out);
	assert_false(http1_content_may_end(&c));
	http1_content_begin(&c, &chunked);
	take(&c, "0\r\n\r", 4, out);
	assert_false(http1_content_may_end(&c));
}

static void test_trailers_are_bounded(void **state)
{
	const struct http1_response chunked = {.content = HTTP1_CONTENT_CHUNKED};
	struct http1_content c;
	struct slice data;
	size_t n = 0;
	char out[8];

	(void)state;
	http1_content_begin(&c, &chunked);
	take(&c, "0\r\n", 3, out);
	while (c.state == HTTP1_CONTENT_TRAILERS)
		n += http1_content_take(&c, (const uint8_t *)"a", 1, &data);
	assert_int_equal(c.state, HTTP1_CONTENT_BAD);
	assert_int_equal(n, HTTP1_RESPONSE_TRAILERS_MAX + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_heads),
	        cmocka_unit_test(test_malformed_heads),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_fields),
	        cmocka_unit_test(test_content),
	        cmocka_unit_test(test_trailers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
