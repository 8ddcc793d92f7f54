/* SPDX-License-Identifier: Apache-2.0 */
/* ticket: the keys that protect a server's session tickets (RFC 5077 section 4), renewed hourly and
 * wiped when old. */
#ifndef VETHGUARD_SRC_TLS_TICKET_H
#define VETHGUARD_SRC_TLS_TICKET_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

#define TICKET_KEY_LIFE_MS \
	(60 * 60 * 1000) /* a key makes tickets this long, and opens them twice as long */

struct ticket_key {
	uint8_t name[16];
	uint8_t aes[32];
	uint8_t hmac[32];
};

struct ticket_keys {
	struct ticket_key current;
	struct ticket_key previous;
	bool has_previous;
	int64_t made_ms;
	EVP_CIPHER *cipher; /* fetched once: a fetch per ticket costs more than the ticket */
};

bool ticket_keys_init(struct ticket_keys *keys, int64_t now_ms);
void ticket_keys_fini(struct ticket_keys *keys);
/* Does the work of the callback; see SSL_CTX_set_tlsext_ticket_key_evp_cb(3). */
int ticket_keys_use(struct ticket_keys *keys, int64_t now_ms, uint8_t name[16], uint8_t *iv,
        EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool encrypt);

#endif
