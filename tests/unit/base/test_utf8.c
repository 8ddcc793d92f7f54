/* SPDX-License-Identifier: Apache-2.0 */
/* Every code point, everything that is not one, and each text cut in every place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "vethguard/base/utf8.h"

/* In one piece, in two of every kind, and byte by byte the verdict is the same. */
static bool is_text(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	struct utf8 whole = {0}, single = {0};
	bool right = utf8_feed(&whole, p, n) && utf8_is_whole(&whole), one = true;

	for (size_t cut = 0; cut <= n; cut++) {
		struct utf8 u = {0};

		assert_int_equal(utf8_feed(&u, p, cut) && utf8_feed(&u, p + cut, n - cut) &&
		                         utf8_is_whole(&u),
		        right);
	}
	for (size_t i = 0; i < n && one; i++)
		one = utf8_feed(&single, p + i, 1);
	assert_int_equal(one && utf8_is_whole(&single), right);
	return right;
}

/* The code point as so many bytes, also where fewer would do. */
static size_t encode(uint32_t code, size_t n, uint8_t out[4])
{
	static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};

	if (n == 1) {
		out[0] = (uint8_t)code;
		return 1;
	}
	for (size_t i = n - 1; i; i--, code >>= 6)
		out[i] = (uint8_t)(0x80 | (code & 0x3f));
	out[0] = (uint8_t)(lead[n] | code);
	return n;
}

static size_t shortest(uint32_t code)
{
	return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static void test_each_code_point(void **state)
{
	uint8_t bytes[4];

	(void)state;
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		bool surrogate = code >= 0xd800 && code <= 0xdfff;
		struct utf8 u = {0};
		size_t n = encode(code, shortest(code), bytes);

		if (utf8_feed(&u, bytes, n) && utf8_is_whole(&u) ? surrogate : !surrogate)
			fail_msg("U+%X", code);
	}
}

static void test_longer_than_need_be(void **state)
{
	uint8_t bytes[4];

	(void)state;
	for (size_t n = 2; n <= 4; n++)
		for (uint32_t code = 0; shortest(code) < n; code++) {
			struct utf8 u = {0};

			if (utf8_feed(&u, bytes, encode(code, n, bytes)))
				fail_msg("U+%X in %zu bytes", code, n);
		}
}

#define WRONG(text) assert_false(is_text(text, sizeof(text) - 1))
#define RIGHT(text) assert_true(is_text(text, sizeof(text) - 1))

static void test_what_is_no_text(void **state)
{
	(void)state;
	WRONG("\x80");
	WRONG("\xbf");
	WRONG("abc\xc3");
	WRONG("\xc3\xc3\xa4");
	WRONG("\xe2\x82");
	WRONG("\xe2\x82"
	      "a");
	WRONG("\xf0\x9f\x98");
	WRONG("\xf4\x90\x80\x80");
	WRONG("\xf5\x80\x80\x80");
	WRONG("\xf8\x88\x80\x80\x80");
	WRONG("\xfc\x84\x80\x80\x80\x80");
	WRONG("\xfe");
	WRONG("\xff");
	WRONG("\xc0\xaf");
	WRONG("\xed\xa0\x80\xed\xb0\x80");
	WRONG("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"
	      "edited");
	WRONG("\xe4\xbd\xa0\xe5\xa5\xbd\x80");
}

static void test_what_is(void **state)
{
	(void)state;
	RIGHT("");
	RIGHT("a\0b");
	RIGHT("\x7f");
	RIGHT("\xef\xbb\xbf");
	RIGHT("\xef\xbf\xbf\xef\xbf\xbe");
	RIGHT("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf");
	RIGHT("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80 and so on, in more than one block of "
	      "words");
}

/* One wrong byte at each place of a text that is longer than the blocks that are skipped. */
static void test_a_wrong_byte_anywhere(void **state)
{
	uint8_t text[100];

	(void)state;
	for (size_t at = 0; at < sizeof(text); at++) {
		struct utf8 u = {0};

		memset(text, 'x', sizeof(text));
		assert_true(utf8_feed(&u, text, sizeof(text)));
		text[at] = 0x80;
		assert_false(utf8_feed(&u, text, sizeof(text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_each_code_point),
	        cmocka_unit_test(test_longer_than_need_be),
	        cmocka_unit_test(test_what_is_no_text),
	        cmocka_unit_test(test_what_is),
	        cmocka_unit_test(test_a_wrong_byte_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
