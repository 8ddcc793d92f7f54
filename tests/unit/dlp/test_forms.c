/* SPDX-License-Identifier: Apache-2.0 */
/* dlp/scan: keys in forms, where "+" is a space, and behind the length that messages of Protocol
 * Buffers give a text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "vethguard/dlp/scan.h"

#define TEXT_MAX 4096u
#define KEY "AKIAIOSFODNN7QXM3PLZ"
#define BODY "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
#define SK "sk-x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dEuZ8gXoN2iMlP4wS7a" /* 51 bytes */

#define ESCAPED "k-x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dEuZ8gXoN2iMlP4wS7a" /* behind "%73" */

static struct dlp_scanner *scanner;

static const char *name_in(struct slice text)
{
	static const struct dlp_question any = {0};
	struct dlp_finding f;

	return dlp_scan(scanner, &any, text, &f) ? dlp_format_name(f.format) : "none";
}

/* As browsers encode the value of a field. */
static size_t encode_form(const uint8_t *p, size_t n, char *out)
{
	size_t at = (size_t)sprintf(out, "a=1&b=");

	for (size_t i = 0; i < n; i++)
		if (p[i] == ' ')
			out[at++] = '+';
		else if (isalnum(p[i]))
			out[at++] = (char)p[i];
		else
			at += (size_t)sprintf(out + at, "%%%02X", p[i]);
	return at + (size_t)sprintf(out + at, "&c=3");
}

static void test_texts_in_forms(void **state)
{
	static const char *const texts[] = {"-----BEGIN PRIVATE KEY-----\n" BODY "\n",
	        "-----BEGIN RSA PRIVATE KEY-----\r\n" BODY "\r\n",
	        "-----BEGIN PRIVATE KEY----- " BODY " -----END PRIVATE KEY-----",
	        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" BODY};
	char out[TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		size_t n = encode_form((const uint8_t *)texts[i], strlen(texts[i]), out);

		assert_string_equal(name_in(slice_of(out, n)), "private-key");
	}
	assert_string_equal(
	        name_in(SLICE("k=-----BEGIN+PRIVATE+KEY-----+" BODY "+")), "private-key");
	assert_string_equal(name_in(SLICE("k=-----BEGIN+PUBLIC+KEY-----+" BODY "+")), "none");
	assert_string_equal(name_in(SLICE("k=-----BEGIN+PRIVATE+KEY-----+")), "none");
	assert_string_equal(name_in(SLICE("k=-----BEGIN%20PRIVATE+KEY-----+first")), "none");
}

/* Compressed data has bytes that are spaces, and pluses, at any place. */
static void test_compressed_data_in_forms(void **state)
{
	unsigned spaces = 0, pluses = 0;

	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		char text[64], out[TEXT_MAX];
		uint8_t packed[256];
		uLongf n = sizeof(packed);

		snprintf(text, sizeof(text), "%x " KEY, i * 2654435761u);
		assert_int_equal(
		        compress(packed, &n, (const Bytef *)text, (uLong)strlen(text)), Z_OK);
		spaces += memchr(packed, ' ', n) != NULL;
		pluses += memchr(packed, '+', n) != NULL;
		assert_string_equal(
		        name_in(slice_of(out, encode_form(packed, n, out))), "aws-access-key");
	}
	assert_true(spaces > 0);
	assert_true(pluses > 0);
}

/* A letter or digit before a key makes it part of another word, unless it is its length. */
static void test_lengths_of_texts(void **state)
{
	static const char *const none[] = {"a" SK, "4" SK, "0" SK, "x" SK " ", "Z" SK "\x12"};

	(void)state;
	assert_int_equal(strlen(SK), 51); /* '3' */
	assert_string_equal(name_in(SLICE("\n3" SK)), "generic-sk-key");
	assert_string_equal(name_in(SLICE("\n3" SK "\x12\x01x")), "generic-sk-key");
	assert_string_equal(name_in(SLICE("\n3" SK "B0")), "generic-sk-key"); /* the next field */
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_string_equal(name_in(slice_from_string(none[i])), "none");
}

/* The length is the escaped text's. */
static void test_lengths_of_escaped_texts(void **state)
{
	(void)state;
	assert_int_equal(strlen("%73" ESCAPED), 53); /* '5' */
	assert_string_equal(name_in(SLICE("\n5%73" ESCAPED)), "generic-sk-key");
	assert_string_equal(name_in(SLICE("\n5%73" ESCAPED "\x12\x01x")), "generic-sk-key");
	assert_string_equal(name_in(SLICE("\n9%73" ESCAPED)), "none");
	assert_string_equal(name_in(SLICE("\nx%73" ESCAPED)), "none");
	assert_string_equal(name_in(SLICE("\n0%73k")), "none");
	assert_string_equal(name_in(SLICE("0%41")), "none");
}

/* Pairs with a sign between are found wherever they stand, and only then. */
static void test_pairs_at_any_place(void **state)
{
	char text[512];

	(void)state;
	for (size_t before = 0; before < 100; before++)
		for (size_t behind = 0; behind < 100; behind += 9) {
			size_t at = before;

			memset(text, 'Q', sizeof(text));
			for (size_t i = 0; i < strlen(KEY); i++)
				at += (size_t)sprintf(text + at, "%02x-", KEY[i]);
			text[at] = 'Q';
			assert_string_equal(
			        name_in(slice_of(text, at - 1 + behind)), "aws-access-key");
			text[before + 32] = '_';
			assert_string_equal(name_in(slice_of(text, at - 1 + behind)), "none");
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_texts_in_forms),
	        cmocka_unit_test(test_compressed_data_in_forms),
	        cmocka_unit_test(test_lengths_of_texts),
	        cmocka_unit_test(test_lengths_of_escaped_texts),
	        cmocka_unit_test(test_pairs_at_any_place),
	};
	int rc;

	scanner = dlp_scanner_new();
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	dlp_scanner_free(scanner);
	return rc;
}
