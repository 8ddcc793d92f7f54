/* SPDX-License-Identifier: Apache-2.0 */
/* What a client in HTTP/2 may cost without asking for anything. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/http2.h"

static bool frame(struct http2_limits *l, uint8_t type, size_t n, int64_t now_ms)
{
	const nghttp2_frame_hd hd = {.type = type, .length = n};

	return http2_limits_frame(l, &hd, now_ms);
}

/* How many of these frames are taken at once. */
static unsigned taken(struct http2_limits *l, uint8_t type, int64_t now_ms)
{
	unsigned n = 0;

	while (n < 100000 && frame(l, type, 8, now_ms))
		n++;
	return n;
}

static void test_frames(void **state)
{
	struct http2_limits l;

	(void)state;
	http2_limits_init(&l, 1000);
	assert_int_equal(taken(&l, NGHTTP2_PING, 1000), 2000);
	assert_int_equal(taken(&l, NGHTTP2_SETTINGS, 1050), 0);
	assert_int_equal(taken(&l, NGHTTP2_SETTINGS, 2000), 100);
	assert_true(frame(&l, NGHTTP2_HEADERS, 10, 2000)); /* a request allows some */
	assert_int_equal(taken(&l, NGHTTP2_WINDOW_UPDATE, 2000), 8);
	http2_limits_progress(&l);
	assert_int_equal(taken(&l, NGHTTP2_DATA, 2000), 3);
	assert_int_equal(taken(&l, NGHTTP2_PING, 1000000), 2000); /* no more than a purse holds */
	assert_int_equal(taken(&l, NGHTTP2_PING, 900000), 0);     /* a clock that goes back */
}

static void test_resets(void **state)
{
	struct http2_limits l;
	unsigned n = 0;

	(void)state;
	http2_limits_init(&l, 0);
	while (n < 1000 && http2_limits_reset(&l, 0))
		n++;
	assert_int_equal(n, 300);
	assert_false(http2_limits_reset(&l, 99));
	assert_true(http2_limits_reset(&l, 200));
}

static void test_blocks(void **state)
{
	struct http2_limits l;

	(void)state;
	http2_limits_init(&l, 0);
	assert_true(frame(&l, NGHTTP2_HEADERS, PROXY_HEAD_MAX, 0));
	assert_true(frame(&l, NGHTTP2_CONTINUATION, PROXY_HEAD_MAX, 0));
	assert_false(frame(&l, NGHTTP2_CONTINUATION, 1, 0));
	assert_true(frame(&l, NGHTTP2_HEADERS, 1, 0)); /* another block */
	assert_true(frame(&l, NGHTTP2_CONTINUATION, 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_frames),
	        cmocka_unit_test(test_resets),
	        cmocka_unit_test(test_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
