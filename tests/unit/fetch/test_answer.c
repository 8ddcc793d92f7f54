/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken out of answers: elements of XML, ends of lifetimes, fields of secrets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fetch/services/services.h"

static void test_elements(void **state)
{
	static const struct {
		const char *xml, *text;
	} rows[] = {{"<Id>AKIA</Id>", "AKIA"}, {"<a><b><Id>x/+=</Id></b></a>", "x/+="},
	        {"<Id></Id>", ""}, {"<Ids>1</Ids><Id>2</Id><IdX>3</IdX>", "2"},
	        {"</Id><Id>late</Id>", "late"}};
	struct slice text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(https_xml_element(slice_from_string(rows[i].xml), "Id", &text));
		assert_true(slice_equals(text, slice_from_string(rows[i].text)));
	}
}

static void test_elements_that_are_none(void **state)
{
	static const char *const rows[] = {"", "<", "<Id", "<Id>", "<Id>x", "<Id>x<", "<Id>x</Id",
	        "<Id>x</id>", "<id>x</id>", "<Id a='b'>x</Id>", "<Id/>", "<Id>x</Idx>",
	        "<Id>x&amp;y</Id>", "<Id><b>x</b></Id>", "<Id><![CDATA[x]]></Id>",
	        "<Id>x<!-- y --></Id>", "<Id>1</Id><Id>2</Id>", "<Id>1</Id><Id>", "< Id>x</ Id>"};
	char longer[80];
	struct slice text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_false(https_xml_element(slice_from_string(rows[i]), "Id", &text));
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_false(https_xml_element(SLICE("<a>x</a>"), longer, &text));
}

static void test_ends(void **state)
{
	static const char *const none[] = {"", "x", "2030-01-01", "2030-01-01T00:00:00",
	        "2030-01-01T00:00:00+01:00", "2030-01-01T00:00:00.Zx", "2030-01-01T00:00:00.5",
	        "2030-13-01T00:00:00Z", "1999-01-01T00:00:00Z"};
	const time_t soon = time(NULL) + 100;
	struct fetched out = {0};
	char text[64];
	struct tm tm;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		fetched_ends(&out, none[i]);
	fetched_ends(&out, NULL);
	assert_int_equal(out.ttl_s, 0);
	gmtime_r(&soon, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.123456789Z", &tm);
	fetched_ends(&out, text);
	assert_in_range(out.ttl_s, 90, 100);
	fetched_ends(&out, "9999-01-01T00:00:00Z");
	assert_int_equal(out.ttl_s, FETCH_LIFETIME_MAX_S);
}

static bool take(const char *field, const char *secret, struct fetched *out, char *fault)
{
	char argument[64];
	struct fetch_request r = {.message = {.argument_count = 2}};

	snprintf(argument, sizeof(argument), "field=%s", field);
	r.message.arguments[1] = slice_from_string(argument);
	buf_consume(&out->value, out->value.len);
	return fetched_take_secret(&r, slice_from_string(secret), out, fault);
}

static void test_fields_of_secrets(void **state)
{
	struct fetched out = {0};
	char fault[HTTPS_TEXT_MAX];

	(void)state;
	private_buf_init(&out.value, 16);
	assert_true(take("", "{\"a\": \"b\"}", &out, fault));
	assert_true(slice_equals(buf_slice(&out.value), SLICE("{\"a\": \"b\"}")));
	assert_true(take("a", "{\"a\": \"b\"}", &out, fault));
	assert_true(slice_equals(buf_slice(&out.value), SLICE("b")));
	assert_false(take("c", "{\"a\": \"b\"}", &out, fault));
	assert_false(take("a", "{\"a\": 1}", &out, fault));
	assert_false(take("a", "{\"a\": \"b\", \"a\": \"c\"}", &out, fault));
	assert_false(take("a", "[\"a\"]", &out, fault));
	assert_false(take("a", "a", &out, fault));
	assert_non_null(strstr(fault, "not a JSON object"));
	assert_false(take("", "seventeen letters", &out, fault));
	assert_non_null(strstr(fault, "longer than a credential"));
	assert_false(take("a", "{\"a\": \"seventeen letters\"}", &out, fault));
	private_buf_fini(&out.value);
}

static void test_who_is_to_blame(void **state)
{
	char fault[HTTPS_TEXT_MAX];

	(void)state;
	memset(fault, 'x', sizeof(fault));
	fault[sizeof(fault) - 1] = '\0';
	fetched_blame("STS", fault);
	assert_memory_equal(fault, "STS: xxx", 8);
	assert_true(strlen(fault) < HTTPS_TEXT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_elements),
	        cmocka_unit_test(test_elements_that_are_none), cmocka_unit_test(test_ends),
	        cmocka_unit_test(test_fields_of_secrets), cmocka_unit_test(test_who_is_to_blame)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
