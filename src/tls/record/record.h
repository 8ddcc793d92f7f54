/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: the record layer of TLS 1.3 (RFC 8446 section 5) after the handshake. OpenSSL shakes
 * hands; then takeover.c takes the traffic secrets, frees OpenSSL's connection, and these files go
 * on.
 */
#ifndef VETHGUARD_SRC_TLS_RECORD_RECORD_H
#define VETHGUARD_SRC_TLS_RECORD_RECORD_H

#include <openssl/evp.h>

#include "tls/private.h"
#include "vethguard/base/list.h"

#define RECORD_HEADER 5
#define RECORD_TAG 16
#define RECORD_IV 12
#define RECORD_KEY_MAX 32
#define RECORD_SECRET_MAX 48                           /* bytes of SHA-384 */
#define RECORD_PLAIN_MAX 16384                         /* content of one record */
#define RECORD_CIPHER_MAX (RECORD_PLAIN_MAX + 256)     /* its protected form */
#define RECORD_MAX (RECORD_HEADER + RECORD_CIPHER_MAX) /* with its header */
#define RECORD_SEALED (RECORD_HEADER + 1 + RECORD_TAG) /* what sealing adds to the content */
#define RECORD_KEY_LIFE (UINT64_C(1) << 24) /* records under one key (section 5.5: 2^24.5) */
#define RECORD_TICKET_MAX 131338            /* a server's longest ticket (section 4.6.1) */
#define RECORD_CIPHERS_OPEN 128             /* connections with cipher contexts */

/* Content types. */
enum { RECORD_ALERT = 21, RECORD_HANDSHAKE = 22, RECORD_DATA = 23 };

/* What all connections of a server or client share. */
struct record_suites {
	EVP_CIPHER *ciphers[3]; /* in the order of their numbers, 0x1301 to 0x1303 */
	EVP_MD *sha256, *sha384;
	EVP_MD_CTX *digest;
	struct list open; /* connections with cipher contexts; least recently used first */
	unsigned open_count;
};

/* Parts of a direction's keys that takeover.c has got from OpenSSL. */
enum { RECORD_SECRET = 1, RECORD_KEY = 2, RECORD_NONCE = 4, RECORD_ALL = 7 };

/* One direction. */
struct record_keys {
	EVP_CIPHER_CTX *cipher; /* NULL: made again when it is needed */
	uint64_t sequence;      /* of the next record */
	uint8_t parts;          /* takeover.c */
	uint8_t iv[RECORD_IV];
	uint8_t key[RECORD_KEY_MAX];
	uint8_t secret[RECORD_SECRET_MAX]; /* the traffic secret */
};

struct record_layer {
	struct record_suites *suites;
	struct list open; /* in suites->open */
	struct record_keys reading, writing;
	uint64_t key_life;               /* RECORD_KEY_LIFE; tests shorten it */
	uint8_t suite;                   /* of suites->ciphers */
	uint8_t secret_bytes, key_bytes; /* takeover.c */
	struct record_keys *told;        /* ... the direction of the key and IV that come next */
	bool ticketed;                   /* ... a server's ticket has come */
	bool unfit;                      /* ... OpenSSL keeps this connection */
	bool closed;                     /* close_notify was sent */
	uint8_t message_n;               /* bytes of a message that goes on in the next record */
	uint8_t message[5];              /* ... a KeyUpdate, with its header */
	uint32_t ticket_left;            /* bytes of a server's ticket that are still to come */
	uint8_t empty_count;             /* records without content, one after another */
	uint8_t alert_count;             /* alerts that are ignored, likewise */
	/* A record that has not come whole, or whose content the owner has not taken whole. */
	uint8_t *held; /* RECORD_MAX bytes; NULL: none */
	size_t held_n;
	size_t plain_at, plain_n; /* decrypted content in it */
};

/* --- record_keys.c --- */

/* Returns false if OpenSSL lacks something; the suites are then empty, and no connection is taken
 * over. */
bool record_suites_init(struct record_suites *suites);
void record_suites_fini(struct record_suites *suites);
/* Bytes of the suite's secrets, and of its keys. */
size_t record_secret_bytes(const struct record_layer *layer);
size_t record_key_bytes(const struct record_layer *layer);
/* Derives key and IV from the traffic secret in keys->secret. False: OpenSSL failed. */
bool record_keys_begin(struct record_layer *layer, struct record_keys *keys);
/* Goes on with the next generation of the secret (section 7.2). */
bool record_keys_update(struct record_layer *layer, struct record_keys *keys);
/* Appends one record with n <= RECORD_PLAIN_MAX bytes. Returns 0, -ENOBUFS or -ENOMEM (nothing was
 * appended), or -EIO. */
int record_seal(
        struct record_layer *layer, uint8_t type, const uint8_t *p, size_t n, struct buf *out);
/* Opens a whole record. out has room for n - RECORD_SEALED bytes, and may be where the record's
 * protected content is. Sets the type and length of the content. Returns 0, or the alert to send
 * with out wiped. */
uint8_t record_open(struct record_layer *layer, const uint8_t *record, size_t n, uint8_t *out,
        uint8_t *type, size_t *out_n);
/* Frees the cipher contexts. */
void record_keys_close(struct record_layer *layer);

/* --- record.c --- */

void record_layer_free(struct record_layer *layer);
enum tls_status record_read(struct tls *tls, uint8_t *out, size_t cap, size_t *n);
enum tls_status record_write(struct tls *tls, const uint8_t *p, size_t n);
void record_close(struct tls *tls);

/* --- takeover.c --- */

/* Call these before and after each step of a handshake. */
void takeover_watch(struct tls *tls);
void takeover_unwatch(void);
/* Call this for each message and record that OpenSSL reports. */
void takeover_on_message(struct tls *tls, int sent, int type, const uint8_t *p, size_t n);
/* Takes the connection over if that is possible; otherwise OpenSSL keeps it. */
void takeover(struct tls *tls);

#endif
