/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of an operator's files: what is accepted, and the error for what is not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/clock.h"
#include "vethguard/tls/tls.h"

#define PEM_MAX 65536
#define DAY_S 86400

static char certificate[PEM_MAX], key_text[PEM_MAX], other_key[PEM_MAX], both[PEM_MAX];

static void take(BIO *bio, char out[PEM_MAX])
{
	int n = BIO_read(bio, out, PEM_MAX - 1);

	assert_true(n > 0);
	out[n] = 0;
	BIO_free(bio);
}

static void write_key(EVP_PKEY *key, const char *passphrase, char out[PEM_MAX])
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_int_equal(PEM_write_bio_PrivateKey(bio, key, passphrase ? EVP_aes_128_cbc() : NULL,
	                         (const unsigned char *)passphrase,
	                         passphrase ? (int)strlen(passphrase) : 0, NULL, NULL),
	        1);
	take(bio, out);
}

static void write_certificate(EVP_PKEY *key, long from_s, long until_s, char out[PEM_MAX])
{
	X509 *x509 = X509_new();
	BIO *bio = BIO_new(BIO_s_mem());

	assert_int_equal(X509_set_version(x509, 2), 1);
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(x509), from_s));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(x509), until_s));
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
	        (const unsigned char *)"gateway", -1, -1, 0);
	X509_set_issuer_name(x509, X509_get_subject_name(x509));
	ASN1_INTEGER_set(X509_get_serialNumber(x509), 7);
	X509_set_pubkey(x509, key);
	assert_true(X509_sign(x509, key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_bio_X509(bio, x509), 1);
	take(bio, out);
	X509_free(x509);
}

static int make(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");

	(void)state;
	write_key(key, NULL, key_text);
	write_key(other, NULL, other_key);
	write_certificate(key, -DAY_S, 2 * DAY_S, certificate);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
	return 0;
}

static const char *text(const char *first, const char *second)
{
	snprintf(both, sizeof(both), "%s%s", first, second);
	return both;
}

static void takes(const char *chain, const char *key)
{
	char why[TLS_IDENTITY_WHY_MAX];
	struct tls_identity *identity =
	        tls_identity_read(slice_from_string(chain), slice_from_string(key), why);
	const int64_t now_s = clock_real_ms() / 1000;

	if (!identity)
		fail_msg("%s", why);
	assert_string_equal(why, "");
	assert_true(tls_identity_expires_s(identity) > now_s + 2 * DAY_S - 60);
	assert_true(tls_identity_expires_s(identity) <= now_s + 2 * DAY_S + 1);
	tls_identity_release(identity);
}

static void refuses(const char *chain, const char *key, const char *sentence)
{
	char why[TLS_IDENTITY_WHY_MAX] = "";

	assert_null(tls_identity_read(slice_from_string(chain), slice_from_string(key), why));
	if (!strstr(why, sentence))
		fail_msg("%s, not %s", why, sentence);
}

static void what_is_taken(void **state)
{
	EVP_PKEY *rsa = EVP_RSA_gen(2048);
	static char rsa_key[PEM_MAX], rsa_certificate[PEM_MAX];

	(void)state;
	takes(certificate, key_text);
	takes(text("a comment\n", certificate), key_text);
	takes(text(certificate, certificate), key_text);
	takes(certificate, text("a comment\n", key_text));
	takes(text(certificate, "\nno more\n"), key_text);
	write_key(rsa, NULL, rsa_key);
	write_certificate(rsa, -DAY_S, 2 * DAY_S, rsa_certificate);
	takes(rsa_certificate, rsa_key);
	EVP_PKEY_free(rsa);
}

static void what_is_refused(void **state)
{
	static char many[PEM_MAX];
	size_t n = 0;

	(void)state;
	refuses("", key_text, "does not begin with a certificate");
	refuses("nonsense", key_text, "does not begin with a certificate");
	refuses(key_text, key_text, "does not begin with a certificate");
	refuses("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key_text,
	        "does not begin with a certificate");
	refuses(certificate, "", "no private key");
	refuses(certificate, certificate, "no private key");
	refuses(certificate, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	        "no private key");
	refuses(certificate, other_key, "not that of the certificate");
	for (size_t i = 0; i <= TLS_IDENTITY_CHAIN_MAX; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n, "%s", certificate);
	refuses(many, key_text, "too many certificates");
	refuses(text(certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n"), key_text, "damaged");
	refuses(text(certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
	        key_text, "damaged");
}

static void keys_and_times(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	static char locked[PEM_MAX], over[PEM_MAX], open[PEM_MAX];

	(void)state;
	write_key(key, "secret", locked);
	write_key(key, NULL, open);
	write_certificate(key, -2 * DAY_S, -1, over);
	refuses(over, open, "has expired");
	write_certificate(key, -2 * DAY_S, 2 * DAY_S, over);
	refuses(over, locked, "passphrase");
	takes(over, open);
	EVP_PKEY_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_taken),
	        cmocka_unit_test(what_is_refused), cmocka_unit_test(keys_and_times)};

	return cmocka_run_group_tests(tests, make, NULL);
}
