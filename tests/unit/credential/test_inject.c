/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "vethguard/credential/inject.h"

static struct policy_credential credential(
        enum policy_inject inject, const char *prefix, const char *username)
{
	return (struct policy_credential){
	        .inject = inject,
	        .field = SLICE("x-api-key"),
	        .prefix = slice_from_string(prefix),
	        .username = slice_from_string(username),
	};
}

static void test_rendered(void **state)
{
	static const struct {
		enum policy_inject inject;
		const char *prefix, *username, *value, *rendered;
	} rows[] = {
	        {POLICY_INJECT_BEARER, "", "", "tok-123", "Bearer tok-123"},
	        {POLICY_INJECT_HEADER, "", "", "tok-123", "tok-123"},
	        {POLICY_INJECT_HEADER, "token ", "", "tok-123", "token tok-123"},
	        {POLICY_INJECT_HEADER, "", "", "a\tb c\xe4", "a\tb c\xe4"},
	        {POLICY_INJECT_QUERY, "", "", "aZ09-._~", "aZ09-._~"},
	        {POLICY_INJECT_QUERY, "", "", "a b+c/d%&=#?\xe4",
	                "a%20b%2Bc%2Fd%25%26%3D%23%3F%E4"},
	        {POLICY_INJECT_COOKIE, "", "", "a!#$%&'()*+-./:<=>?@[]^_`{|}~9",
	                "a!#$%&'()*+-./:<=>?@[]^_`{|}~9"},
	        /* RFC 7617 section 2 */
	        {POLICY_INJECT_BASIC, "", "Aladdin", "open sesame",
	                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
	        {POLICY_INJECT_BASIC, "", "", "Aladdin:open sesame",
	                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
	        {POLICY_INJECT_BASIC, "", "u", "with:colons:", "Basic dTp3aXRoOmNvbG9uczo="},
	        {POLICY_INJECT_BASIC, "", "us", "secret", "Basic dXM6c2VjcmV0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy_credential c =
		        credential(rows[i].inject, rows[i].prefix, rows[i].username);
		struct secret out;

		assert_int_equal(inject_render(&c, slice_from_string(rows[i].value), &out), 0);
		assert_true(slice_equals(secret_slice(&out), slice_from_string(rows[i].rendered)));
		secret_free(&out);
	}
}

/* Several fields, each a template: what is in each, and what cannot be. */
static void test_several_fields(void **state)
{
	const struct policy_credential c = {.inject = POLICY_INJECT_FIELDS,
	        .prefix = SLICE("X-Key: ${value}\nx-user: ${username}\n"
	                        "authorization: Key k=\"${value}\", u=${username}${value} $ $x }"),
	        .username = SLICE("al")};
	static const char *const fields[][2] = {{"X-Key", "tok-123"}, {"x-user", "al"},
	        {"authorization", "Key k=\"tok-123\", u=altok-123 $ $x }"}};
	struct inject_rest rest = {0};
	struct slice name, value, rendered;
	struct secret out;

	(void)state;
	assert_int_equal(inject_render(&c, SLICE("tok-123"), &out), 0);
	rendered = secret_slice(&out);
	for (size_t i = 0; i < 3; i++) {
		assert_true(inject_field_next(&c, &rest, &name, &rendered, &value));
		assert_true(slice_equals(name, slice_from_string(fields[i][0])));
		assert_true(slice_equals(value, slice_from_string(fields[i][1])));
	}
	assert_false(inject_field_next(&c, &rest, &name, &rendered, &value));
	secret_free(&out);
	assert_int_equal(inject_render(&c, SLICE("tok\n123"), &out), -EINVAL);
	assert_int_equal(inject_render(&c, SLICE("tok"), &out), -EINVAL);
	assert_int_equal(inject_field(&c).n, 0);
}

/* A credential with one field has that field once; one in the query has none. */
static void test_one_field(void **state)
{
	struct policy_credential c = credential(POLICY_INJECT_HEADER, "", "");
	struct slice name, value, rendered = SLICE("a\nb");
	struct inject_rest rest = {0};

	(void)state;
	assert_true(inject_field_next(&c, &rest, &name, &rendered, &value));
	assert_true(slice_equals(name, SLICE("x-api-key")) && slice_equals(value, rendered));
	assert_false(inject_field_next(&c, &rest, &name, &rendered, &value));
	c.inject = POLICY_INJECT_QUERY;
	rest = (struct inject_rest){0};
	assert_false(inject_field_next(&c, &rest, &name, &rendered, &value));
}

/* Keys of hmac in each way of writing, and invalid texts. */
static void test_hmac_keys(void **state)
{
	static const struct {
		const char *field, *value, *key;
	} rows[] = {
	        {"hex text  x", "s3cret", "s3cret"},
	        {"hex base64  x", "c2VjcmV0", "secret"},
	        {"hex base64  x", "c2VjcmV0IQ==", "secret!"},
	        {"hex base64  x", "c2VjcmV0ISE=", "secret!!"},
	        {"hex base64  x", "c2VjcmV0IQ", "secret!"},
	        {"hex base64  x", "-_-_-_-_", "\xfb\xff\xbf\xfb\xff\xbf"},
	        {"hex hex q x", "736563726574", "secret"},
	        {"hex hex q x", "7365637265744D", "secretM"},
	        {"hex text  x", "short", NULL},
	        {"hex base64  x", "c2VjcmV0I", NULL},
	        {"hex base64  x", "c2VjcmV0=", NULL},
	        {"hex base64  x", "c2VjcmV0I===", NULL},
	        {"hex base64  x", "c2Vj cmV0", NULL},
	        {"hex base64  x", "c2VjcmV0IR==", NULL},
	        {"hex base64  x", "========", NULL},
	        {"hex hex  x", "73656372657", NULL},
	        {"hex hex  x", "7365637265 4", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct policy_credential c = {
		        .inject = POLICY_INJECT_HMAC, .field = slice_from_string(rows[i].field)};
		struct secret out;
		int rc = inject_hmac_key(&c, slice_from_string(rows[i].value), &out);

		if (rc != (rows[i].key ? 0 : -EINVAL))
			fail_msg("row %zu: %d", i, rc);
		if (rows[i].key)
			assert_true(
			        slice_equals(secret_slice(&out), slice_from_string(rows[i].key)));
		secret_free(&out);
	}
}

static void test_refused(void **state)
{
	static const struct slice values[] = {
	        SLICE(""),
	        SLICE("12345"),
	        SLICE("abc\ndef"),
	        SLICE("abc\rdef"),
	        SLICE("abcdef\r\n"),
	        SLICE("abc\0def"),
	        SLICE("abcdef\0"),
	        SLICE("abc\x01"
	              "def"),
	        SLICE("abc\x7f"
	              "def"),
	        SLICE("abc\x1b"
	              "def"),
	        SLICE(" abcdef"),
	        SLICE("abcdef "),
	        SLICE("\tabcdef"),
	        SLICE("abcdef\t"),
	        SLICE("      "),
	};
	static const enum policy_inject ways[] = {POLICY_INJECT_BEARER, POLICY_INJECT_HEADER,
	        POLICY_INJECT_QUERY, POLICY_INJECT_BASIC, POLICY_INJECT_COOKIE};

	(void)state;
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			struct policy_credential c = credential(ways[w], "", "user");
			struct secret out;

			assert_int_equal(inject_render(&c, values[i], &out), -EINVAL);
			assert_null(out.p);
		}
}

static void test_a_cookie_has_octets_of_a_cookie(void **state)
{
	static const struct slice values[] = {SLICE("abc;def"), SLICE("abc,def"), SLICE("abc def"),
	        SLICE("\"abcdef\""), SLICE("abc\\def"),
	        SLICE("abc\xe4"
	              "def")};
	struct policy_credential c = credential(POLICY_INJECT_COOKIE, "", "");
	struct secret out;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(inject_render(&c, values[i], &out), -EINVAL);
		assert_null(out.p);
	}
}

static void test_basic_needs_one_pair(void **state)
{
	struct policy_credential with = credential(POLICY_INJECT_BASIC, "", "us:er");
	struct policy_credential without = credential(POLICY_INJECT_BASIC, "", "");
	struct secret out;

	(void)state;
	assert_int_equal(inject_render(&with, SLICE("password"), &out), -EINVAL);
	assert_int_equal(inject_render(&without, SLICE("password"), &out), -EINVAL);
}

static void test_too_long(void **state)
{
	static char big[SECRET_MAX];
	struct policy_credential c = credential(POLICY_INJECT_BEARER, "", "");
	struct secret out;

	(void)state;
	memset(big, '/', sizeof(big));
	assert_int_equal(inject_render(&c, slice_of(big, SECRET_MAX - 7), &out), 0);
	assert_int_equal(out.n, SECRET_MAX);
	secret_free(&out);
	assert_int_equal(inject_render(&c, slice_of(big, SECRET_MAX - 6), &out), -EMSGSIZE);
	c = credential(POLICY_INJECT_QUERY, "", "");
	assert_int_equal(inject_render(&c, slice_of(big, SECRET_MAX / 3), &out), 0);
	secret_free(&out);
	assert_int_equal(inject_render(&c, slice_of(big, SECRET_MAX / 3 + 1), &out), -EMSGSIZE);
	c = credential(POLICY_INJECT_BASIC, "", "u");
	assert_int_equal(inject_render(&c, slice_of(big, SECRET_MAX / 4 * 3), &out), -EMSGSIZE);
	assert_int_equal(inject_render(&c, slice_of(big, SECRET_MAX), &out), -EMSGSIZE);
}

static void test_fields(void **state)
{
	struct policy_credential c = credential(POLICY_INJECT_BEARER, "", "");

	(void)state;
	assert_true(slice_equals(inject_field(&c), SLICE("authorization")));
	c.inject = POLICY_INJECT_BASIC;
	assert_true(slice_equals(inject_field(&c), SLICE("authorization")));
	c.inject = POLICY_INJECT_HEADER;
	assert_true(slice_equals(inject_field(&c), SLICE("x-api-key")));
	c.inject = POLICY_INJECT_COOKIE;
	assert_true(slice_equals(inject_field(&c), SLICE("cookie")));
	c.inject = POLICY_INJECT_QUERY;
	assert_int_equal(inject_field(&c).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rendered),
	        cmocka_unit_test(test_several_fields),
	        cmocka_unit_test(test_one_field),
	        cmocka_unit_test(test_hmac_keys),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_a_cookie_has_octets_of_a_cookie),
	        cmocka_unit_test(test_basic_needs_one_pair),
	        cmocka_unit_test(test_too_long),
	        cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
