/* SPDX-License-Identifier: Apache-2.0 */
/* Intermediates whose signature comes from elsewhere: by keys of every kind, and signatures that
 * are not the issuer's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "tls/ca/ca_private.h"
#include "vethguard/tls/ca_papers.h"

static const struct ca_wanted wanted = {{"below", 5}, 10, NULL};

static char why[CA_WHY_MAX];

/* An issuer with its key, as a token has it. */
struct far {
	EVP_PKEY *key;
	struct ca *ca; /* without it */
};

static void add(X509 *x509, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, x509, x509, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_int_equal(X509_add_ext(x509, e, -1), 1);
	X509_EXTENSION_free(e);
}

static X509 *certificate_of(EVP_PKEY *key, long days)
{
	X509 *x509 = X509_new();

	X509_set_version(x509, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x509), 7);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
	        (const unsigned char *)"far", -1, -1, 0);
	X509_set_issuer_name(x509, X509_get_subject_name(x509));
	X509_gmtime_adj(X509_getm_notBefore(x509), -86400L * 3);
	X509_gmtime_adj(X509_getm_notAfter(x509), 86400L * days);
	X509_set_pubkey(x509, key);
	add(x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:1");
	add(x509, NID_key_usage, "critical,keyCertSign");
	add(x509, NID_subject_key_identifier, "hash");
	assert_true(X509_sign(x509, key, EVP_sha256()) > 0);
	return x509;
}

static struct far far_of(EVP_PKEY *key, long days)
{
	struct far f = {.key = key};
	X509 *x509 = certificate_of(key, days);
	unsigned char *der = NULL;
	int n = i2d_X509(x509, &der);

	f.ca = ca_from_certificate(slice_of(der, (size_t)n), why);
	OPENSSL_free(der);
	X509_free(x509);
	return f;
}

static void far_free(struct far *f)
{
	EVP_PKEY_free(f->key);
	ca_free(f->ca);
}

/* As a token signs: r and s, or PKCS #1. */
static size_t sign(EVP_PKEY *key, const uint8_t digest[32], uint8_t out[1024])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
	uint8_t der[1024];
	size_t n = sizeof(der);
	const unsigned char *p = der;
	ECDSA_SIG *pair;
	int half = (EVP_PKEY_get_bits(key) + 7) / 8;

	assert_int_equal(EVP_PKEY_sign_init(ctx), 1);
	if (EVP_PKEY_is_a(key, "RSA"))
		EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING);
	assert_int_equal(EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()), 1);
	assert_int_equal(EVP_PKEY_sign(ctx, der, &n, digest, 32), 1);
	EVP_PKEY_CTX_free(ctx);
	if (EVP_PKEY_is_a(key, "RSA")) {
		memcpy(out, der, n);
		return n;
	}
	pair = d2i_ECDSA_SIG(NULL, &p, (long)n);
	BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, half);
	BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + half, half);
	ECDSA_SIG_free(pair);
	return 2 * (size_t)half;
}

static enum ca_signature kind_of(EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "RSA") ? CA_SIGNATURE_RSA : CA_SIGNATURE_ECDSA;
}

static void test_kinds(void **state)
{
	EVP_PKEY *keys[] = {
	        EVP_EC_gen("P-256"), EVP_EC_gen("P-384"), EVP_RSA_gen(2048), EVP_RSA_gen(3072)};
	uint8_t digest[32], signature[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct far f = far_of(keys[i], 90);
		struct secret key = {0};
		struct ca_draft *draft;
		struct ca *made, *again;

		assert_non_null(f.ca);
		assert_true(ca_key_is_elsewhere(f.ca));
		assert_null(ca_new_intermediate(f.ca, SLICE("x"), 10));
		assert_int_not_equal(ca_key_der(f.ca, &key), 0);
		draft = ca_draft_new(f.ca, &wanted, digest);
		assert_non_null(draft);
		made = ca_draft_finish(draft, f.ca, kind_of(f.key),
		        slice_of(signature, sign(f.key, digest, signature)), why);
		assert_non_null(made);
		assert_false(ca_key_is_elsewhere(made));
		assert_int_equal(ca_key_der(made, &key), 0);
		again = ca_from_der(ca_certificate_der(made), secret_slice(&key));
		assert_non_null(again);
		secret_free(&key);
		ca_free(again);
		ca_free(made);
		far_free(&f);
	}
}

static void refuses(
        struct far *f, enum ca_signature kind, const uint8_t *p, size_t n, const char *words)
{
	uint8_t digest[32];
	struct ca_draft *draft = ca_draft_new(f->ca, &wanted, digest);

	assert_non_null(draft);
	why[0] = 0;
	assert_null(ca_draft_finish(draft, f->ca, kind, slice_of(p, n), why));
	assert_non_null(strstr(why, words));
}

static void test_wrong_signatures(void **state)
{
	struct far ec = far_of(EVP_EC_gen("P-256"), 90), rsa = far_of(EVP_RSA_gen(2048), 90);
	uint8_t bytes[2048] = {0}, digest[32];
	struct ca_draft *draft = ca_draft_new(ec.ca, &wanted, digest);
	EVP_PKEY *other = EVP_EC_gen("P-256");

	(void)state;
	/* another key's, and one of another certificate */
	assert_null(ca_draft_finish(draft, ec.ca, CA_SIGNATURE_ECDSA,
	        slice_of(bytes, sign(other, digest, bytes)), why));
	assert_non_null(strstr(why, "not that of the certificate"));
	refuses(&ec, CA_SIGNATURE_ECDSA, bytes, sign(ec.key, digest, bytes), "not that of");
	memset(bytes, 0, sizeof(bytes));
	for (size_t n = 0; n <= 130; n++)
		refuses(&ec, CA_SIGNATURE_ECDSA, bytes, n, "not that of");
	memset(bytes, 0xff, sizeof(bytes));
	refuses(&ec, CA_SIGNATURE_ECDSA, bytes, 64, "not that of");
	refuses(&ec, CA_SIGNATURE_ECDSA, bytes, 2048, "not that of");
	refuses(&rsa, CA_SIGNATURE_RSA, bytes, 256, "not that of");
	refuses(&rsa, CA_SIGNATURE_RSA, bytes, 0, "not that of");
	refuses(&rsa, CA_SIGNATURE_RSA, bytes, 2048, "not that of");
	refuses(&rsa, CA_SIGNATURE_ECDSA, bytes, 64,
	        "of kind EC, and that of the certificate is RSA");
	refuses(&ec, CA_SIGNATURE_RSA, bytes, 256,
	        "of kind RSA, and that of the certificate is EC");
	EVP_PKEY_free(other);
	far_free(&ec);
	far_free(&rsa);
}

static void test_certificates(void **state)
{
	struct far f = far_of(EVP_EC_gen("P-521"), 90);
	uint8_t digest[32];

	(void)state;
	assert_null(f.ca);
	assert_non_null(strstr(why, "neither P-256, P-384 nor RSA"));
	far_free(&f);
	f = far_of(EVP_RSA_gen(1024), 90);
	assert_null(f.ca);
	assert_non_null(strstr(why, "2048 bits"));
	far_free(&f);
	assert_null(ca_from_certificate(SLICE("damaged"), why));
	assert_non_null(strstr(why, "damaged"));
	f = far_of(EVP_EC_gen("P-256"), -1);
	assert_non_null(f.ca);
	assert_null(ca_draft_new(f.ca, &wanted, digest));
	far_free(&f);
	ca_draft_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds),
	        cmocka_unit_test(test_wrong_signatures), cmocka_unit_test(test_certificates)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
