/* SPDX-License-Identifier: Apache-2.0 */
/* If the token has lost a key that is kept here, the next signature by it fails. Then the process
 * ends, and the next process looks for the key again. */
#include "token/keys.h"

#include <stdio.h>

static bool find_anew(struct keys *keys, struct key *key, struct slice uri, char why[KEY_WHY_MAX])
{
	struct pkcs11_uri parsed;
	const char *wrong = pkcs11_uri_parse(uri, &parsed);
	const size_t at = keys->next;

	if (wrong) {
		snprintf(why, KEY_WHY_MAX, "the URI cannot be read: %s", wrong);
		return false;
	}
	if (!key_is_in(key, &parsed, why) || !key_find(key, &parsed, why))
		return false;
	snprintf(keys->list[at].uri, sizeof(keys->list[at].uri), "%.*s", SLICE_ARG(uri));
	keys->list[at].object = key->object;
	keys->list[at].kind = key->kind;
	keys->next = (at + 1) % KEYS_MAX;
	keys->count += keys->count < KEYS_MAX;
	return true;
}

bool keys_select(struct keys *keys, struct key *key, struct slice uri, char why[KEY_WHY_MAX])
{
	for (size_t i = 0; i < keys->count; i++) {
		if (!slice_equals(uri, slice_from_string(keys->list[i].uri)))
			continue;
		key->object = keys->list[i].object;
		key->kind = keys->list[i].kind;
		return true;
	}
	return find_anew(keys, key, uri, why);
}
