/* SPDX-License-Identifier: Apache-2.0 */
/* Header blocks of HTTP/2 as requests and responses: at and beyond every bound, and what the fields
 * mean together. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proxy/http/http2.h"

#define LIMIT HTTP_HEAD_MAX

static struct http2_block block;
static struct http_request request;
static struct http_response response;
static const char *why;

static int set_up(void **state)
{
	(void)state;
	http2_block_init(&block, LIMIT);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	http2_block_fini(&block);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void add(const char *name, const char *value)
{
	http2_block_add(&block, slice_from_string(name), slice_from_string(value));
}

static void begin(void)
{
	http2_block_reset(&block);
	add(":method", "GET");
	add(":scheme", "https");
	add(":authority", "a.test");
	add(":path", "/x");
}

/* The status of the refusal, or 0. */
static uint16_t ask(bool ended)
{
	struct http_fault fault = http2_read_request(&block, ended, &request);

	why = fault.why;
	assert_int_equal(fault.status != 0, why != NULL);
	return fault.status;
}

static uint16_t read_it(void)
{
	return ask(true);
}

/* A request of these fields alone: name, value, name, value, ..., NULL. */
static uint16_t read_fields(const char *const *fields, bool ended)
{
	http2_block_reset(&block);
	for (; fields[0]; fields += 2)
		add(fields[0], fields[1]);
	return ask(ended);
}

#define FIELDS(...)               \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}
#define USUAL ":method", "GET", ":scheme", "https", ":authority", "a.test", ":path", "/x"
#define POST ":method", "POST", ":scheme", "https", ":authority", "a.test", ":path", "/x"

static void expect_bad(const char *const *fields)
{
	if (read_fields(fields, true) == HTTP_MALFORMED && why)
		return;
	while (fields[2])
		fields += 2;
	fail_msg("taken: ... %s: %s (authority %s)", fields[0], fields[1], fields[-1]);
}

static void test_a_request(void **state)
{
	(void)state;
	assert_int_equal(read_fields(FIELDS(USUAL, "x-a", "b"), true), 0);
	assert_true(slice_equals(request.method, SLICE("GET")));
	assert_int_equal(request.path_n, 2);
	assert_string_equal(request.authority.host, "a.test");
	assert_int_equal(request.fields.count, 1);
	assert_int_equal(request.body, HTTP_BODY_NONE);
	assert_int_equal(request.version, 20);
	assert_int_equal(read_fields(FIELDS(POST), true), 0);
	assert_int_equal(request.body, HTTP_BODY_LENGTH);
	assert_int_equal(read_fields(FIELDS(POST), false), 0);
	assert_int_equal(request.body, HTTP_BODY_CHUNKED);
}

/* --- bounds --- */

static void test_bytes_of_a_head(void **state)
{
	char *value = malloc(LIMIT);
	size_t n;

	(void)state;
	memset(value, 'a', LIMIT);
	for (int beyond = 0; beyond < 2; beyond++) {
		begin();
		n = LIMIT - block.size - 3 - HTTP2_FIELD_COST + (size_t)beyond;
		http2_block_add(&block, SLICE("x-a"), slice_of(value, n));
		assert_int_equal(read_it(), beyond ? HTTP_FIELDS_TOO_LARGE : 0);
		assert_true(block.text.len <= block.text.max);
	}
	/* Later fields are not kept either. */
	n = block.text.len;
	add("x-b", "c");
	assert_int_equal(block.text.len, n);
	assert_int_equal(read_it(), HTTP_FIELDS_TOO_LARGE);
	begin();
	assert_int_equal(read_it(), 0);
	free(value);
}

static void test_a_configured_limit(void **state)
{
	(void)state;
	http2_block_fini(&block);
	http2_block_init(&block, 100);
	begin();
	assert_int_equal(read_it(), 0);
	add("x-a", "0123456789012345678901234567890123456789");
	assert_int_equal(read_it(), HTTP_FIELDS_TOO_LARGE);
}

