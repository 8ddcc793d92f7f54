/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another process can go on with a connection whose record layer was taken over (takeover.c). It
 * needs only the traffic secrets and the numbers of the next records: keys and IVs follow from the
 * secrets.
 */
#include <openssl/crypto.h>
#include <stdlib.h>

#include "tls/record/record.h"

_Static_assert(TLS_STATE_SECRET_MAX == RECORD_SECRET_MAX, "a secret of either suite");

/* True if the keys are the whole state: the connection has neither ended nor holds a part of a
 * record or message. */
static bool is_plain(const struct tls *tls)
{
	const struct record_layer *layer = tls->layer;

	return tls->server && tls->final == TLS_OK && !tls->in_left && !layer->held &&
	       !layer->message_n && !layer->ticket_left && !layer->closed;
}

bool tls_state_read(struct tls *tls, struct tls_state *out)
{
	const struct record_layer *layer;

	memset(out, 0, sizeof(*out));
	if (!tls_is_taken_over(tls) || !is_plain(tls))
		return false;
	layer = tls->layer;
	out->suite = layer->suite;
	out->secret_n = (uint8_t)record_secret_bytes(layer);
	out->reading_next = layer->reading.sequence;
	out->writing_next = layer->writing.sequence;
	memcpy(out->reading, layer->reading.secret, out->secret_n);
	memcpy(out->writing, layer->writing.secret, out->secret_n);
	return true;
}

static bool take_keys(struct record_layer *layer, struct record_keys *keys, const uint8_t *secret,
        size_t n, uint64_t next)
{
	memcpy(keys->secret, secret, n);
	keys->sequence = next;
	keys->parts = RECORD_ALL;
	return record_keys_begin(layer, keys);
}

/* Makes the record layer. Returns NULL if the state cannot be used, or without memory. */
static struct record_layer *layer_new(struct record_suites *suites, const struct tls_state *state)
{
	struct record_layer *layer;
	bool good;

	if (!suites->digest || state->suite >= sizeof(suites->ciphers) / sizeof(suites->ciphers[0]))
		return NULL;
	layer = calloc(1, sizeof(*layer));
	if (!layer)
		return NULL;
	layer->suites = suites;
	layer->suite = state->suite;
	layer->key_life = RECORD_KEY_LIFE;
	layer->secret_bytes = (uint8_t)record_secret_bytes(layer);
	layer->key_bytes = (uint8_t)record_key_bytes(layer);
	good = state->secret_n == layer->secret_bytes &&
	       take_keys(layer, &layer->reading, state->reading, state->secret_n,
	               state->reading_next) &&
	       take_keys(layer, &layer->writing, state->writing, state->secret_n,
	               state->writing_next);
	if (good)
		return layer;
	record_layer_free(layer);
	return NULL;
}

struct tls *tls_state_go_on(
        struct tls_server *server, const struct tls_state *state, struct buf *out)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	tls->server = server;
	tls->suites = tls_server_suites(server);
	tls->layer = layer_new(tls->suites, state);
	tls->out = out;
	tls->alpn = tls->chosen = SLICE("");
	tls->established = true;
	if (tls->layer)
		return tls;
	tls_free(tls);
	return NULL;
}
