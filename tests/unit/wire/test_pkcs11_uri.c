/* SPDX-License-Identifier: Apache-2.0 */
/* pkcs11_uri: what RFC 7512 permits and identifies a key, and everything else with its reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "vethguard/wire/pkcs11_uri.h"

static struct pkcs11_uri uri;

static void expect_bytes_of(enum pkcs11_attribute attribute, const char *bytes, size_t n)
{
	assert_true(uri.values[attribute].given);
	assert_int_equal(uri.values[attribute].n, n);
	assert_memory_equal(uri.values[attribute].bytes, bytes, n);
}

static void test_good(void **state)
{
	(void)state;
	assert_null(pkcs11_uri_parse(
	        SLICE("pkcs11:token=The%20Software%20PKCS%2311%20softtoken;manufacturer=Snake%"
	              "20Oil,%20Inc."
	              ";model=1.0;serial=4711;object=a%C3%A4;id=%69%95%00%7f;type=private"),
	        &uri));
	expect_bytes_of(PKCS11_TOKEN, "The Software PKCS#11 softtoken", 30);
	expect_bytes_of(PKCS11_MANUFACTURER, "Snake Oil, Inc.", 15);
	expect_bytes_of(PKCS11_MODEL, "1.0", 3);
	expect_bytes_of(PKCS11_SERIAL, "4711", 4);
	expect_bytes_of(PKCS11_OBJECT, "a\xc3\xa4", 3);
	expect_bytes_of(PKCS11_ID, "\x69\x95\0\x7f", 4);
	assert_false(uri.has_slot);
	assert_null(pkcs11_uri_parse(SLICE("pkcs11:slot-id=4294967295;id=x"), &uri));
	assert_true(uri.has_slot && uri.slot == UINT32_MAX);
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	        {"", "begin with"},
	        {"pkcs12:token=a;object=b", "begin with"},
	        {"PKCS11:token=a;object=b", "begin with"},
	        {"pkcs11:", "which token"},
	        {"pkcs11:object=b", "which token"},
	        {"pkcs11:model=m;object=b", "which token"},
	        {"pkcs11:token=a", "which key"},
	        {"pkcs11:token=a;type=private", "which key"},
	        {"pkcs11:token=;object=b", "empty"},
	        {"pkcs11:token=a;object=", "empty"},
	        {"pkcs11:token=a;id=", "empty"},
	        {"pkcs11:token=a;token=a;object=b", "twice"},
	        {"pkcs11:token=a;object=b;object=c", "twice"},
	        {"pkcs11:slot-id=1;slot-id=1;object=b", "twice"},
	        {"pkcs11:slot-id=4294967296;object=b", "decimal"},
	        {"pkcs11:slot-id=-1;object=b", "decimal"},
	        {"pkcs11:slot-id=;object=b", "decimal"},
	        {"pkcs11:token=a;object=b;type=cert", "private"},
	        {"pkcs11:token=a;object=b;type=", "private"},
	        {"pkcs11:token=a;object=b;library-version=3", "known attributes"},
	        {"pkcs11:token=a;object=b;x-vendor=3", "known attributes"},
	        {"pkcs11:Token=a;object=b", "known attributes"},
	        {"pkcs11:token=a;;object=b", "NAME=VALUE"},
	        {"pkcs11:token=a;object", "NAME=VALUE"},
	        {"pkcs11:token=a b;object=b", "percent-encoded"},
	        {"pkcs11:token=\xc3\xa4;object=b", "percent-encoded"},
	        {"pkcs11:token=a/b;object=b", "percent-encoded"},
	        {"pkcs11:token=a%2;object=b", "hexadecimal"},
	        {"pkcs11:token=a;object=b%", "hexadecimal"},
	        {"pkcs11:token=a;object=b%4", "hexadecimal"},
	        {"pkcs11:token=a;object=b%4g", "hexadecimal"},
	        {"pkcs11:token=a%00;object=b", "NUL"},
	        {"pkcs11:token=a;object=b?pin-value=1234", "pin of the token"},
	        {"pkcs11:token=a;object=b?pin-source=file:/x", "pin of the token"},
	        {"pkcs11:token=a;object=b?module-path=/x.so", "module of the token"},
	        {"pkcs11:token=a;object=b?module-name=x", "module of the token"},
	        {"pkcs11:token=a;object=b?", "'?'"},
	        {"pkcs11:token=a;object=b?x=y", "'?'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = pkcs11_uri_parse(slice_from_string(cases[i].text), &uri);

		if (!why || !strstr(why, cases[i].why))
			fail_msg("%s: %s", cases[i].text, why ? why : "accepted");
	}
}

static void test_bounds(void **state)
{
	char text[PKCS11_URI_MAX + 64] = "pkcs11:token=a;object=";
	const size_t before = strlen(text);

	(void)state;
	memset(text + before, 'x', PKCS11_VALUE_MAX + 1);
	assert_null(pkcs11_uri_parse(slice_of(text, before + PKCS11_VALUE_MAX), &uri));
	assert_non_null(pkcs11_uri_parse(slice_of(text, before + PKCS11_VALUE_MAX + 1), &uri));
	for (size_t i = 0; i < PKCS11_VALUE_MAX + 1; i++)
		memcpy(text + before + 3 * i, "%41", 3);
	assert_null(pkcs11_uri_parse(slice_of(text, before + 3 * PKCS11_VALUE_MAX), &uri));
	assert_int_equal(uri.values[PKCS11_OBJECT].n, PKCS11_VALUE_MAX);
	assert_int_equal(uri.values[PKCS11_OBJECT].bytes[PKCS11_VALUE_MAX - 1], 'A');
	assert_non_null(pkcs11_uri_parse(slice_of(text, before + 3 * PKCS11_VALUE_MAX + 3), &uri));
	memset(text, 'p', sizeof(text));
	memcpy(text, "pkcs11:", 7);
	assert_non_null(strstr(pkcs11_uri_parse(slice_of(text, PKCS11_URI_MAX + 1), &uri), "1024"));
}

static void test_a_token_only(void **state)
{
	static const char *const labels[] = {
	        "a", "clients", "Node 7 (User)", "x;y=z%&?", "\xc3\xa4"};
	char text[PKCS11_TOKEN_URI_MAX], longest[40];

	(void)state;
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		pkcs11_uri_of_token(slice_from_string(labels[i]), text);
		assert_null(pkcs11_uri_parse_token(slice_from_string(text), &uri));
		expect_bytes_of(PKCS11_TOKEN, labels[i], strlen(labels[i]));
		assert_false(pkcs11_uri_names_key(&uri));
		assert_non_null(
		        strstr(pkcs11_uri_parse(slice_from_string(text), &uri), "which key"));
	}
	memset(longest, '\xff', sizeof(longest));
	pkcs11_uri_of_token(slice_of(longest, 32), text);
	assert_null(pkcs11_uri_parse_token(slice_from_string(text), &uri));
	expect_bytes_of(PKCS11_TOKEN, longest, 32);
	pkcs11_uri_of_token(slice_of(longest, 33), text); /* cut: no token has such a label */
	assert_null(pkcs11_uri_parse_token(slice_from_string(text), &uri));
	assert_null(pkcs11_uri_parse_token(SLICE("pkcs11:serial=1;id=%01"), &uri));
	assert_true(pkcs11_uri_names_key(&uri));
	assert_non_null(pkcs11_uri_parse_token(SLICE("pkcs11:object=x"), &uri));
	assert_non_null(pkcs11_uri_parse_token(SLICE("pkcs11:token="), &uri));
	assert_non_null(pkcs11_uri_parse_token(SLICE("pkcs11:token=a?pin-value=1"), &uri));
}

static void test_matches(void **state)
{
	unsigned char label[32];

	(void)state;
	memset(label, ' ', sizeof(label));
	memcpy(label, "company", 7);
	assert_null(pkcs11_uri_parse(SLICE("pkcs11:token=company;object=b"), &uri));
	assert_true(pkcs11_uri_matches(&uri, PKCS11_TOKEN, label, sizeof(label)));
	assert_true(pkcs11_uri_matches(&uri, PKCS11_SERIAL, label, sizeof(label)));
	label[7] = '2';
	assert_false(pkcs11_uri_matches(&uri, PKCS11_TOKEN, label, sizeof(label)));
	memset(label, ' ', sizeof(label));
	assert_false(pkcs11_uri_matches(&uri, PKCS11_TOKEN, label, sizeof(label)));
	memset(label, 0, sizeof(label));
	memcpy(label, "compan", 6);
	assert_false(pkcs11_uri_matches(&uri, PKCS11_TOKEN, label, sizeof(label)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
	        cmocka_unit_test(test_bounds), cmocka_unit_test(test_a_token_only),
	        cmocka_unit_test(test_matches)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
