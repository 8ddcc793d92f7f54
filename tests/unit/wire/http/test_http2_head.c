/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests in HTTP/2 as heads in HTTP/1.1: each form, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/wire/http2_head.h"

static struct http2_head head;
static struct buf out;

static int begin(void **state)
{
	(void)state;
	http2_head_init(&head);
	buf_init(&out, 4 * PROXY_HEAD_MAX);
	return 0;
}

static int end(void **state)
{
	(void)state;
	http2_head_fini(&head);
	buf_fini(&out);
	return 0;
}

static void add(const char *name, const char *value)
{
	http2_head_add(&head, slice_from_string(name), slice_from_string(value));
}

static int write_out(bool ended, bool *chunked)
{
	int rc = http2_head_write(&head, ended, chunked, &out);

	buf_append(&out, "", 1);
	return rc;
}

static void again(void)
{
	end(NULL);
	begin(NULL);
}

static void add_get(const char *scheme)
{
	add(":method", "GET");
	add(":scheme", scheme);
	add(":authority", "a.test");
	add(":path", "/x?y");
}

static void test_forms(void **state)
{
	bool chunked;

	(void)state;
	add_get("http");
	assert_int_equal(write_out(true, &chunked), 0);
	assert_string_equal(buf_bytes(&out),
	        "GET http://a.test/x?y HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n");
	assert_false(chunked);
	again();
	add_get("https");
	add("cookie", "a=1");
	add("x", "y");
	add("cookie", "b=2");
	add("host", "a.test");
	add("te", "trailers");
	assert_int_equal(write_out(false, &chunked), 0);
	assert_string_equal(buf_bytes(&out),
	        "GET /x?y HTTP/1.1\r\nhost: a.test\r\nx: y\r\ncookie: a=1; b=2\r\n"
	        "transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
	assert_true(chunked);
	again();
	add_get("http");
	add("content-length", "3");
	assert_int_equal(write_out(false, &chunked), 0);
	assert_false(chunked);
	again();
	add(":authority", "a.test:443");
	add(":method", "CONNECT");
	add("proxy-authorization", "Bearer t");
	assert_int_equal(write_out(false, &chunked), 0);
	assert_string_equal(buf_bytes(&out), "CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n"
	                                     "proxy-authorization: Bearer t\r\n\r\n");
	assert_false(chunked);
	again();
	add(":method", "GET");
	add(":scheme", "http");
	add(":path", "/");
	add("host", "only.test");
	assert_int_equal(write_out(true, &chunked), 0);
	assert_non_null(strstr((char *)buf_bytes(&out), "GET http://only.test/ "));
}

static void refuse(const char *name, const char *value)
{
	bool chunked;

	again();
	add_get("http");
	add(name, value);
	assert_int_equal(write_out(true, &chunked), -EBADMSG);
	assert_non_null(head.why);
	assert_int_equal(out.len, 1); /* write_out() has added a NUL */
}

static void test_fields_refused(void **state)
{
	(void)state;
	refuse("a", "b\r\nc: d");
	refuse("a", "b\nc: d");
	refuse("a", "b\rc");
	refuse("a", "\x7f");
	refuse("a\r\nb", "c");
	refuse("a b", "c");
	refuse("a:", "c");
	refuse("", "c");
	refuse("A", "c");
	refuse("connection", "close");
	refuse("keep-alive", "5");
	refuse("proxy-connection", "close");
	refuse("transfer-encoding", "chunked");
	refuse("upgrade", "websocket");
	refuse("te", "gzip");
	refuse("host", "b.test");
	refuse(":path", "/z");
	refuse(":protocol", "websocket");
	refuse(":", "x");
}

static void refuse_head(
        const char *method, const char *scheme, const char *authority, const char *path)
{
	bool chunked;

	again();
	if (method)
		add(":method", method);
	if (scheme)
		add(":scheme", scheme);
	if (authority)
		add(":authority", authority);
	if (path)
		add(":path", path);
	assert_int_equal(write_out(true, &chunked), -EBADMSG);
}

static void test_heads_refused(void **state)
{
	bool chunked;

	(void)state;
	refuse_head(NULL, "http", "a", "/");
	refuse_head("", "http", "a", "/");
	refuse_head("G T", "http", "a", "/");
	refuse_head("G(T", "http", "a", "/");
	refuse_head("GET", NULL, "a", "/");
	refuse_head("GET", "ftp", "a", "/");
	refuse_head("GET", "HTTP", "a", "/");
	refuse_head("GET", "http", NULL, "/");
	refuse_head("GET", "http", "", "/");
	refuse_head("GET", "http", "a b", "/");
	refuse_head("GET", "http", "a", NULL);
	refuse_head("GET", "http", "a", "x");
	refuse_head("GET", "http", "a", "*");
	refuse_head("GET", "http", "a", "/ HTTP/1.1\r\nx: y");
	refuse_head("CONNECT", "http", "a", NULL);
	refuse_head("CONNECT", NULL, "a", "/");
	refuse_head("CONNECT", NULL, NULL, NULL);
	again();
	add("x", "y");
	add(":method", "GET");
	assert_int_equal(write_out(true, &chunked), -EBADMSG);
}

static void test_bounds(void **state)
{
	static char large[PROXY_HEAD_MAX + 1];
	bool chunked;

	(void)state;
	memset(large, 'a', PROXY_HEAD_MAX);
	add_get("http");
	add("x", large);
	assert_int_equal(write_out(true, &chunked), -EFBIG);
	again();
	add_get("http");
	for (size_t i = 0; i < PROXY_HEAD_FIELDS_MAX - 4; i++)
		add("x", "y");
	assert_int_equal(write_out(true, &chunked), 0);
	again();
	add_get("http");
	for (size_t i = 0; i < PROXY_HEAD_FIELDS_MAX - 3; i++)
		add("x", "y");
	assert_int_equal(write_out(true, &chunked), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_forms, begin, end),
	        cmocka_unit_test_setup_teardown(test_fields_refused, begin, end),
	        cmocka_unit_test_setup_teardown(test_heads_refused, begin, end),
	        cmocka_unit_test_setup_teardown(test_bounds, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
