/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signed_token: verifies JSON Web Tokens (RFC 7519, RFC 7515, RFC 8725) of sessions by the public keys of those who may
 * sign them. The signature comes first: no claim is parsed before some key has verified the text. Only EdDSA (Ed25519),
 * ES256 and RS256 exist here, and a key verifies by its own algorithm only, so a header cannot choose how it is read.
 */
#ifndef VETHGUARD_TLS_SIGNED_TOKEN_H
#define VETHGUARD_TLS_SIGNED_TOKEN_H

#include "vethguard/policy/config.h"
#include "vethguard/policy/json_find.h"

#define SIGNED_TOKEN_MAX 4096  /* bytes, as PROXY_PROOF_MAX */
#define SIGNED_TOKEN_SKEW_S 60 /* how far ahead the signer's clock may be: nbf, iat */
#define KEY_SET_KEYS_MAX 16
#define KEY_SET_BYTES_MAX 65536 /* of a key set's JSON */
#define PUBLIC_KEY_ID_MAX 255
#define PUBLIC_KEY_BYTES_MAX 512 /* RSA: of the modulus */
#define PUBLIC_KEY_ED25519_BYTES 32
#define PUBLIC_KEY_P256_BYTES 65 /* an uncompressed point */
#define PUBLIC_KEY_RSA_BITS_MIN 2048
#define KEY_SET_WHY_MAX 160

struct public_key {
	enum config_algorithm algorithm;
	size_t id_n, n;
	char id[PUBLIC_KEY_ID_MAX];
	uint8_t bytes[PUBLIC_KEY_BYTES_MAX]; /* EdDSA: the key; ES256: the point; RS256: the modulus */
	uint32_t exponent;                   /* RS256 */
	void *handle;                        /* owned: OpenSSL's */
};

struct key_set {
	size_t count;
	struct public_key keys[KEY_SET_KEYS_MAX];
};

/* Adds a copy of the key, and makes its handle. Returns 0; -EINVAL: the key is not valid; -EEXIST: a key with this id
 * and algorithm is there; or -ENOSPC. */
int key_set_add(struct key_set *set, const struct public_key *key);
/* Reads a JSON Web Key Set (RFC 7517). Keys for another use or of another kind are skipped. Refused, with why: a secret
 * or private key, a set with no key that can be used, or with two that could be taken for each other. *set is empty
 * before. Returns 0, -EINVAL or -ENOMEM; on failure the set is empty again. */
int key_set_read(struct key_set *set, struct slice json, char why[KEY_SET_WHY_MAX]);
void key_set_fini(struct key_set *set);
bool key_set_equals(const struct key_set *a, const struct key_set *b);

/* A signer: what its tokens must have, and its keys. */
struct token_signer {
	struct config_terms terms;
	struct key_set keys;
};

/* A token that was verified. */
struct signed_claims {
	char text[SIGNED_TOKEN_MAX];
	struct json_tree tree; /* borrows text */
	int64_t expires_s;     /* exp: Unix time */
};

/* True for a text that may be such a token: three parts of base64url with dots between. */
bool signed_token_is_like(struct slice text);
/* Verifies a session's token against all signers of sessions. Returns the index of the signer that signed it, and fills
 * in claims, which the caller ends with signed_claims_fini(); or -1 with *why (static) and nothing to end. now_s: Unix
 * time. */
int signed_token_check(struct slice text, const struct token_signer *const signers[], size_t count, int64_t now_s,
        struct signed_claims *claims, const char **why);
/* Does the same for the signature of a callback, against all signers of callbacks. */
int signed_callback_check(struct slice text, const struct token_signer *const signers[], size_t count, int64_t now_s,
        struct signed_claims *claims, const char **why);
void signed_claims_fini(struct signed_claims *claims);

/* --- parts, for tests --- */

struct signed_token {
	enum config_algorithm algorithm;
	size_t id_n; /* 0: the header names no key */
	char id[PUBLIC_KEY_ID_MAX];
	struct slice covered, payload; /* borrowed: what is signed; the claims in base64url */
	size_t signature_n;
	uint8_t signature[PUBLIC_KEY_BYTES_MAX];
};

/* Splits the text and reads its header. Returns NULL, or why it is refused (static). */
const char *signed_token_read(struct slice text, struct signed_token *out);
bool signed_token_is_signed_by(const struct signed_token *token, const struct public_key *key);
/* Reads the claims. Returns NULL, or why they are refused; then there is nothing to end. */
const char *signed_token_read_claims(const struct signed_token *token, struct signed_claims *claims);
/* Compares what every token needs. Fills in expires_s. */
const char *signed_claims_check(struct signed_claims *claims, const struct config_terms *terms, int64_t now_s);

#endif
