/* SPDX-License-Identifier: Apache-2.0 */
/* Content types as honest and hostile upstreams write them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/redact/charset.h"

static bool searchable(const char *field, const char *type)
{
	static struct http_fields fields;

	fields = (struct http_fields){0};
	assert_true(http_add(&fields, SLICE("content-type"), SLICE("text/plain; charset=utf-8")));
	assert_true(http_add(&fields, slice_from_string(field), slice_from_string(type)));
	return charset_is_searchable(&fields);
}

static void test_others_are_refused(void **state)
{
	static const char *const types[] = {"text/plain; charset=utf-16",
	        "text/plain;charset=UTF-16LE", "text/plain; CharSet = \"utf-32\"",
	        "text/plain; charset='utf-7'", "charset=cp037", "text/plain; charset=iso-2022-jp",
	        "text/plain; charset=ibm500", "text/plain; charset=utf-8; charset=utf-16",
	        "text/plain; charset*=utf-16", "text/plain; x=\"; charset=utf-16\"",
	        "text/plain; charset=\t utf-1", "text/plain; charset=u",
	        "text/plain; charsetcharset=ucs-2", "text/plain; charset=hz-gb-2312",
	        "text/plain; charset=nobodys", "text/plain; charset*=utf-8''utf-16",
	        "text/plain; charset*=UTF-8'en'utf%2D16", "text/plain; charset*=us-ascii''utf-8",
	        "text/plain; charset*0=\"utf-\"; charset*1=\"16\"",
	        "text/plain; charset*0*=utf-8''utf-; charset*1=16", "text/plain; charset *=utf-8",
	        "text/plain; charset=\"ut\\f-16\"", "text/plain; charset=\"utf-16",
	        "text/plain; charset=\"utf-8", "text/plain; charset=\"utf-8\\",
	        "text/plain; charset=utf-8-16", "text/plain; charset=utf8utf16",
	        "text/plain; charset=binary16", "text/plain; charset=latin-greek-1",
	        "text/plain; charset=utf\\-8",
	        "text/plain; charset=utf-8, text/plain; charset=utf-16",
	        "text/plain; charset=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (searchable("Content-Type", types[i]) || searchable("content_type", types[i]))
			fail_msg("%s", types[i]);
}

static void test_those_that_hold_ascii_pass(void **state)
{
	static const char *const types[] = {"", "text/plain", "application/octet-stream",
	        "application/json; charset=utf-8", "text/html;charset=UTF-8",
	        "text/html; charset=\"utf-8\"", "text/html; charset=ISO-8859-1",
	        "text/html; charset=windows-1252", "text/html; charset=us-ascii",
	        "text/html; charset=", "text/html; charset=; x=1", "text/html; charset",
	        "text/charset", "text/html; charset=GBK", "text/html; charset=euc-jp",
	        "text/html; charse", "text/html; charset=\"ut\\f-8\"",
	        "text/html; charset=\" utf-8 \"", "text/html; charset=utf-8; boundary=\"x;y\"",
	        "text/html; charset=latin1", "text/html; charset='iso-8859-15'",
	        "text/html; charset=utf-8,text/html", "text/html; charset=unicode-1-1-utf-8",
	        "text/html;charset= ISO-8859-8-I"};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!searchable("Content-Type", types[i]))
			fail_msg("%s", types[i]);
	assert_true(searchable("x-other", "text/plain; charset=utf-16"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_others_are_refused),
	        cmocka_unit_test(test_those_that_hold_ascii_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
