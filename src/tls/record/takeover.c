/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: OpenSSL keeps 14 KB for each connection as long as it lives, nearly all of
 * it for the handshake. So after the handshake of a TLS 1.3 connection its record layer is taken
 * over (record.c) and OpenSSL's connection is freed.
 *
 * The traffic secrets, keys and IVs are told while OpenSSL derives them (secrets.h). It derives
 * those of a direction when it begins to use them. From then on the records of that direction are
 * counted, because the server's tickets, and the first data, still go through OpenSSL.
 *
 * A connection is left to OpenSSL if it speaks TLS 1.2, if anything is missing, or if OpenSSL holds
 * part of a record. A client's connection is taken over only after a ticket has come, because only
 * OpenSSL can make a session of it.
 */
#include <openssl/crypto.h>
#include <stdlib.h>

#include "tls/record/record.h"
#include "tls/record/secrets.h"

#define FIRST_SUITE 0x1301
#define SUITES 3

static struct record_layer *layer_of(struct tls *tls)
{
	if (!tls->layer)
		tls->layer = calloc(1, sizeof(*tls->layer));
	return tls->layer;
}

/* Takes a part of the keys of one direction. */
static void take(struct record_layer *layer, struct record_keys *keys, uint8_t part, uint8_t *to,
        size_t max, struct slice secret)
{
	if (secret.n > max)
		return;
	memcpy(to, secret.p, secret.n);
	keys->parts |= part;
	if (part == RECORD_SECRET)
		layer->secret_bytes = (uint8_t)secret.n;
	if (part == RECORD_KEY)
		layer->key_bytes = (uint8_t)secret.n;
}

/* OpenSSL derives key and IV right after the traffic secret that they belong to. After any other
 * label they belong to another secret. */
static void on_secret(void *context, struct slice label, struct slice secret)
{
	struct tls *tls = context;
	bool of_server = slice_equals(label, SLICE("s ap traffic"));
	struct record_layer *layer = tls->layer;

	if (of_server || slice_equals(label, SLICE("c ap traffic"))) {
		layer = layer_of(tls);
		if (!layer)
			return;
		layer->told =
		        of_server == (tls->server != NULL) ? &layer->writing : &layer->reading;
		layer->told->sequence = 0;
		take(layer, layer->told, RECORD_SECRET, layer->told->secret, RECORD_SECRET_MAX,
		        secret);
	} else if (layer && layer->told && slice_equals(label, SLICE("key"))) {
		take(layer, layer->told, RECORD_KEY, layer->told->key, RECORD_KEY_MAX, secret);
	} else if (layer && layer->told && slice_equals(label, SLICE("iv")) &&
	           secret.n == RECORD_IV) {
		take(layer, layer->told, RECORD_NONCE, layer->told->iv, RECORD_IV, secret);
	} else if (layer) {
		layer->told = NULL;
	}
}

void takeover_watch(struct tls *tls)
{
	secrets_watch(on_secret, tls);
}

void takeover_unwatch(void)
{
	secrets_watch(NULL, NULL);
}

void takeover_on_message(struct tls *tls, int sent, int type, const uint8_t *p, size_t n)
{
	struct record_layer *layer = tls->layer;

	if (!layer)
		return;
	if (type == SSL3_RT_HEADER && sent && layer->writing.parts)
		layer->writing.sequence++;
	if (type == SSL3_RT_HEADER && !sent && layer->reading.parts)
		layer->reading.sequence++;
	if (type == SSL3_RT_HANDSHAKE && n > 0 && p[0] == SSL3_MT_KEY_UPDATE)
		layer->unfit = true;
	if (type == SSL3_RT_HANDSHAKE && n > 0 && p[0] == SSL3_MT_NEWSESSION_TICKET)
		layer->ticketed = true;
}

/* True if OpenSSL is between two records (its next step is to read a header, SSL_rstate_string(3))
 * and has given out all that it has read. */
static bool is_between_records(const SSL *ssl)
{
	return !SSL_has_pending(ssl) && strcmp(SSL_rstate_string(ssl), "RH") == 0;
}

/* True if the connection can be taken over now. */
static bool is_ready(const struct tls *tls, const struct record_layer *layer)
{
	return layer->reading.parts == RECORD_ALL && layer->writing.parts == RECORD_ALL &&
	       !layer->unfit && (tls->server || layer->ticketed) &&
	       SSL_version(tls->ssl) == TLS1_3_VERSION && is_between_records(tls->ssl);
}

void takeover(struct tls *tls)
{
	struct record_layer *layer = tls->layer;
	unsigned suite;

	if (!is_ready(tls, layer))
		return;
	suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(tls->ssl)) - FIRST_SUITE;
	layer->suites = tls->suites;
	layer->suite = (uint8_t)suite;
	layer->key_life = RECORD_KEY_LIFE;
	if (suite >= SUITES || !layer->suites->digest ||
	        record_secret_bytes(layer) != layer->secret_bytes ||
	        record_key_bytes(layer) != layer->key_bytes) {
		layer->unfit = true;
		return;
	}
	tls_ssl_free(tls);
}