/* A head that is too large is so behind a malformed field as well. */
static void test_bytes_behind_a_malformed_field(void **state)
{
	(void)state;
	http2_block_fini(&block);
	http2_block_init(&block, 100);
	begin();
	add("x a", "b");
	assert_int_equal(read_it(), HTTP_MALFORMED);
	add("x-a", "0123456789012345678901234567890123456789");
	assert_true(block.too_large);
	assert_int_equal(read_it(), HTTP_FIELDS_TOO_LARGE);
}

/* Fields that cost next to nothing, one more than there is room for; empty ones count too. */
static void test_number_of_fields(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		add("x", "");
	assert_int_equal(read_it(), 0);
	assert_int_equal(request.fields.count, HTTP_FIELDS_MAX);
	add("x", "");
	assert_int_not_equal(read_it(), 0);
	begin();
	for (int i = 0; i < 10000; i++)
		add("x", "");
	assert_int_equal(read_it(), HTTP_FIELDS_TOO_LARGE);
	begin();
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		add("x", "");
	add("cookie", "a=b");
	assert_int_not_equal(read_it(), 0);
}

static void test_cookie_crumbs(void **state)
{
	(void)state;
	begin();
	add("cookie", "a=b");
	add("x-a", "b");
	add("cookie", "c=d");
	add("cookie", "");
	assert_int_equal(read_it(), 0);
	assert_int_equal(request.fields.count, 2);
	assert_true(slice_equals(request.fields.items[1].value, SLICE("a=b; c=d")));
	begin();
	assert_int_equal(read_it(), 0);
	assert_int_equal(request.fields.count, 0); /* none of an earlier head */
	for (int i = 0; i < 20000; i++)
		add("cookie", "");
	assert_int_equal(read_it(), HTTP_FIELDS_TOO_LARGE);
	assert_true(block.cookies.len <= LIMIT);
}

static void test_target_and_method(void **state)
{
	static char path[HTTP_TARGET_MAX + 2], method[POLICY_METHOD_MAX + 2];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	assert_int_equal(read_fields(FIELDS(":method", "GET", ":scheme", "https", ":authority",
	                                     "a.test", ":path", path),
	                         true),
	        HTTP_TARGET_TOO_LONG);
	path[HTTP_TARGET_MAX] = '\0';
	assert_int_not_equal(read_fields(FIELDS(":method", "GET", ":scheme", "https", ":authority",
	                                         "a.test", ":path", path),
	                             true),
	        HTTP_TARGET_TOO_LONG);
	memset(method, 'A', sizeof(method) - 1);
	assert_int_equal(read_fields(FIELDS(":method", method, ":scheme", "https", ":authority",
	                                     "a.test", ":path", "/"),
	                         true),
	        HTTP_NOT_IMPLEMENTED);
	method[POLICY_METHOD_MAX] = '\0';
	assert_int_equal(read_fields(FIELDS(":method", method, ":scheme", "https", ":authority",
	                                     "a.test", ":path", "/"),
	                         true),
	        0);
}

/* --- meaning --- */

static void test_pseudo_fields(void **state)
{
	(void)state;
	expect_bad(FIELDS(":scheme", "https", ":authority", "a.test", ":path", "/"));
	expect_bad(FIELDS(":method", "", ":scheme", "https", ":authority", "a.test", ":path", "/"));
	expect_bad(FIELDS(":method", "GET", ":authority", "a.test", ":path", "/"));
	expect_bad(FIELDS(":method", "GET", ":scheme", "https", ":authority", "a.test"));
	expect_bad(
	        FIELDS(":method", "GET", ":scheme", "https", ":path", "/")); /* nobody is named */
	expect_bad(FIELDS(":method", "GET", ":scheme", "https", ":authority", "", ":path", "/"));
	expect_bad(FIELDS(USUAL, ":status", "200"));
	expect_bad(FIELDS("x-a", "b", USUAL));
	expect_bad(FIELDS("cookie", "a=b", USUAL));
	assert_int_equal(read_fields(FIELDS(":method", "GET", ":scheme", "HTTPS", ":authority",
	                                     "a.test", ":path", "/"),
	                         true),
	        0);
	expect_bad(FIELDS(USUAL, ":method", "GET"));
	expect_bad(FIELDS(USUAL, ":path", "/y"));
	expect_bad(FIELDS(USUAL, ":authority", "b.test"));
	expect_bad(FIELDS(USUAL, ":scheme", "http"));
	expect_bad(FIELDS(USUAL, ":new", "1"));
	expect_bad(FIELDS(USUAL, ":", "1"));
	expect_bad(FIELDS(USUAL, ":protocol", "websocket"));
	expect_bad(
	        FIELDS(":method", "GET", ":scheme", "ftp", ":authority", "a.test", ":path", "/"));
	expect_bad(
	        FIELDS(":method", "GET", ":scheme", "HTTPS", ":authority", "a.test", ":path", ""));
}

