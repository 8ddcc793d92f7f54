/* SPDX-License-Identifier: Apache-2.0 */
/* Finds placeholders in hex digits, in host names, and in texts that come in pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "credential/store_placeholders.h"
#include "vethguard/base/base64.h"
#include "vethguard/credential/store.h"

#define ONE "vethguard-api-0123456789abcdef"
#define TWO "sk-Vg-vethguard.XYZ0000000000000"

static struct placeholders set;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(placeholders_add(&set, 0, SLICE(ONE)), 0);
	assert_int_equal(placeholders_add(&set, 1, SLICE(TWO)), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	placeholders_fini(&set);
	return 0;
}

/* Writes the text as hex digits: each pair of digits between `before` and `after`, and one digit
 * that does not belong to the text at either end. */
static struct slice hex_between(
        const char *text, const char *digits, const char *before, const char *after, char *out)
{
	size_t n = 0;

	out[n++] = 'f';
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;

		n += (size_t)sprintf(
		        out + n, "%s%c%c%s", before, digits[c >> 4], digits[c & 15], after);
	}
	out[n++] = '0';
	return slice_of(out, n);
}

static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

static struct slice hex(const char *text, char *out)
{
	return hex_between(text, lower, "", "", out);
}

static void test_hex(void **state)
{
	char text[256];

	(void)state;
	assert_true(placeholders_mentioned(&set, hex(ONE, text), 0));
	assert_true(placeholders_mentioned(&set, hex_between(ONE, upper, "", "", text), 0));
	assert_true(placeholders_mentioned(&set, hex_between(TWO, upper, "", "", text), 0));
	assert_false(placeholders_mentioned(&set, hex(ONE, text), 1));
	assert_true(placeholders_mentioned(&set, hex(ONE, text), 2));
}

static void test_no_hex(void **state)
{
	char text[256], whole[256];
	struct slice all = hex(ONE, whole);

	(void)state;
	assert_false(placeholders_in_hex(&set, SLICE(""), 0));
	assert_false(placeholders_in_hex(&set, SLICE("766574686775617264"), 0));
	assert_false(placeholders_in_hex(&set, hex("vethguard-other-0123456789abcdef", text), 0));
	assert_false(placeholders_in_hex(&set, hex("Vethguard-api-0123456789abcdef", text), 0));
	assert_false(placeholders_in_hex(&set, hex_between(ONE, lower, "", " ", text), 0));
	for (size_t cut = 1; cut < all.n - 1; cut++) { /* leaves out one digit */
		memcpy(text, all.p, cut);
		memcpy(text + cut, all.p + cut + 1, all.n - cut - 1);
		text[0] = 'g';
		assert_false(placeholders_in_hex(&set, slice_of(text, all.n - 2), 0));
	}
}

static void test_names(void **state)
{
	static const char *const found[] = {ONE ".test", "a." ONE,
	        "VETHGUARD-API-0123456789ABCDEF.x", "vethguard-a.pi-01234.56789abcdef.evil.test",
	        "sk-vg-vethguardxyz0000000000000.test"};
	static const char *const not_found[] = {
	        "", ".", "vethguard.test", "vethguard-api-0123456789abcde.test", "www.lab.test"};
	char text[256];
	struct slice digits;

	(void)state;
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		assert_true(placeholders_in_name(&set, slice_from_string(found[i])));
	for (size_t i = 0; i < sizeof(not_found) / sizeof(not_found[0]); i++)
		assert_false(placeholders_in_name(&set, slice_from_string(not_found[i])));
	digits = hex(ONE, text);
	text[30] = '.'; /* replaces a digit */
	assert_false(placeholders_in_name(&set, digits));
	memmove(text + 31, text + 30, digits.n - 30);
	hex(ONE, text);
	memmove(text + 31, text + 30, digits.n - 30);
	text[30] = '.';
	assert_true(placeholders_in_name(&set, slice_of(text, digits.n + 1)));
}

/* A placeholder in any form is found with the last piece of it, whether the text is cut in two at
 * any byte or comes byte by byte. */
static void test_pieces(void **state)
{
	char forms[4][256];
	struct slice texts[4];
	size_t n = base64_encode("ab" ONE, sizeof("ab" ONE) - 1, base64_standard, forms[1]);

	(void)state;
	texts[0] = SLICE("xx" ONE "yy");
	texts[1] = slice_of(forms[1], n);
	texts[2] = hex(ONE, forms[2]);
	texts[3] = hex_between(ONE, lower, "%", "", forms[3]);
	for (size_t f = 0; f < 4; f++) {
		const uint8_t *p = (const uint8_t *)texts[f].p;
		struct credential_scan scan = {0};
		bool found = false;

		for (size_t cut = 1; cut < texts[f].n; cut++) {
			struct credential_scan two = {0};
			bool first = placeholders_scan(&set, &two, p, cut, 0);

			assert_true(first ||
			            placeholders_scan(&set, &two, p + cut, texts[f].n - cut, 0));
		}
		for (size_t i = 0; i < texts[f].n && !found; i++)
			found = placeholders_scan(&set, &scan, p + i, 1, 0);
		assert_true(found);
	}
}

static void test_pieces_of_none(void **state)
{
	static const char text[] = "vethguard-api-0123456789abcdeX vethguard vethguard-api-";
	struct credential_scan scan = {0};

	(void)state;
	for (int round = 0; round < 100; round++)
		for (size_t i = 0; i < sizeof(text) - 1; i++)
			assert_false(
			        placeholders_scan(&set, &scan, (const uint8_t *)text + i, 1, 0));
	assert_true(scan.n <= sizeof(scan.end));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_hex),
	        cmocka_unit_test(test_no_hex), cmocka_unit_test(test_names),
	        cmocka_unit_test(test_pieces), cmocka_unit_test(test_pieces_of_none)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
