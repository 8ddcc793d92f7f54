/* SPDX-License-Identifier: Apache-2.0 */
/* keys: remembers the keys of a token that were used last, so that not each signature has to look
 * for its key. */
#ifndef VETHGUARD_SRC_TOKEN_KEYS_H
#define VETHGUARD_SRC_TOKEN_KEYS_H

#include "token/key.h"

#define KEYS_MAX 8 /* beyond that the oldest one is looked for again */

struct keys {
	size_t count, next; /* next: the place of the next one that is found */
	struct {
		char uri[PKCS11_URI_MAX + 1];
		ck_ulong object;
		enum message_token_key kind;
	} list[KEYS_MAX];
};

/* Makes the key with this URI the one that signs; key has the session. Returns false with why: the
 * URI names another token or no single key, or the key cannot sign. */
bool keys_select(struct keys *keys, struct key *key, struct slice uri, char why[KEY_WHY_MAX]);

#endif
