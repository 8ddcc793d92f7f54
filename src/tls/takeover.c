/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: OpenSSL keeps 14 KB for each connection as long as it lives, nearly all of
 * it for the handshake. So after the handshake of a TLS 1.3 connection its record layer is taken
 * over (record.c) and OpenSSL's connection is freed.
 *
 * The traffic secrets come from OpenSSL's key log (SSL_CTX_set_keylog_callback(3)), here in memory
 * only. It writes a line for each of five secrets, which takes time, so it is switched on by the
 * message before each of the two that are needed, and off again when the secret is there. From then
 * on the records of that direction are counted, because the server's tickets, and the first data,
 * still go through OpenSSL.
 *
 * A connection is left to OpenSSL if it speaks TLS 1.2, if anything is missing, or if OpenSSL holds
 * part of a record. A client's connection is taken over only after a ticket has come, because only
 * OpenSSL can make a session of it.
 */
#include <openssl/crypto.h>
#include <stdlib.h>

#include "tls/record.h"

#define SECRET_READING 1
#define SECRET_WRITING 2
#define FIRST_SUITE 0x1301
#define SUITES 3

static uint8_t from_hex(char c)
{
	return (uint8_t)(c >= '0' && c <= '9'   ? c - '0'
	                 : c >= 'a' && c <= 'f' ? c - 'a' + 10
	                                        : 255);
}

/* Reads exactly n bytes in hex. */
static bool hex_read(struct slice text, uint8_t *out, size_t n)
{
	if (text.n != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint8_t high = from_hex(text.p[2 * i]), low = from_hex(text.p[2 * i + 1]);

		if (high > 15 || low > 15)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static struct record_layer *layer_of(struct tls *tls)
{
	if (!tls->layer)
		tls->layer = calloc(1, sizeof(*tls->layer));
	return tls->layer;
}

/* A line of the key log: a name, the ClientHello's random number, and the secret. */
static void on_key(const SSL *ssl, const char *text)
{
	struct tls *tls = tls_of_ssl(ssl);
	struct slice line = slice_from_string(text);
	bool of_server = slice_starts_with(line, SLICE("SERVER_TRAFFIC_SECRET_0 "));
	struct record_layer *layer;
	struct record_keys *keys;
	const char *space = strrchr(text, ' ');
	size_t n;

	if (!of_server && !slice_starts_with(line, SLICE("CLIENT_TRAFFIC_SECRET_0 ")))
		return;
	SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(ssl), NULL);
	layer = layer_of(tls);
	n = strlen(space + 1) / 2;
	if (!layer || (n != 32 && n != RECORD_SECRET_MAX))
		return;
	keys = of_server == (tls->server != NULL) ? &layer->writing : &layer->reading;
	if (!hex_read(slice_from_string(space + 1), keys->secret, n))
		return;
	keys->sequence = 0;
	layer->secret_bytes = (uint8_t)n;
	layer->secrets |= keys == &layer->writing ? SECRET_WRITING : SECRET_READING;
}

void takeover_on_message(struct tls *tls, int sent, int type, const uint8_t *p, size_t n)
{
	struct record_layer *layer = tls->layer;

	if (type == SSL3_RT_HANDSHAKE && n > 0 && p[0] == SSL3_MT_FINISHED && !tls->established &&
	        SSL_version(tls->ssl) == TLS1_3_VERSION) {
		SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(tls->ssl), on_key);
		return;
	}
	if (!layer)
		return;
	if (type == SSL3_RT_HEADER && sent && layer->secrets & SECRET_WRITING)
		layer->writing.sequence++;
	if (type == SSL3_RT_HEADER && !sent && layer->secrets & SECRET_READING)
		layer->reading.sequence++;
	if (type == SSL3_RT_HANDSHAKE && n > 0 && p[0] == SSL3_MT_KEY_UPDATE)
		layer->unfit = true;
	if (type == SSL3_RT_HANDSHAKE && n > 0 && p[0] == SSL3_MT_NEWSESSION_TICKET)
		layer->ticketed = true;
}

/* True if OpenSSL is between two records, and has given out all that it has read: its next step is
 * to read a header (SSL_rstate_string(3)). */
static bool is_between_records(const SSL *ssl)
{
	return !SSL_has_pending(ssl) && strcmp(SSL_rstate_string(ssl), "RH") == 0;
}

/* True if all that is needed is there. */
static bool is_ready(const struct tls *tls, const struct record_layer *layer)
{
	return layer->secrets == (SECRET_READING | SECRET_WRITING) && !layer->unfit &&
	       (tls->server || layer->ticketed) && SSL_version(tls->ssl) == TLS1_3_VERSION &&
	       is_between_records(tls->ssl);
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
	        !record_keys_begin(layer, &layer->reading) ||
	        !record_keys_begin(layer, &layer->writing)) {
		layer->unfit = true;
		return;
	}
	tls_ssl_free(tls);
}