static void test_paths_and_authorities(void **state)
{
	static const char *const paths[] = {
	        "", "x", "*", "http://a.test/", "/%00", "/../x", "/a b", "/a#b", "/a\\b", "//\x7f"};
	static const char *const authorities[] = {"u@a.test", "a.test:", "a.test:0", "a.test:65536",
	        "a.test:x", "a..test", "a test", "[::1", "a.test/x", "a.test#"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		expect_bad(FIELDS(":method", "GET", ":scheme", "https", ":authority", "a.test",
		        ":path", paths[i]));
	for (size_t i = 0; i < sizeof(authorities) / sizeof(*authorities); i++) {
		if (i == 1) /* an empty port is the scheme's own: RFC 3986 section 3.2.3 */
			continue;
		expect_bad(FIELDS(":method", "GET", ":scheme", "https", ":authority",
		        authorities[i], ":path", "/"));
	}
	expect_bad(FIELDS(
	        ":method", "OPTIONS", ":scheme", "https", ":authority", "a.test", ":path", "x"));
	assert_int_equal(read_fields(FIELDS(":method", "OPTIONS", ":scheme", "https", ":authority",
	                                     "a.test", ":path", "*"),
	                         true),
	        0);
	assert_true(request.asterisk);
}

static void test_host_against_authority(void **state)
{
	(void)state;
	assert_int_equal(read_fields(FIELDS(USUAL, "host", "a.test"), true), 0);
	assert_int_equal(read_fields(FIELDS(USUAL, "host", "A.test"), true), 0);
	assert_int_equal(read_fields(FIELDS(":method", "GET", ":scheme", "https", ":path", "/",
	                                     "host", "a.test"),
	                         true),
	        0);
	assert_string_equal(request.authority.host, "a.test");
	assert_int_equal(read_fields(FIELDS(USUAL, "host", "b.test"), true), HTTP_MISDIRECTED);
	assert_int_equal(read_fields(FIELDS(USUAL, "host", "a.test:1"), true), HTTP_MISDIRECTED);
	expect_bad(FIELDS(USUAL, "host", "a.test", "host", "a.test"));
	expect_bad(FIELDS(USUAL, "host", "u@a.test"));
	expect_bad(FIELDS(USUAL, "host", "a.test,b.test"));
}

/* Fields that nghttp2 does not check any more. */
static void test_bytes_of_a_field(void **state)
{
	static const char *const bad[][2] = {{"", "a"}, {"X-a", "b"}, {"x-A", "b"}, {"x a", "b"},
	        {"x:a", "b"}, {"x\x80", "b"}, {"x\x7f", "b"}, {"x(", "b"}, {"x-a", " b"},
	        {"x-a", "b "}, {"x-a", "\tb"}, {"x-a", "b\t"}, {"x-a", " "}, {"x-a", "a\rb"},
	        {"x-a", "a\nb"}, {"x-a", "\x01"}, {"x-a", "0123456701234567\x1f"},
	        {"x-a", "0123456\x7f"}, {"cookie", " a=b"},
	        {"cookie", "a\x0b"
	                   "b"}};
	static const char *const good[][2] = {
	        {"x-a", ""}, {"x-a", "a b\tc"}, {"x-a", "\x80\xff"}, {"!#$%&'*+-.^_`|~09az", "b"}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_bad(FIELDS(USUAL, bad[i][0], bad[i][1]));
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(read_fields(FIELDS(USUAL, good[i][0], good[i][1]), true), 0);
	begin();
	http2_block_add(&block, SLICE("x-a"), SLICE("a\0b"));
	assert_int_equal(read_it(), HTTP_MALFORMED);
	begin();
	http2_block_add(&block, SLICE("x\0a"), SLICE("b"));
	assert_int_equal(read_it(), HTTP_MALFORMED);
	/* The first fault stays. */
	add("x-b", "c");
	assert_int_equal(read_it(), HTTP_MALFORMED);
}

static void test_methods(void **state)
{
	static const struct {
		const char *method;
		uint16_t status;
	} rows[] = {{"LIST", 0}, {"get", 0}, {"M-SEARCH", 0}, {"!#$%&'*+-.^_`|~", 0}, {"TRACE", 0},
	        {"PRI", 400}, {"pri", 400}, {"head", 400}, {"Head", 400}, {"connect", 400},
	        {"G T", 400}, {"GET:", 400}, {"GET\x80", 400}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(read_fields(FIELDS(":method", rows[i].method, ":scheme", "https",
		                                     ":authority", "a.test", ":path", "/"),
		                         true),
		        rows[i].status);
}

static void test_expectations(void **state)
{
	(void)state;
	assert_int_equal(read_fields(FIELDS(POST, "expect", "100-Continue"), true), 0);
	assert_true(request.expects_continue);
	assert_int_equal(read_fields(FIELDS(POST, "expect", ", 100-continue"), true), 0);
	assert_true(request.expects_continue);
	assert_int_equal(read_fields(FIELDS(POST, "expect", ""), true), 0);
	assert_false(request.expects_continue);
	assert_int_equal(
	        read_fields(FIELDS(POST, "expect", "much"), true), HTTP_EXPECTATION_FAILED);
	assert_int_equal(
	        read_fields(FIELDS(POST, "expect", "100-continue", "expect", "much"), true),
	        HTTP_EXPECTATION_FAILED);
}

static void test_fields_of_a_connection(void **state)
{
	static const char *const bad[][2] = {{"connection", "close"}, {"connection", ""},
	        {"keep-alive", "1"}, {"proxy-connection", "x"}, {"transfer-encoding", "chunked"},
	        {"upgrade", "h2c"}, {"te", "gzip"}, {"te", "trailers, gzip"}, {"te", ""},
	        /* ... for a server behind us that takes one for the other */
	        {"transfer_encoding", "chunked"}, {"content_length", "0"}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_bad(FIELDS(USUAL, bad[i][0], bad[i][1]));
	assert_int_equal(read_fields(FIELDS(USUAL, "content_lengths", "0"), true), 0);
	assert_int_equal(read_fields(FIELDS(USUAL, "te", "trailers"), true), 0);
	assert_int_equal(read_fields(FIELDS(USUAL, "te", "Trailers"), true), 0);
}

static void test_lengths(void **state)
{
	static const char *const bad[] = {
	        "", "x", "-1", "+1", "1 ", " 1", "0x1", "1,1", "9223372036854775808", "1"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_bad(FIELDS(POST, "content-length", bad[i]));
	expect_bad(FIELDS(POST, "content-length", "0", "content-length", "0"));
	assert_int_equal(read_fields(FIELDS(POST, "content-length", "0"), true), 0);
	assert_int_equal(read_fields(FIELDS(POST, "content-length", "5"), false), 0);
	assert_int_equal(request.content_length, 5);
	assert_int_equal(request.body, HTTP_BODY_LENGTH);
}

static void test_connect(void **state)
{
	(void)state;
	assert_int_equal(
	        read_fields(FIELDS(":method", "CONNECT", ":authority", "a.test:1"), false), 0);
	expect_bad(FIELDS(":method", "CONNECT", ":authority", "a.test:1", ":path", "/"));
	expect_bad(FIELDS(":method", "CONNECT", ":authority", "a.test:1", ":scheme", "https"));
	expect_bad(FIELDS(":method", "CONNECT", ":authority", "a.test"));
	expect_bad(FIELDS(":method", "CONNECT"));
#define EXTENDED(protocol)                                                                       \
	":method", "CONNECT", ":protocol", protocol, ":scheme", "https", ":authority", "a.test", \
	        ":path", "/"
	assert_int_equal(read_fields(FIELDS(EXTENDED("websocket")), false), 0);
	assert_true(request.wants_websocket && slice_equals(request.method, SLICE("GET")));
	expect_bad(FIELDS(EXTENDED("websocket"))); /* ended */
	expect_bad(FIELDS(EXTENDED("connect-udp")));
	assert_int_equal(read_fields(FIELDS(EXTENDED("websocket"), "content-length", "0"), false),
	        HTTP_MALFORMED);
}

/* --- responses --- */

static uint16_t answer(const char *status, const char *length, bool ended, bool no_body)
{
	http2_block_reset(&block);
	if (status)
		add(":status", status);
	if (length)
		add("content-length", length);
	why = http2_read_response(&block, ended, no_body, &response);
	return why ? HTTP_MALFORMED : 0;
}

static void test_responses(void **state)
{
	static const char *const bad[] = {
	        NULL, "", "20", "2000", "099", "000", "abc", "+20", " 20", "20 ", "-20"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(answer(bad[i], NULL, true, false), HTTP_MALFORMED);
	/* No standard has them, but servers use them. */
	assert_int_equal(answer("600", NULL, true, false), 0);
	assert_int_equal(answer("999", NULL, true, false), 0);
	/* One length, said more than once (RFC 9112 section 6.3, rule 5). */
	assert_int_equal(answer("200", "5, 5,,5", false, false), 0);
	assert_int_equal(response.content_length, 5);
	assert_int_equal(answer("200", "5, 6", false, false), HTTP_MALFORMED);
	assert_int_equal(answer("200", ",", false, false), HTTP_MALFORMED);
	/* A 204 has no content whatever its length says (RFC 9113 section 8.1.1). */
	assert_int_equal(answer("204", "5", true, false), 0);
	assert_int_equal(response.body, HTTP_BODY_NONE);
	assert_int_equal(answer("200", "1", true, false), HTTP_MALFORMED);
	assert_int_equal(answer("200", "x", false, false), HTTP_MALFORMED);
	assert_int_equal(answer("200", "", false, false), HTTP_MALFORMED);
	assert_int_equal(answer("200", "1", true, true), 0);
	assert_int_equal(answer("304", "1", true, false), 0);
	assert_int_equal(answer("200", NULL, true, false), 0);
	assert_int_equal(response.body, HTTP_BODY_LENGTH);
	assert_int_equal(response.content_length, 0);
	assert_int_equal(answer("200", NULL, false, false), 0);
	assert_int_equal(response.body, HTTP_BODY_CHUNKED);
	assert_int_equal(answer("100", NULL, false, false), 0);
	assert_int_equal(response.body, HTTP_BODY_NONE);
	http2_block_reset(&block);
	add(":status", "200");
	add("connection", "close");
	assert_non_null(http2_read_response(&block, true, false, &response));
}

/* --- writing --- */

static void test_trailer_lines(void **state)
{
	nghttp2_nv out[4];

	(void)state;
	assert_int_equal(http2_put_lines(SLICE("a: b\r\nc:d\r\n"), out, 4), 2);
	assert_memory_equal(out[1].value, "d", 1);
	assert_int_equal(out[1].valuelen, 1);
	assert_int_equal(http2_put_lines(SLICE("a:1\r\na:2\r\na:3\r\na:4\r\na:5\r\n"), out, 4), 4);
	assert_int_equal(http2_put_lines(SLICE(": x\r\nno colon\r\n\r\n"), out, 4), 0);
	assert_int_equal(http2_put_lines(SLICE(""), out, 4), 0);
	assert_int_equal(http2_put_lines(SLICE("a: cut"), out, 4), 1);
	assert_int_equal(http2_put_lines(SLICE("a:"), out, 4), 1);
	assert_int_equal(out[0].valuelen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_a_request),
	        TEST(test_bytes_of_a_head),
	        TEST(test_a_configured_limit),
	        TEST(test_bytes_behind_a_malformed_field),
	        TEST(test_number_of_fields),
	        TEST(test_cookie_crumbs),
	        TEST(test_target_and_method),
	        TEST(test_pseudo_fields),
	        TEST(test_paths_and_authorities),
	        TEST(test_host_against_authority),
	        TEST(test_bytes_of_a_field),
	        TEST(test_methods),
	        TEST(test_expectations),
	        TEST(test_fields_of_a_connection),
	        TEST(test_lengths),
	        TEST(test_connect),
	        TEST(test_responses),
	        TEST(test_trailer_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
