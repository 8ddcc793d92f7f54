/* SPDX-License-Identifier: Apache-2.0 */
/* Basic credentials in a field, and base64 both ways. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "proxy/http/basic.h"

static void test_credentials(void **state)
{
	static const char *const rows[][2] = {{"Basic dTpw", "dTpw"}, {"bAsIc   dTpw ", "dTpw"},
	        {"Basic", ""}, {"Basic ", ""}, {"Basicx dTpw", ""}, {"Bearer dTpw", ""}, {"", ""}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_true(slice_equals(basic_credentials(slice_from_string(rows[i][0])),
		        slice_from_string(rows[i][1])));
}

/* RFC 4648 section 10. */
static void test_both_ways(void **state)
{
	static const char *const rows[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="},
	        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
	        {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "+/+/"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct slice plain = slice_from_string(rows[i][0]);
		struct slice coded = slice_from_string(rows[i][1]);
		struct buf out;

		buf_init(&out, 64);
		assert_int_equal(basic_encode(&out, plain), 0);
		assert_true(slice_equals(buf_slice(&out), coded));
		buf_consume(&out, out.len);
		assert_int_equal(basic_decode(&out, coded), 0);
		assert_true(slice_equals(buf_slice(&out), plain));
		buf_consume(&out, out.len);
		while (coded.n && coded.p[coded.n - 1] == '=')
			coded.n--;
		assert_int_equal(basic_decode(&out, coded), 0);
		assert_true(slice_equals(buf_slice(&out), plain));
		buf_fini(&out);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {"Zm9v!", "Zm 9v", "Zg=a", "-_-_", "Zm9v\n", "=Zm9"};
	struct buf out;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		buf_init(&out, 64);
		assert_int_equal(basic_decode(&out, slice_from_string(bad[i])), -EBADMSG);
		buf_fini(&out);
	}
	buf_init(&out, 2);
	assert_int_equal(basic_decode(&out, SLICE("Zm9v")), -ENOBUFS);
	assert_int_equal(basic_encode(&out, SLICE("f")), -ENOBUFS);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_credentials),
	        cmocka_unit_test(test_both_ways),
	        cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
