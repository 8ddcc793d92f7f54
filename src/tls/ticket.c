/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: two keys, the current one for new tickets and the previous one only to open
 * tickets. The first use after an hour rotates them; after two idle hours both are dropped, so that
 * a key never outlives the tickets' lifetime.
 */
#include "tls/private.h"
#include "tls/ticket.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/secret.h"

bool ticket_keys_init(struct ticket_keys *keys, int64_t now_ms)
{
	memset(keys, 0, sizeof(*keys));
	keys->cipher = EVP_CIPHER_fetch(tls_library(), "AES-256-CBC", NULL);
	random_bytes(&keys->current, sizeof(keys->current));
	keys->made_ms = now_ms;
	return keys->cipher != NULL;
}

void ticket_keys_fini(struct ticket_keys *keys)
{
	EVP_CIPHER_free(keys->cipher);
	secret_wipe(keys, sizeof(*keys));
}

static void rotate(struct ticket_keys *keys, int64_t now_ms)
{
	int64_t age_ms = now_ms - keys->made_ms;

	if (age_ms < TICKET_KEY_LIFE_MS)
		return;
	keys->has_previous = age_ms < 2 * TICKET_KEY_LIFE_MS;
	if (keys->has_previous)
		keys->previous = keys->current;
	else
		secret_wipe(&keys->previous, sizeof(keys->previous));
	random_bytes(&keys->current, sizeof(keys->current));
	keys->made_ms = now_ms;
}

static bool load(const struct ticket_keys *keys, const struct ticket_key *key, const uint8_t *iv,
        EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool encrypt)
{
	OSSL_PARAM params[] = {
	        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
	        OSSL_PARAM_construct_octet_string(
	                OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->hmac, sizeof(key->hmac)),
	        OSSL_PARAM_construct_end(),
	};

	return EVP_MAC_CTX_set_params(mac, params) &&
	       EVP_CipherInit_ex2(cipher, keys->cipher, key->aes, iv, encrypt, NULL);
}

int ticket_keys_use(struct ticket_keys *keys, int64_t now_ms, uint8_t name[16], uint8_t *iv,
        EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool encrypt)
{
	rotate(keys, now_ms);
	if (encrypt) {
		memcpy(name, keys->current.name, sizeof(keys->current.name));
		if (RAND_bytes_ex(tls_library(), iv, (size_t)EVP_CIPHER_get_iv_length(keys->cipher),
		            0) != 1)
			return -1;
		return load(keys, &keys->current, iv, cipher, mac, true) ? 1 : -1;
	}
	if (memcmp(name, keys->current.name, sizeof(keys->current.name)) == 0)
		return load(keys, &keys->current, iv, cipher, mac, false) ? 1 : -1;
	if (keys->has_previous &&
	        memcmp(name, keys->previous.name, sizeof(keys->previous.name)) == 0)
		return load(keys, &keys->previous, iv, cipher, mac, false) ? 2 : -1;
	return 0;
}
