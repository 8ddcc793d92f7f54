/* SPDX-License-Identifier: Apache-2.0 */
/* base64 both ways, and all that is not base64. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/base64.h"

/* In memory of exactly its size: reading one byte beyond is a report. */
static ssize_t decode(const char *text, unsigned accept, char *out, size_t cap)
{
	size_t n = strlen(text);
	char *copy = malloc(n + 1), *room = malloc(cap + 1);
	ssize_t got;

	memcpy(copy + 1, text, n);
	got = base64_decode(slice_of(copy + 1, n), accept, room + 1, cap);
	if (got > 0)
		memcpy(out, room + 1, (size_t)got);
	free(room);
	free(copy);
	return got;
}

/* RFC 4648 section 10. */
static void test_both_ways(void **state)
{
	static const char *const rows[][3] = {{"", "", ""}, {"f", "Zg==", "Zg"},
	        {"fo", "Zm8=", "Zm8"}, {"foo", "Zm9v", "Zm9v"}, {"foob", "Zm9vYg==", "Zm9vYg"},
	        {"fooba", "Zm9vYmE=", "Zm9vYmE"}, {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
	        {"\xfb\xff\xbf", "+/+/", "-_-_"}};
	static const unsigned all[] = {
	        BASE64_STRICT, BASE64_EITHER, BASE64_LENIENT, BASE64_EITHER | BASE64_LENIENT};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = strlen(rows[i][0]);
		struct buf out;
		char text[16];

		buf_init(&out, 64);
		assert_int_equal(base64_append(&out, slice_of(rows[i][0], n)), 0);
		assert_true(slice_equals(buf_slice(&out), slice_from_string(rows[i][1])));
		assert_int_equal(
		        base64_encode(rows[i][0], n, base64_url, text), strlen(rows[i][2]));
		assert_memory_equal(text, rows[i][2], strlen(rows[i][2]));
		for (size_t j = 0; j < sizeof(all) / sizeof(*all); j++) {
			assert_int_equal(decode(rows[i][1], all[j], text, 8), n);
			assert_memory_equal(text, rows[i][0], n);
		}
		assert_int_equal(decode(rows[i][1], BASE64_LINES, text, 8), n);
		assert_int_equal(decode(rows[i][2], BASE64_EITHER, text, 8), n);
		assert_memory_equal(text, rows[i][0], n);
		buf_fini(&out);
	}
}

static void test_every_byte(void **state)
{
	uint8_t bytes[3], got[3];
	char text[4];

	(void)state;
	for (unsigned v = 0; v < 1u << 16; v++) {
		bytes[0] = (uint8_t)v;
		bytes[1] = (uint8_t)(v >> 8);
		bytes[2] = (uint8_t)(v * 7);
		assert_int_equal(base64_encode(bytes, 3, base64_standard, text), 4);
		assert_int_equal(base64_decode(slice_of(text, 4), BASE64_STRICT, got, 3), 3);
		assert_memory_equal(got, bytes, 3);
	}
}

static void test_refused(void **state)
{
	static const char *const never[] = {"Zm9v!", "Zg=a", "Zm9v\x01", "=Zm9",
	        "Zg===", "Zm9v====", "\xc3\xa4==", "Zm9v,Zm9v"};
	static const char *const strict[] = {"A", "Zm9vY",
	        "Zh==", "Zm9=", "Zg=", "Zm9v=", "Zm9v==", "=", "==", "-_-_", "Zm 9v", "Zm9v\n"};
	char out[16];

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
		for (unsigned accept = 0; accept < 8; accept++)
			assert_int_equal(decode(never[i], accept, out, 16), -EBADMSG);
	for (size_t i = 0; i < sizeof(strict) / sizeof(*strict); i++)
		assert_int_equal(decode(strict[i], BASE64_STRICT, out, 16), -EBADMSG);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(decode(strict[i], BASE64_EITHER, out, 16), -EBADMSG);
}

/* Text that other readers accept as base64: a placeholder in it is found. */
static void test_lenient(void **state)
{
	static const char *const rows[][2] = {{"A", ""}, {"Zm9vY", "foo"}, {"Zh==", "f"},
	        {"Zm9=", "fo"}, {"Zg=", "f"}, {"Zm9v=", "foo"}, {"Zm9v==", "foo"}};
	char out[16];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = strlen(rows[i][1]);

		assert_int_equal(decode(rows[i][0], BASE64_LENIENT, out, 16), n);
		assert_memory_equal(out, rows[i][1], n);
	}
	assert_int_equal(decode("-_-_", BASE64_LENIENT, out, 16), -EBADMSG);
	assert_int_equal(decode("Zm9v\n", BASE64_LENIENT, out, 16), -EBADMSG);
}

/* As a PEM file has it. */
static void test_lines(void **state)
{
	static const char *const bad[] = {
	        "Zg", "Zm8", "Zm9vZ", "Zg=\n", "Z\ng=\n=\n=", "Zg==\nZg==", "Zm9v\vZm9v"};
	char out[16];

	(void)state;
	assert_int_equal(decode("\r\nZm\t9v\r\n Zg=\n=\n", BASE64_LINES, out, 16), 4);
	assert_memory_equal(out, "foof", 4);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(decode(bad[i], BASE64_LINES, out, 16), -EBADMSG);
}

static void test_bounds(void **state)
{
	struct buf two;
	char out[16];

	(void)state;
	buf_init(&two, 2);
	assert_int_equal(base64_append(&two, SLICE("f")), -ENOBUFS);
	buf_fini(&two);
	assert_int_equal(decode("Zm9v", BASE64_STRICT, out, 3), 3);
	assert_int_equal(decode("Zm9v", BASE64_STRICT, out, 2), -ENOBUFS);
	assert_int_equal(decode("Zm9v", BASE64_STRICT, out, 0), -ENOBUFS);
	assert_int_equal(decode("Zg==", BASE64_LINES, out, 1), 1);
	assert_int_equal(decode("", BASE64_STRICT, out, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_both_ways),
	        cmocka_unit_test(test_every_byte),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_lenient),
	        cmocka_unit_test(test_lines),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
