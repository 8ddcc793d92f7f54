/* SPDX-License-Identifier: Apache-2.0 */
/* vsock_name: one form for one place, and everything that is not it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "vethguard/wire/vsock_name.h"

static void good(void **state)
{
	static const struct {
		const char *text;
		uint32_t cid, port;
	} cases[] = {{"vsock:3:1", 3, 1}, {"vsock:1:3128", 1, 3128},
	        {"vsock:4294967294:4294967294", UINT32_MAX - 1, UINT32_MAX - 1}};
	char text[VSOCK_NAME_MAX];
	struct vsock_name n;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(vsock_name_is(slice_from_string(cases[i].text)));
		assert_null(vsock_name_parse(slice_from_string(cases[i].text), &n));
		assert_int_equal(n.cid, cases[i].cid);
		assert_int_equal(n.port, cases[i].port);
		assert_string_equal(vsock_name_format(&n, text), cases[i].text);
	}
}

static void bad(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {{"", "vsock:CID:PORT"}, {"vsock", "vsock:CID:PORT"},
	        {"vsock:", "vsock:CID:PORT"}, {"vsock:7", "vsock:CID:PORT"},
	        {"vsock:7:", "vsock:CID:PORT"}, {"vsock::7", "vsock:CID:PORT"},
	        {"vsock:7:8:9", "vsock:CID:PORT"}, {"vsock:7:8 ", "vsock:CID:PORT"},
	        {"vsock: 7:8", "vsock:CID:PORT"}, {"vsock:-7:8", "vsock:CID:PORT"},
	        {"vsock:+7:8", "vsock:CID:PORT"}, {"vsock:07:8", "vsock:CID:PORT"},
	        {"vsock:7:08", "vsock:CID:PORT"}, {"vsock:0x7:8", "vsock:CID:PORT"},
	        {"VSOCK:7:8", "vsock:CID:PORT"}, {"/vsock:7:8", "vsock:CID:PORT"},
	        {"vsock:7:99999999999999999999", "vsock:CID:PORT"},
	        {"vsock:7:00000000000000000000000008", "vsock:CID:PORT"}, {"vsock:0:8", "CID"},
	        {"vsock:2:8", "CID"}, {"vsock:4294967295:8", "CID"}, {"vsock:4294967296:8", "CID"},
	        {"vsock:7:0", "port"}, {"vsock:7:4294967295", "port"},
	        {"vsock:7:4294967296", "port"}};
	struct vsock_name n = {9, 9};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = vsock_name_parse(slice_from_string(cases[i].text), &n);

		assert_non_null(why);
		assert_non_null(strstr(why, cases[i].why));
		assert_int_equal(n.cid, 9);
	}
	assert_false(vsock_name_is(SLICE("/vsock:7:8")));
	assert_non_null(vsock_name_parse(slice_of("vsock:7:8\0", 10), &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(good), cmocka_unit_test(bad)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
