/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intermediate under a CA whose key is elsewhere. This file makes and encodes the part that is
 * to be signed (RFC 5280 section 4.1.2). It assembles the certificate from that part, the algorithm
 * and the signature, parses it, and verifies it with the key of the issuer's certificate.
 */
#include "tls/ca/ca_private.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <stdlib.h>

#include "tls/ca/ca_pem.h"
#include "tls/der.h"
#include "vethguard/base/clock.h"

#define SIGNATURE_MAX 1024
#define NUMBER_MAX 48 /* P-384 */

struct ca_draft {
	struct ca *ca;
	uint8_t *signed_part; /* DER */
	size_t signed_n;
};

static bool is_rsa(const struct ca *issuer)
{
	return EVP_PKEY_is_a(issuer->key, "RSA") == 1;
}

/* Sets the algorithm, which belongs to the signed part. OpenSSL sets it only in X509_sign(). */
static bool set_algorithm(X509 *certificate, const struct ca *issuer)
{
	X509_ALGOR *algorithm = (X509_ALGOR *)(uintptr_t)X509_get0_tbs_sigalg(certificate);
	const int nid = is_rsa(issuer) ? NID_sha256WithRSAEncryption : NID_ecdsa_with_SHA256;

	return X509_ALGOR_set0(algorithm, OBJ_nid2obj(nid),
	               is_rsa(issuer) ? V_ASN1_NULL : V_ASN1_UNDEF, NULL) == 1;
}

static bool encode(struct ca_draft *draft)
{
	unsigned char *p = NULL;
	int n = i2d_re_X509_tbs(draft->ca->certificate, &p);

	draft->signed_part = p;
	draft->signed_n = n > 0 ? (size_t)n : 0;
	return n > 0;
}

struct ca_draft *ca_draft_new(
        const struct ca *issuer, const struct ca_wanted *wanted, uint8_t digest[32])
{
	struct ca_draft *draft;
	bool good;

	if (issuer->expires_s <= clock_real_ms() / 1000)
		return NULL;
	draft = calloc(1, sizeof(*draft));
	if (!draft)
		return NULL;
	good = ca_prepare(&draft->ca, issuer, wanted) &&
	       set_algorithm(draft->ca->certificate, issuer) && encode(draft) &&
	       ca_sha256(draft->signed_part, draft->signed_n, digest);
	ERR_clear_error();
	if (good)
		return draft;
	ca_draft_free(draft);
	return NULL;
}

void ca_draft_free(struct ca_draft *draft)
{
	if (!draft)
		return;
	ca_free(draft->ca);
	OPENSSL_free(draft->signed_part);
	free(draft);
}

/* Encodes r and s as ECDSA-Sig-Value. Returns its size, or 0. */
static size_t encode_ecdsa(struct slice raw, uint8_t out[SIGNATURE_MAX])
{
	const int half = (int)(raw.n / 2);
	ECDSA_SIG *pair = raw.n % 2 || half > NUMBER_MAX ? NULL : ECDSA_SIG_new();
	const uint8_t *p = (const uint8_t *)raw.p;
	BIGNUM *r = pair ? BN_bin2bn(p, half, NULL) : NULL;
	BIGNUM *s = r ? BN_bin2bn(p + half, half, NULL) : NULL;
	unsigned char *at = out;
	int n = 0;

	if (s && ECDSA_SIG_set0(pair, r, s) == 1) {
		n = i2d_ECDSA_SIG(pair, &at); /* far less than SIGNATURE_MAX */
	} else {
		BN_free(r);
		BN_free(s);
	}
	ECDSA_SIG_free(pair);
	return n > 0 ? (size_t)n : 0;
}

/* The certificate: what is signed, the algorithm, the signature. */
static X509 *assemble(const struct ca_draft *draft, struct slice signature)
{
	unsigned char *algorithm = NULL;
	int n = i2d_X509_ALGOR(X509_get0_tbs_sigalg(draft->ca->certificate), &algorithm);
	size_t cap = n > 0 ? DER_SIGNED_MORE + draft->signed_n + (size_t)n + signature.n : 0;
	uint8_t *der = n > 0 ? malloc(cap) : NULL;
	struct writer w = writer_over(der, cap);
	X509 *made = NULL;

	if (der) {
		der_write_signed(&w, slice_of(draft->signed_part, draft->signed_n),
		        slice_of(algorithm, (size_t)n), signature);
		made = w.failed ? NULL : tls_x509_parse(der, w.len);
	}
	free(der);
	OPENSSL_free(algorithm);
	return made;
}

static X509 *put_signature(const struct ca_draft *draft, const struct ca *issuer,
        enum ca_signature kind, struct slice signature)
{
	uint8_t encoded[SIGNATURE_MAX];
	size_t n = signature.n;
	X509 *made;

	if (n == 0 || n > SIGNATURE_MAX)
		return NULL;
	if (kind == CA_SIGNATURE_ECDSA)
		n = encode_ecdsa(signature, encoded);
	else
		memcpy(encoded, signature.p, n);
	made = n ? assemble(draft, slice_of(encoded, n)) : NULL;
	if (made && X509_verify(made, issuer->key) != 1) {
		X509_free(made);
		made = NULL;
	}
	return made;
}

struct ca *ca_draft_finish(struct ca_draft *draft, const struct ca *issuer, enum ca_signature kind,
        struct slice signature, char why[CA_WHY_MAX])
{
	const bool rsa = is_rsa(issuer);
	struct ca *ca = NULL;
	X509 *made = NULL;

	if (rsa != (kind == CA_SIGNATURE_RSA))
		ca_refuse(why,
		        "the key that the URI names is of kind %s, and that of the certificate is "
		        "%s: "
		        "name the pair that belongs together",
		        kind == CA_SIGNATURE_RSA ? "RSA" : "EC", rsa ? "RSA" : "EC");
	else
		made = put_signature(draft, issuer, kind, signature);
	if (!made && rsa == (kind == CA_SIGNATURE_RSA))
		ca_refuse(why,
		        "the key that the URI names is not that of the certificate: name the "
		        "pair that belongs together");
	if (made) {
		ca = draft->ca;
		draft->ca = NULL;
		X509_free(ca->certificate);
		ca->certificate = made;
		if (!ca_complete(ca)) {
			ca_refuse(why, "no memory");
			ca_free(ca);
			ca = NULL;
		}
	}
	ERR_clear_error();
	ca_draft_free(draft);
	return ca;
}
