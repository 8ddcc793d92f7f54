/* SPDX-License-Identifier: Apache-2.0 */
/* key: a private key in a token, from the module's file to a signature. */
#ifndef VETHGUARD_SRC_TOKEN_KEY_H
#define VETHGUARD_SRC_TOKEN_KEY_H

#include "token/cryptoki.h"
#include "vethguard/wire/message.h"
#include "vethguard/wire/pkcs11_uri.h"

#define KEY_WHY_MAX 512

struct key {
	const struct ck_functions *functions;
	ck_ulong slot, session, object;
	enum message_token_key kind;
	bool broken;     /* a call of the module has failed: the session cannot be used any more */
	char token[100]; /* the token's label, for people */
};

/* On failure these functions return false with why, a sentence that says what to do next. */

/* Loads the module and initializes it. From then on foreign code runs in this process. */
bool key_load_module(struct key *key, const char *path, char why[KEY_WHY_MAX]);
/* Finds the one token that the URI names, and checks that a login can be tried without the risk of
 * locking it. */
bool key_find_token(
        struct key *key, const struct pkcs11_uri *uri, bool *needs_login, char why[KEY_WHY_MAX]);
/* Logs in, with one attempt that is never repeated here. */
bool key_log_in(struct key *key, struct slice pin, char why[KEY_WHY_MAX]);
/* True if the URI fits the token that was found; else why says what is wrong. */
bool key_is_in(struct key *key, const struct pkcs11_uri *uri, char why[KEY_WHY_MAX]);
/* Finds the one key, and checks that it can sign. */
bool key_find(struct key *key, const struct pkcs11_uri *uri, char why[KEY_WHY_MAX]);
/* True if a key of this kind signs by this scheme; else why says what is wrong. */
bool key_fits(const struct key *key, uint16_t scheme, char why[KEY_WHY_MAX]);
/* Signs a digest of the scheme's length, by a scheme that fits. MESSAGE_SCHEME_ANY: by PKCS #1 1.5
 * or ECDSA. Returns the size of the signature, or 0 with why; key->broken: the token failed, and
 * has not only refused the scheme or the digest. */
size_t key_sign(struct key *key, uint16_t scheme, struct slice digest,
        uint8_t out[MESSAGE_SIGNATURE_MAX], char why[KEY_WHY_MAX]);

#endif
