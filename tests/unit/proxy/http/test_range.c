/* SPDX-License-Identifier: Apache-2.0 */
/* range: what is one part in bytes, and what is not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/http/range.h"

static void reads(const char *text, struct http_range expected, const char *written)
{
	struct http_range r;
	char out[HTTP_RANGE_TEXT_MAX];

	assert_true(http_range_read(slice_from_string(text), &r));
	assert_int_equal(r.first, expected.first);
	assert_int_equal(r.last, expected.last);
	assert_int_equal(r.open, expected.open);
	assert_int_equal(r.suffix, expected.suffix);
	assert_true(slice_equals(http_range_text(&r, out), slice_from_string(written)));
}

static void test_ranges(void **state)
{
	static const char *const wrong[] = {"", "bytes", "bytes=", "bytes=-", "bytes=-0", "bytes=5",
	        "bytes=5-4", "bytes=0-1,3-4", "bytes=0-1,", "bytes=,0-1", "bytes=a-b", "bytes=0-b",
	        "bytes=+0-1", "bytes=0--1", "bytes=--1", "bytes=0 - 1", "bytes=0x0-0x1",
	        "bytes:0-1", "bytes 0-1", "byte=0-1", "items=0-1", " bytes=0-1", "bytes =0-1",
	        "bytes=4611686018427387905-", "bytes=0-4611686018427387905",
	        "bytes=-4611686018427387905", "bytes=0-18446744073709551616", "bytes=0-1;q=1"};
	struct http_range r;

	(void)state;
	reads("bytes=0-0", (struct http_range){0}, "bytes=0-0");
	reads("bytes=10-99", (struct http_range){.first = 10, .last = 99}, "bytes=10-99");
	reads("ByTeS=10-", (struct http_range){.first = 10, .open = true}, "bytes=10-");
	reads("bytes= -10\t", (struct http_range){.suffix = 10}, "bytes=-10");
	reads("bytes=0007-4611686018427387904",
	        (struct http_range){.first = 7, .last = HTTP_POSITION_MAX},
	        "bytes=7-4611686018427387904");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (http_range_read(slice_from_string(wrong[i]), &r))
			fail_msg("%s", wrong[i]);
	assert_false(http_range_read(slice_of("bytes=0-1\0", 10), &r));
}

static void test_content_ranges(void **state)
{
	static const char *const wrong[] = {"", "bytes", "bytes ", "bytes 0-1", "bytes 0-1/",
	        "bytes */10", "bytes 0-9/9", "bytes 5-4/10", "bytes -4/10", "bytes 0-/10",
	        "bytes 0-1/10/10", "bytes 0-1/**", "bytes 0-1/ 10", "bytes  0-1/10", "bytes=0-1/10",
	        "items 0-1/10", "bytes 0-1/4611686018427387905", "bytes 0-18446744073709551616/*",
	        "bytes 0-1-2/10", "bytes 0-1/10, bytes 2-3/10", " bytes 0-1/10", "bytes 0-1/10 "};
	char out[HTTP_RANGE_TEXT_MAX];
	struct http_content_range r;

	(void)state;
	assert_true(http_content_range_read(SLICE("bytes 0-9/10"), &r));
	assert_true(r.first == 0 && r.last == 9 && r.has_total && r.total == 10);
	assert_true(slice_equals(http_content_range_text(&r, out), SLICE("bytes 0-9/10")));
	assert_true(http_content_range_read(SLICE("Bytes 5-9/*"), &r));
	assert_true(r.first == 5 && r.last == 9 && !r.has_total);
	assert_true(slice_equals(http_content_range_text(&r, out), SLICE("bytes 5-9/*")));
	r = (struct http_content_range){HTTP_POSITION_MAX, HTTP_POSITION_MAX, UINT64_MAX, true};
	assert_int_equal(http_content_range_text(&r, out).n, 6 + 19 + 1 + 19 + 1 + 20);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (http_content_range_read(slice_from_string(wrong[i]), &r))
			fail_msg("%s", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_ranges),
	        cmocka_unit_test(test_content_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
