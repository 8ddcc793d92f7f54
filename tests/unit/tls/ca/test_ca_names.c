/* SPDX-License-Identifier: Apache-2.0 */
/* What an intermediate may sign for: the text, its bounds, and the extension that comes of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "vethguard/tls/ca.h"
#include "vethguard/tls/ca_names.h"

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;

	assert_true(ip_prefix_parse(slice_from_string(text), &p));
	return p;
}

static const char *text_of(struct ca_names *names)
{
	assert_int_equal(buf_append(&names->text, "", 1), 0);
	return (const char *)buf_bytes(&names->text);
}

static void kinds_without_a_name_are_excluded(void **state)
{
	struct ip_prefix four = prefix("10.2.0.0/16"), six = prefix("fd00::/8");
	struct ca_names names;

	(void)state;
	ca_names_init(&names);
	assert_int_equal(ca_names_end(&names), 0);
	assert_string_equal(text_of(&names), "permitted;DNS:invalid,excluded;IP:0.0.0.0/0.0.0.0,"
	                                     "excluded;IP:::/::");
	ca_names_fini(&names);
	ca_names_init(&names);
	assert_int_equal(ca_names_add_host(&names, SLICE("api.lab.test")), 0);
	assert_int_equal(ca_names_add_network(&names, &four), 0);
	assert_int_equal(ca_names_add_network(&names, &six), 0);
	assert_int_equal(ca_names_end(&names), 0);
	assert_string_equal(text_of(&names), "permitted;DNS:api.lab.test,"
	                                     "permitted;IP:10.2.0.0/255.255.0.0,"
	                                     "permitted;IP:fd00::/ff00::");
	ca_names_fini(&names);
}

static void what_is_no_name_is_refused(void **state)
{
	static const char *const wrong[] = {"", "a,permitted;DNS:b", "a;b", "A.test", "a b", "a\n",
	        "@section", "a:b", "a/b", "*.test"};
	struct ip_prefix odd = {{.family = 5}, 0}, wide = {{.family = 4}, 33};
	struct ca_names names;
	char longest[255];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	ca_names_init(&names);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ca_names_add_host(&names, slice_from_string(wrong[i])), -EINVAL);
	assert_int_equal(ca_names_add_host(&names, slice_of(longest, 254)), -EINVAL);
	assert_int_equal(ca_names_add_network(&names, &odd), -EINVAL);
	assert_int_equal(ca_names_add_network(&names, &wide), -EINVAL);
	assert_int_equal(names.text.len, 0);
	assert_int_equal(ca_names_add_host(&names, slice_of(longest, 253)), 0);
	ca_names_fini(&names);
}

static void there_is_a_bound(void **state)
{
	struct ca_names names;
	unsigned count = 0;

	(void)state;
	ca_names_init(&names);
	while (ca_names_add_host(&names, SLICE("host-of-some-length.lab.test")) == 0)
		count++;
	assert_in_range(count, 20, 40);
	assert_true(names.text.len <= CA_NAMES_MAX);
	ca_names_fini(&names);
}

static void other_texts_are_not_taken(void **state)
{
	(void)state;
	assert_true(ca_names_are_plain(SLICE("permitted;DNS:a-1.test,excluded;IP:::/::")));
	assert_false(ca_names_are_plain(SLICE("")));
	assert_false(ca_names_are_plain(SLICE("permitted;DNS:a\n")));
	assert_false(ca_names_are_plain(SLICE("@section")));
	assert_false(ca_names_are_plain(SLICE("permitted;email:A@b")));
	assert_false(ca_names_are_plain(slice_of("a\0b", 3)));
}

static NAME_CONSTRAINTS *constraints_of(const struct ca *ca, int *critical)
{
	struct slice der = ca_certificate_der(ca);
	const unsigned char *at = (const unsigned char *)der.p;
	X509 *x509 = d2i_X509(NULL, &at, (long)der.n);
	NAME_CONSTRAINTS *found;

	assert_non_null(x509);
	found = X509_get_ext_d2i(x509, NID_name_constraints, critical, NULL);
	X509_free(x509);
	return found;
}

static void an_intermediate_has_them(void **state)
{
	struct ca *root = ca_new_root(SLICE("root"), 10);
	struct ca_wanted wanted = {
	        SLICE("low"), 10, "permitted;DNS:a.test,permitted;DNS:b.test,excluded;IP:::/::"};
	struct ca *low = ca_new_intermediate_for(root, &wanted);
	NAME_CONSTRAINTS *found;
	int critical = -1;

	(void)state;
	assert_non_null(low);
	found = constraints_of(low, &critical);
	assert_non_null(found);
	assert_int_equal(critical, 1);
	assert_int_equal(sk_GENERAL_SUBTREE_num(found->permittedSubtrees), 2);
	assert_int_equal(sk_GENERAL_SUBTREE_num(found->excludedSubtrees), 1);
	NAME_CONSTRAINTS_free(found);
	ca_free(low);
	wanted.names = NULL;
	low = ca_new_intermediate_for(root, &wanted);
	assert_null(constraints_of(low, &critical));
	ca_free(low);
	wanted.names = "nonsense";
	assert_null(ca_new_intermediate_for(root, &wanted));
	ca_free(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_without_a_name_are_excluded),
	        cmocka_unit_test(what_is_no_name_is_refused), cmocka_unit_test(there_is_a_bound),
	        cmocka_unit_test(other_texts_are_not_taken),
	        cmocka_unit_test(an_intermediate_has_them)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
