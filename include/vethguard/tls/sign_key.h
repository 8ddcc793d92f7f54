/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign_key: keys that sign files. A signature has 64 bytes: Ed25519 (RFC 8032), or ECDSA with P-256 and SHA-256,
 * written as r and s of 32 bytes each (RFC 7518 section 3.4).
 */
#ifndef VETHGUARD_TLS_SIGN_KEY_H
#define VETHGUARD_TLS_SIGN_KEY_H

#include "vethguard/base/slice.h"

#define SIGN_KEY_SIGNATURE_BYTES 64

struct sign_key {
	void *handle; /* owned: OpenSSL's; NULL: none */
};

/* Reads a public key (PEM, SubjectPublicKeyInfo). Returns NULL, or what is wrong (static); then out has no key. */
const char *sign_key_public(struct slice pem, struct sign_key *out);
/* The same for a private key (PEM without a passphrase). */
const char *sign_key_private(struct slice pem, struct sign_key *out);
void sign_key_fini(struct sign_key *key);
/* True if the key, public or private, has signed the text. */
bool sign_key_verify(const struct sign_key *key, const uint8_t signature[SIGN_KEY_SIGNATURE_BYTES], struct slice text);
/* Signs the text with a private key. Returns 0, or -EKEYREJECTED: the key cannot sign. */
int sign_key_sign(const struct sign_key *key, struct slice text, uint8_t signature[SIGN_KEY_SIGNATURE_BYTES]);

#endif
