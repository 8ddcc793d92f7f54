/* SPDX-License-Identifier: Apache-2.0 */
/* token_maker: signs tokens as an operator's control plane does, for tests. */
#ifndef VETHGUARD_TESTS_LIB_TOKEN_MAKER_H
#define VETHGUARD_TESTS_LIB_TOKEN_MAKER_H

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/base64.h"
#include "vethguard/tls/signed_token.h"

static inline EVP_PKEY *token_key(enum config_algorithm algorithm)
{
	switch (algorithm) {
	case CONFIG_EDDSA:
		return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	case CONFIG_ES256:
		return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	default:
		return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	}
}

static inline size_t token_put(char *out, const void *p, size_t n)
{
	n = base64_encode(p, n, base64_url, out);
	out[n] = '\0';
	return n;
}

static inline size_t token_signature(EVP_PKEY *key, const char *text, uint8_t *out, size_t room)
{
	const bool plain = EVP_PKEY_is_a(key, "ED25519");
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t n = room;

	if (EVP_DigestSignInit(context, NULL, plain ? NULL : EVP_sha256(), NULL, key) != 1 ||
	        EVP_DigestSign(context, out, &n, (const uint8_t *)text, strlen(text)) != 1)
		abort();
	EVP_MD_CTX_free(context);
	if (EVP_PKEY_is_a(key, "EC")) {
		const uint8_t *p = out;
		ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &p, (long)n);

		BN_bn2binpad(ECDSA_SIG_get0_r(s), out, 32);
		BN_bn2binpad(ECDSA_SIG_get0_s(s), out + 32, 32);
		ECDSA_SIG_free(s);
		n = 64;
	}
	return n;
}

/* Writes the token with this header and these claims to out, which has room. */
static inline void token_make(EVP_PKEY *key, const char *header, const char *claims, char *out)
{
	uint8_t signature[512];
	size_t n = token_put(out, header, strlen(header));

	out[n++] = '.';
	n += token_put(out + n, claims, strlen(claims));
	out[n] = '\0';
	token_put(out + n + 1, signature, token_signature(key, out, signature, sizeof(signature)));
	out[n] = '.';
}

/* Writes the public key as a JWK, with these members more ("\"kid\":\"one\""). */
static inline void token_jwk(EVP_PKEY *key, const char *more, char *out, size_t size)
{
	char x[1024], y[1024];
	uint8_t bytes[512];
	size_t n = sizeof(bytes);
	BIGNUM *a = NULL, *b = NULL;

	if (EVP_PKEY_is_a(key, "ED25519")) {
		EVP_PKEY_get_raw_public_key(key, bytes, &n);
		token_put(x, bytes, n);
		snprintf(out, size, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\",%s}", x,
		        more);
		return;
	}
	if (EVP_PKEY_is_a(key, "EC")) {
		EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_EC_PUB_X, &a);
		EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_EC_PUB_Y, &b);
		BN_bn2binpad(a, bytes, 32);
		token_put(x, bytes, 32);
		BN_bn2binpad(b, bytes, 32);
		token_put(y, bytes, 32);
		snprintf(out, size,
		        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\",%s}", x, y,
		        more);
	} else {
		EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &a);
		n = (size_t)BN_bn2bin(a, bytes);
		token_put(x, bytes, n);
		snprintf(out, size, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"AQAB\",%s}", x, more);
	}
	BN_free(a);
	BN_free(b);
}

#endif
