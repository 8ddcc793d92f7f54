/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: all leaves of one issuer and kind share a key. A leaf's fields about it, its
 * SubjectPublicKeyInfo and its id, are written once, when the key is made: constants around a point
 * on P-256, or around an RSA modulus of 2048 bits.
 *
 * The RSA key has three primes (RFC 8017 section 3.1). Making a key with two takes a quarter of a
 * second on average, during which its worker does nothing else; with three, a third of that. Primes
 * of 682 bits and more are far too large to be found, and the key only guards the path from a
 * sandbox to its own worker. Clients see only the modulus and notice no difference.
 */
#include "tls/ca/ca_private.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#define RSA_PRIMES 3
#define RSA_TRIES 4 /* a modulus that is a bit too short is not used */

/* SubjectPublicKeyInfo of a P-256 key (RFC 5480 section 2), up to its point: SEQUENCE of
 * AlgorithmIdentifier (id-ecPublicKey, secp256r1) and BIT STRING without unused bits */
static const uint8_t spki_before_point[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03,
        0x42, 0x00};
/* The same for an RSA key (RFC 3279 section 2.3.1), up to its modulus of 2048 bits, whose first bit
 * is set: AlgorithmIdentifier (rsaEncryption, NULL), then BIT STRING with RSAPublicKey, a SEQUENCE
 * of two INTEGERs */
static const uint8_t spki_before_modulus[] = {0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a,
        0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00,
        0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00};
/* ... and after it the exponent 65537, OpenSSL's default */
static const uint8_t spki_after_modulus[] = {0x02, 0x03, 0x01, 0x00, 0x01};

#define RSA_KEY_AT (24) /* of RSAPublicKey, the content of the BIT STRING */

_Static_assert(sizeof(spki_before_point) + CA_POINT_BYTES <= CA_SPKI_MAX, "room for a point");
_Static_assert(
        sizeof(spki_before_modulus) + CA_MODULUS_BYTES + sizeof(spki_after_modulus) == CA_SPKI_MAX,
        "room for a modulus");

bool ca_sha256(const void *p, size_t n, uint8_t out[32])
{
	static EVP_MD *md; /* fetched once per process */

	if (!md)
		md = EVP_MD_fetch(tls_library(), "SHA256", NULL);
	return md && EVP_Digest(p, n, out, NULL, md, NULL) == 1;
}

bool ca_point(EVP_PKEY *key, uint8_t out[CA_POINT_BYTES])
{
	size_t n = 0;

	return EVP_PKEY_get_octet_string_param(
	               key, OSSL_PKEY_PARAM_PUB_KEY, out, CA_POINT_BYTES, &n) == 1 &&
	       n == CA_POINT_BYTES && out[0] == POINT_CONVERSION_UNCOMPRESSED;
}

/* Sets the key's id (RFC 7093 section 2 method 1) from the content of its BIT STRING. */
static bool set_id(struct ca_leaf_key *key, size_t content_at)
{
	uint8_t digest[32];

	if (!ca_sha256(key->spki + content_at, key->spki_n - content_at, digest))
		return false;
	memcpy(key->id, digest, sizeof(key->id));
	return true;
}

static bool make_ecdsa(struct ca_leaf_key *key)
{
	key->key = EVP_PKEY_Q_keygen(tls_library(), NULL, "EC", "P-256");
	memcpy(key->spki, spki_before_point, sizeof(spki_before_point));
	key->spki_n = sizeof(spki_before_point) + CA_POINT_BYTES;
	return key->key && ca_point(key->key, key->spki + sizeof(spki_before_point)) &&
	       set_id(key, sizeof(spki_before_point));
}

static EVP_PKEY *generate_rsa(void)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(tls_library(), "RSA", NULL);
	EVP_PKEY *key = NULL;

	if (ctx && EVP_PKEY_keygen_init(ctx) == 1 &&
	        EVP_PKEY_CTX_set_rsa_keygen_bits(ctx, CA_MODULUS_BYTES * 8) == 1 &&
	        EVP_PKEY_CTX_set_rsa_keygen_primes(ctx, RSA_PRIMES) == 1)
		EVP_PKEY_generate(ctx, &key);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

/* Writes the modulus. False if it is too short, or if the exponent is not the constant's. */
static bool put_modulus(EVP_PKEY *key, uint8_t out[CA_MODULUS_BYTES])
{
	BIGNUM *n = NULL, *e = NULL;
	bool ok = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &n) &&
	          EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &e) &&
	          BN_num_bits(n) == CA_MODULUS_BYTES * 8 && BN_is_word(e, RSA_F4) &&
	          BN_bn2binpad(n, out, CA_MODULUS_BYTES) == CA_MODULUS_BYTES;

	BN_free(n);
	BN_free(e);
	return ok;
}

static bool make_rsa(struct ca_leaf_key *key)
{
	uint8_t *modulus = key->spki + sizeof(spki_before_modulus);

	for (int i = 0; i < RSA_TRIES; i++) {
		EVP_PKEY_free(key->key);
		key->key = generate_rsa();
		if (!key->key || put_modulus(key->key, modulus))
			break;
	}
	if (!key->key || !put_modulus(key->key, modulus))
		return false;
	memcpy(key->spki, spki_before_modulus, sizeof(spki_before_modulus));
	memcpy(modulus + CA_MODULUS_BYTES, spki_after_modulus, sizeof(spki_after_modulus));
	key->spki_n = CA_SPKI_MAX;
	return set_id(key, RSA_KEY_AT);
}

struct ca_leaf_key *ca_leaf_key_new(enum tls_key_kind kind)
{
	struct ca_leaf_key *key = calloc(1, sizeof(*key));

	if (!key)
		return NULL;
	tls_library_init();
	if (!(kind == TLS_KEY_RSA ? make_rsa(key) : make_ecdsa(key))) {
		ca_leaf_key_free(key);
		key = NULL;
	}
	ERR_clear_error();
	return key;
}

void ca_leaf_key_free(struct ca_leaf_key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->key);
	free(key);
}
