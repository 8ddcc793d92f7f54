/* SPDX-License-Identifier: Apache-2.0 */
/* Basic credentials in a field. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_credentials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
