/* SPDX-License-Identifier: Apache-2.0 */
/* Roots found in PEM text when they are needed: order, other text in between, equal subjects, no
 * root at all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pair.h"

static struct slice none = {"", 0};
static struct pair pair;
static struct buf pem;

static int setup(void **state)
{
	(void)state;
	pair_init(&pair);
	buf_init(&pem, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pair_fini(&pair);
	buf_fini(&pem);
	return 0;
}

static void text(const char *s)
{
	buf_append(&pem, s, strlen(s));
}

static void certificate(const struct ca *ca)
{
	assert_int_equal(ca_pem_append(ca_certificate_der(ca), &pem), 0);
}

/* A client that trusts what pem holds. */
static void trust_pem(void)
{
	tls_client_free(pair.client);
	tls_trust_free(pair.trust);
	pair.trust = tls_trust_new(pem.len ? buf_bytes(&pem) : (const uint8_t *)"", pem.len);
	pair.client = tls_client_new(pair.trust);
	assert_non_null(pair.client);
}

static bool trusted(void)
{
	pair_dial(&pair, "a.example", none, none);
	bool ok = pair_shake(&pair);
	assert_string_equal(
	        tls_error_text(pair.c), ok ? "" : "unable to get local issuer certificate");
	pair_hang_up(&pair);
	return ok;
}

static void count(size_t usable, size_t unusable)
{
	size_t u, n;

	tls_trust_count(pair.trust, &u, &n);
	assert_int_equal(u, usable);
	assert_int_equal(n, unusable);
}

static void test_nothing_trusted(void **state)
{
	(void)state;
	trust_pem();
	assert_false(trusted());
	count(0, 0);
	text("no certificate here\n-----BEGIN");
	trust_pem();
	assert_false(trusted());
	count(0, 0);
}

static void test_found_among_others(void **state)
{
	(void)state;
	text("# a comment\n");
	for (int i = 0; i < 5; i++) {
		struct ca *other = ca_new_root(SLICE("another"), 30);
		certificate(other);
		ca_free(other);
	}
	text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
	certificate(pair.root);
	trust_pem();
	assert_true(trusted());
	assert_true(trusted());
	count(6, 0);
}

static void test_rubbish_is_skipped_and_counted(void **state)
{
	(void)state;
	text("-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n");
	text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
	text("-----BEGIN CERTIFICATE-----\nMAAwADAA\n-----END CERTIFICATE-----\n");
	text("-----BEGIN CERTIFICATE-----\nMIIB\n"); /* its end is missing */
	certificate(pair.root);
	text("-----BEGIN CERTIFICATE-----\n");
	for (int i = 0; i < 1000; i++)
		text("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n");
	text("-----END CERTIFICATE-----\n");
	text("-----BEGIN CERTIFICATE-----\nMIIB");
	trust_pem();
	assert_true(trusted());
	count(1, 6);
}

static void test_carriage_returns(void **state)
{
	struct buf dos;
	(void)state;

	certificate(pair.root);
	buf_init(&dos, 1 << 16);
	for (size_t i = 0; i < pem.len; i++) {
		if (buf_bytes(&pem)[i] == '\n')
			buf_append(&dos, "\r", 1);
		buf_append(&dos, buf_bytes(&pem) + i, 1);
	}
	pem.len = 0;
	buf_append_slice(&pem, buf_slice(&dos));
	buf_fini(&dos);
	trust_pem();
	assert_true(trusted());
}

static void test_equal_subjects(void **state)
{
	(void)state;
	struct ca *before = ca_new_root(SLICE("test root"), 30);
	struct ca *after = ca_new_root(SLICE("test root"), 30);

	certificate(before);
	certificate(pair.root);
	certificate(pair.root); /* twice the same */
	certificate(after);
	trust_pem();
	assert_true(trusted());
	assert_true(trusted());
	count(4, 0);
	pem.len = 0;
	certificate(before);
	certificate(after);
	trust_pem();
	assert_false(trusted());
	ca_free(before);
	ca_free(after);
}

static void test_intermediate_as_anchor(void **state)
{
	(void)state;
	certificate(pair.issuer);
	trust_pem();
	assert_true(trusted());
}

/* Every truncation of the text ends without trouble, and only the whole is trusted. */
static void test_truncated_text(void **state)
{
	(void)state;
	certificate(pair.root);
	size_t whole = pem.len;
	for (size_t n = 0; n < whole - 1; n++) {
		struct tls_trust *trust = tls_trust_new(buf_bytes(&pem), n);
		size_t usable, unusable;
		tls_trust_count(trust, &usable, &unusable);
		assert_int_equal(usable, 0);
		tls_trust_free(trust);
	}
}

#define TRUST_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TRUST_TEST(test_nothing_trusted),
	        TRUST_TEST(test_found_among_others),
	        TRUST_TEST(test_rubbish_is_skipped_and_counted),
	        TRUST_TEST(test_carriage_returns),
	        TRUST_TEST(test_equal_subjects),
	        TRUST_TEST(test_intermediate_as_anchor),
	        TRUST_TEST(test_truncated_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
