/* SPDX-License-Identifier: Apache-2.0 */
/* What ca.c (authorities), leaf.c (leaves) and leaf_key.c (their keys) share. */
#ifndef VETHGUARD_SRC_TLS_CA_CA_PRIVATE_H
#define VETHGUARD_SRC_TLS_CA_CA_PRIVATE_H

#include "tls/private.h"
#include "vethguard/tls/ca.h"

#define CA_NAME_MAX 64 /* bytes of a common name (RFC 5280 appendix A, ub-common-name) */
#define CA_KEY_ID_BYTES 20
#define CA_POINT_BYTES 65 /* a public key on P-256, uncompressed (RFC 5480 section 2.2) */
#define CA_MODULUS_BYTES 256
#define CA_SPKI_MAX 294 /* SubjectPublicKeyInfo of an RSA key of 2048 bits */

struct ca {
	X509 *certificate;
	EVP_PKEY *key; /* the public key if the private one is elsewhere */
	bool elsewhere;
	EVP_PKEY_CTX *signer; /* ready to sign a SHA-256 digest */
	uint8_t *der;
	size_t der_n;
	uint8_t *name; /* DER of the subject, which is the issuer of what this CA signs */
	size_t name_n;
	uint8_t key_id[CA_KEY_ID_BYTES];
	int64_t expires_s;      /* since the epoch */
	STACK_OF(X509) * above; /* certificates that clients get after this one; NULL: none */
};

/* Takes certificate and key, also if it fails: a CA that signs. is_issuer: it makes leaves, so its
 * key is P-256 and its key id has 20 bytes. Returns NULL on failure. */
struct ca *ca_adopt(X509 *certificate, EVP_PKEY *key, bool is_issuer);
/* Makes a certificate without its signature, and its key (ca.c). After false, too, *out needs
 * ca_free(). */
bool ca_prepare(struct ca **out, const struct ca *issuer, const struct ca_wanted *wanted);
/* Does the part of ca_new_intermediate() that follows the signature. Returns false on failure. */
bool ca_complete(struct ca *ca);
/* ca.c: parts of any certificate that is made here. Return false on failure. */
bool ca_add_extension(X509 *certificate, X509 *issuer, int nid, const char *value);
bool ca_set_serial(X509 *certificate);
bool ca_set_name(X509 *certificate, struct slice name);
/* The end of a certificate's validity in seconds since the epoch; 0: it cannot be read. */
int64_t ca_time_s(const ASN1_TIME *time);

/* The key that leaves share, and a leaf's fields about it. */
struct ca_leaf_key {
	EVP_PKEY *key;
	size_t spki_n;
	uint8_t spki[CA_SPKI_MAX]; /* DER */
	uint8_t id[CA_KEY_ID_BYTES];
};

/* leaf_key.c: SHA-256, with an algorithm that is fetched once. */
bool ca_sha256(const void *p, size_t n, uint8_t out[32]);

/* ca_key.c. Makes the key of PKCS#8 as ca_key_der() writes it. NULL: malformed, or no memory. */
EVP_PKEY *ca_key_from_der(struct slice der);
/* Returns the public point of such a key, or NULL: it has another length. */
const uint8_t *ca_key_point(struct slice der);
/* Writes such a key into new secret memory. Returns 0 or -errno. */
int ca_key_to_der(EVP_PKEY *key, struct secret *out);

/* Gets the public point of a P-256 key. False: it is another kind of key. */
bool ca_point(EVP_PKEY *key, uint8_t out[CA_POINT_BYTES]);

#endif
