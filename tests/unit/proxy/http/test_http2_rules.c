/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of RFC 9113 that are kept beside nghttp2, each at its border. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/http/http2_rules.h"

static struct http2_rules rules;
static uint32_t code;

static int setup(void **state)
{
	(void)state;
	http2_rules_init(&rules);
	code = 0;
	return 0;
}

static bool opens(int32_t id)
{
	nghttp2_frame_hd hd = {.type = NGHTTP2_HEADERS, .stream_id = id};

	return !http2_rules_stream(&rules, &hd, &code);
}

static void test_identifiers(void **state)
{
	(void)state;
	assert_true(opens(1) && opens(3) && opens(3) && opens(1)); /* trailers */
	assert_true(opens(9) && opens(11));
	assert_false(opens(5));
	assert_int_equal(code, NGHTTP2_PROTOCOL_ERROR);
	assert_false(opens(7));
	assert_true(opens(9) && opens(3));
	assert_true(opens(2)); /* nghttp2's to refuse */
	assert_true(opens(INT32_MAX));
	assert_false(opens(13));
	assert_false(opens(INT32_MAX - 2));
	assert_true(opens(INT32_MAX));
}

static void test_first_identifier(void **state)
{
	(void)state;
	assert_true(opens(5));
	assert_false(opens(1));
	assert_false(opens(3));
}

/* The oldest gap is forgotten, and nothing else. */
static void test_gaps(void **state)
{
	(void)state;
	for (int32_t i = 0; i <= HTTP2_GAPS_MAX; i++)
		assert_true(opens(3 + 4 * i)); /* 1, 5, 9, ... are left out */
	assert_true(opens(1));
	for (int32_t i = 1; i <= HTTP2_GAPS_MAX; i++) {
		assert_false(opens(1 + 4 * i));
		assert_true(opens(3 + 4 * i));
	}
}

static void test_continuation(void **state)
{
	nghttp2_frame_hd hd = {.type = NGHTTP2_CONTINUATION, .length = 16384};

	(void)state;
	assert_null(http2_rules_frame(&hd, &code));
	hd.length++;
	assert_non_null(http2_rules_frame(&hd, &code));
	assert_int_equal(code, NGHTTP2_FRAME_SIZE_ERROR);
	hd.type = NGHTTP2_DATA; /* nghttp2 looks at those */
	assert_null(http2_rules_frame(&hd, &code));
}

static const char *lift(int32_t widest, uint32_t value)
{
	nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, value};
	nghttp2_settings settings = {.niv = 1, .iv = &entry};

	http2_rules_settings_begin(&rules);
	rules.widest = widest;
	return http2_rules_settings(&rules, &settings, &code);
}

static void test_windows(void **state)
{
	nghttp2_settings none = {.niv = 0};

	(void)state;
	assert_null(lift(0, 0x7fffffff));
	assert_null(http2_rules_settings(&rules, &none, &code));
	assert_null(lift(0x7fffffff, 65535)); /* less: it shrinks */
	assert_null(lift(0x7ffffffe, 65536));
	assert_non_null(lift(0x7fffffff, 65537));
	assert_int_equal(code, NGHTTP2_FLOW_CONTROL_ERROR);
	assert_non_null(lift(65538, 0x7fffffff));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_identifiers, setup),
	        cmocka_unit_test_setup(test_first_identifier, setup),
	        cmocka_unit_test_setup(test_gaps, setup),
	        cmocka_unit_test_setup(test_continuation, setup),
	        cmocka_unit_test_setup(test_windows, setup)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
