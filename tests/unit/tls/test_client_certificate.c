/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate and key of a TLS client, held against OpenSSL's own reader. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "vethguard/tls/client_certificate.h"

static X509 *read_certificate(const struct client_certificate *c)
{
	BIO *in = BIO_new_mem_buf(buf_bytes(&c->pem), (int)c->pem.len);
	X509 *x = PEM_read_bio_X509(in, NULL, NULL, NULL);

	BIO_free(in);
	assert_non_null(x);
	return x;
}

static EVP_PKEY *read_key(const struct client_certificate *c)
{
	BIO *in = BIO_new_mem_buf(c->key.p, (int)c->key.n);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);

	BIO_free(in);
	assert_non_null(key);
	return key;
}

static void it_is_what_it_says(void **state)
{
	const time_t end = time(NULL) + 7200;
	struct client_certificate c;
	uint8_t hash[32];
	char hex[65] = "", name[80];
	time_t before = end - 1, after = end + 1, now = time(NULL) - 3600;
	unsigned n;
	X509 *x;
	EVP_PKEY *key;

	(void)state;
	assert_int_equal(client_certificate_make(SLICE("agent-7"), end, &c), 0);
	x = read_certificate(&c);
	key = read_key(&c);
	assert_int_equal(X509_check_private_key(x, key), 1);
	assert_int_equal(X509_verify(x, key), 1);
	assert_true(X509_cmp_time(X509_get0_notAfter(x), &before) > 0);
	assert_true(X509_cmp_time(X509_get0_notAfter(x), &after) < 0);
	assert_true(X509_cmp_time(X509_get0_notBefore(x), &now) < 0);
	assert_int_equal(X509_check_ca(x), 0);
	assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_CLIENT, 0), 1);
	assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 0), 0);
	assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
	X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof(name));
	assert_string_equal(name, "agent-7");
	assert_int_equal(X509_digest(x, EVP_sha256(), hash, &n), 1);
	for (unsigned i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	assert_string_equal(hex, c.sha256);
	X509_free(x);
	EVP_PKEY_free(key);
	client_certificate_fini(&c);
}

static void no_two_are_the_same(void **state)
{
	struct client_certificate one, two;

	(void)state;
	assert_int_equal(client_certificate_make(SLICE("a"), time(NULL) + 60, &one), 0);
	assert_int_equal(client_certificate_make(SLICE("a"), time(NULL) + 60, &two), 0);
	assert_string_not_equal(one.sha256, two.sha256);
	assert_memory_not_equal(one.key.p, two.key.p, one.key.n);
	client_certificate_fini(&one);
	client_certificate_fini(&two);
}

static void what_cannot_be(void **state)
{
	struct client_certificate c;

	(void)state;
	assert_int_equal(client_certificate_make(SLICE("a"), time(NULL), &c), -EINVAL);
	assert_int_equal(client_certificate_make(SLICE("a"), time(NULL) - 1, &c), -EINVAL);
	assert_int_equal(client_certificate_make(SLICE("a"), 0, &c), -EINVAL);
	assert_int_equal(client_certificate_make(SLICE(""), time(NULL) + 60, &c), -EINVAL);
	assert_null(c.key.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_is_what_it_says),
	        cmocka_unit_test(no_two_are_the_same),
	        cmocka_unit_test(what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
