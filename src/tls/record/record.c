/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a record that has come whole is decrypted from the lent input directly into
 * the owner's memory, and content is encrypted from the owner's memory directly into the output.
 * Only a record that came in parts, or whose content does not fit what the owner reads, is held in
 * memory of the connection's own.
 *
 * What a peer may send after the handshake: data; a KeyUpdate, which must end its record, because
 * the next one has other keys; alerts of two bytes. A server's further tickets are ignored.
 * Everything else ends the connection with the alert that RFC 8446 names.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdlib.h>

#include "tls/record/record.h"

#define HANDSHAKE_TICKET 4
#define HANDSHAKE_KEY_UPDATE 24
#define MESSAGE_HEADER 4
#define ALERT_WARNING 1
#define ALERT_FATAL 2
/* As many as OpenSSL takes. */
#define EMPTY_MAX 32
#define ALERTS_MAX 4

/* --- ends --- */

static enum tls_status output_failed(struct tls *tls, int rc)
{
	return tls_fail(tls, rc == -ENOBUFS  ? "output buffer is full"
	                     : rc == -ENOMEM ? "out of memory"
	                                     : "TLS failure");
}

/* Ends the connection with an alert. */
static enum tls_status refuse(struct tls *tls, uint8_t alert, const char *text)
{
	const uint8_t bytes[] = {ALERT_FATAL, alert};

	if (!tls->layer->closed)
		record_seal(tls->layer, RECORD_ALERT, bytes, sizeof(bytes), tls->out);
	tls->layer->closed = true;
	return tls_fail(tls, text);
}

static enum tls_status refuse_reason(struct tls *tls, uint8_t alert, int reason)
{
	const char *text = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason));

	return refuse(tls, alert, text ? text : "TLS failure");
}

void record_layer_free(struct record_layer *layer)
{
	if (!layer)
		return;
	record_keys_close(layer);
	OPENSSL_clear_free(layer->held, RECORD_MAX);
	OPENSSL_cleanse(layer, sizeof(*layer));
	free(layer);
}

/* --- writing --- */

/* Gives the peer notice of new keys, and uses them from now on. */
static int update_writing(struct tls *tls)
{
	static const uint8_t message[] = {HANDSHAKE_KEY_UPDATE, 0, 0, 1, 0};
	int rc = record_seal(tls->layer, RECORD_HANDSHAKE, message, sizeof(message), tls->out);

	if (rc < 0)
		return rc;
	return record_keys_update(tls->layer, &tls->layer->writing) ? 0 : -EIO;
}

enum tls_status record_write(struct tls *tls, const uint8_t *p, size_t n)
{
	struct record_layer *layer = tls->layer;

	if (layer->closed)
		return tls_fail(tls, "protocol is shutdown");
	while (n > 0) {
		size_t part = n < RECORD_PLAIN_MAX ? n : RECORD_PLAIN_MAX;
		int rc = layer->writing.sequence < layer->key_life ? 0 : update_writing(tls);

		if (rc == 0)
			rc = record_seal(layer, RECORD_DATA, p, part, tls->out);
		if (rc < 0)
			return output_failed(tls, rc);
		p += part;
		n -= part;
	}
	return TLS_OK;
}

void record_close(struct tls *tls)
{
	static const uint8_t notify[] = {ALERT_WARNING, SSL_AD_CLOSE_NOTIFY};

	if (tls->layer->closed)
		return;
	tls->layer->closed = true;
	record_seal(tls->layer, RECORD_ALERT, notify, sizeof(notify), tls->out);
}

/* --- what is not data --- */

static enum tls_status take_alert(struct tls *tls, const uint8_t *p, size_t n)
{
	const char *text;

	if (n != 2)
		return refuse_reason(tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_INVALID_ALERT);
	if (p[1] == SSL_AD_CLOSE_NOTIFY)
		return tls->final = TLS_CLOSED;
	if (p[1] == SSL_AD_USER_CANCELLED) {
		if (++tls->layer->alert_count > ALERTS_MAX)
			return refuse_reason(
			        tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_TOO_MANY_WARN_ALERTS);
		return TLS_OK;
	}
	tls->layer->closed = true;
	text = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, SSL_AD_REASON_OFFSET + p[1]));
	return tls_fail(tls, text ? text : "TLS failure");
}

static enum tls_status take_key_update(struct tls *tls, uint8_t request)
{
	struct record_layer *layer = tls->layer;
	int rc = 0;

	if (request > 1)
		return refuse_reason(tls, SSL_AD_ILLEGAL_PARAMETER, SSL_R_BAD_KEY_UPDATE);
	if (!tls_message_passes(tls))
		return TLS_ERROR;
	if (!record_keys_update(layer, &layer->reading))
		return tls_fail(tls, "TLS failure");
	if (request && !layer->closed)
		rc = update_writing(tls);
	return rc < 0 ? output_failed(tls, rc) : TLS_OK;
}

/* Takes a message of which at least the header has come. last: the record holds no further byte. */
static enum tls_status take_message(struct tls *tls, bool last)
{
	struct record_layer *layer = tls->layer;
	const uint8_t *m = layer->message;
	size_t length = (size_t)m[1] << 16 | (size_t)m[2] << 8 | m[3];

	if (m[0] == HANDSHAKE_TICKET && tls->client && length > 0 && length <= RECORD_TICKET_MAX) {
		layer->message_n = 0;
		layer->ticket_left = (uint32_t)length;
		return tls_message_passes(tls) ? TLS_OK : TLS_ERROR;
	}
	if (m[0] != HANDSHAKE_KEY_UPDATE)
		return refuse_reason(tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_UNEXPECTED_MESSAGE);
	if (length != 1)
		return refuse_reason(tls, SSL_AD_DECODE_ERROR, SSL_R_BAD_KEY_UPDATE);
	if (layer->message_n <= MESSAGE_HEADER)
		return TLS_OK;
	layer->message_n = 0;
	if (!last)
		return refuse_reason(tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_NOT_ON_RECORD_BOUNDARY);
	return take_key_update(tls, m[4]);
}

/* Collects a KeyUpdate, which may come in several records, and passes over a server's tickets. */
static enum tls_status take_handshake(struct tls *tls, const uint8_t *p, size_t n)
{
	struct record_layer *layer = tls->layer;
	enum tls_status status = TLS_OK;

	if (n == 0)
		return refuse_reason(tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_BAD_LENGTH);
	while (n > 0 && status == TLS_OK) {
		size_t passed = layer->ticket_left < n ? layer->ticket_left : n;

		layer->ticket_left -= (uint32_t)passed;
		p += passed;
		n -= passed;
		if (n == 0)
			break;
		layer->message[layer->message_n++] = *p++;
		n--;
		if (layer->message_n >= MESSAGE_HEADER)
			status = take_message(tls, n == 0);
	}
	return status;
}

/* Takes the content of a record that is not data, or is out of place. */
static enum tls_status take_other(struct tls *tls, uint8_t type, const uint8_t *p, size_t n)
{
	struct record_layer *layer = tls->layer;

	if ((layer->message_n > 0 || layer->ticket_left > 0) && type != RECORD_HANDSHAKE)
		return refuse_reason(tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_UNEXPECTED_RECORD);
	if (type == RECORD_ALERT)
		return take_alert(tls, p, n);
	if (type == RECORD_HANDSHAKE)
		return take_handshake(tls, p, n);
	return refuse_reason(tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_UNEXPECTED_RECORD);
}

/* --- records --- */

/* Examines a header. *n: bytes of the whole record. */
static enum tls_status look_at_header(struct tls *tls, const uint8_t *p, size_t *n)
{
	size_t sealed = (size_t)p[3] << 8 | p[4];

	*n = RECORD_HEADER + sealed;
	if (p[0] != RECORD_DATA)
		return refuse_reason(tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_BAD_RECORD_TYPE);
	if (p[1] != 3 || p[2] != 3)
		return refuse_reason(tls, SSL_AD_DECODE_ERROR, SSL_R_WRONG_VERSION_NUMBER);
	if (sealed > RECORD_CIPHER_MAX)
		return refuse_reason(tls, SSL_AD_RECORD_OVERFLOW, SSL_R_ENCRYPTED_LENGTH_TOO_LONG);
	return TLS_OK;
}

/* The greatest length of content that a record of n bytes can hold. */
static size_t content_max(size_t n)
{
	return n > RECORD_SEALED ? n - RECORD_SEALED : 0;
}

/* Opens a record into out. *n: bytes of data that it held. */
static enum tls_status open_into(
        struct tls *tls, const uint8_t *record, size_t record_n, uint8_t *out, size_t *n)
{
	struct record_layer *layer = tls->layer;
	enum tls_status status;
	uint8_t type, alert;
	size_t content;

	*n = 0;
	alert = record_open(layer, record, record_n, out, &type, &content);
	if (alert == SSL_AD_BAD_RECORD_MAC)
		return refuse_reason(tls, alert, SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC);
	if (alert == SSL_AD_RECORD_OVERFLOW)
		return refuse_reason(tls, alert, SSL_R_DATA_LENGTH_TOO_LONG);
	if (alert == SSL_AD_INTERNAL_ERROR)
		return refuse(tls, alert, "out of memory");
	if (alert)
		return refuse_reason(tls, alert, SSL_R_BAD_RECORD_TYPE);
	if (type == RECORD_DATA && !layer->message_n && !layer->ticket_left) {
		if (content > 0)
			layer->empty_count = layer->alert_count = 0;
		else if (++layer->empty_count > EMPTY_MAX)
			return refuse_reason(
			        tls, SSL_AD_UNEXPECTED_MESSAGE, SSL_R_RECORD_TOO_SMALL);
		*n = content;
		return TLS_OK;
	}
	status = take_other(tls, type, out, content);
	OPENSSL_cleanse(out, content);
	return status;
}

/* Moves up to `wanted` bytes of input to the record that is held. False: no memory. */
static bool hold(struct tls *tls, size_t wanted)
{
	struct record_layer *layer = tls->layer;
	size_t n = wanted < tls->in_left ? wanted : tls->in_left;

	if (!layer->held)
		layer->held = OPENSSL_malloc(RECORD_MAX);
	if (!layer->held)
		return false;
	memcpy(layer->held + layer->held_n, tls->in, n);
	layer->held_n += n;
	tls->in += n;
	tls->in_left -= n;
	return true;
}

static void drop_held(struct record_layer *layer)
{
	OPENSSL_free(layer->held);
	layer->held = NULL;
	layer->held_n = layer->plain_n = 0;
}

/* Gives the owner as much of the held content as fits. */
static void give_held(struct record_layer *layer, uint8_t *out, size_t cap, size_t *n)
{
	*n = cap < layer->plain_n ? cap : layer->plain_n;
	memcpy(out, layer->held + layer->plain_at, *n);
	OPENSSL_cleanse(layer->held + layer->plain_at, *n);
	layer->plain_at += *n;
	layer->plain_n -= *n;
	if (!layer->plain_n)
		drop_held(layer);
}

/* Opens the record that is held: into out if it fits, otherwise in its place. */
static enum tls_status open_held(struct tls *tls, uint8_t *out, size_t cap, size_t *n)
{
	struct record_layer *layer = tls->layer;
	size_t record_n = layer->held_n;
	enum tls_status status;

	layer->held_n = 0;
	if (cap >= content_max(record_n)) {
		status = open_into(tls, layer->held, record_n, out, n);
		drop_held(layer);
		return status;
	}
	layer->plain_at = RECORD_HEADER;
	status =
	        open_into(tls, layer->held, record_n, layer->held + RECORD_HEADER, &layer->plain_n);
	if (status == TLS_OK && layer->plain_n > 0)
		give_held(layer, out, cap, n);
	else
		drop_held(layer);
	return status;
}

/* Adds input to the record that is held, and opens it once it is whole. TLS_WANT_READ: not yet. */
static enum tls_status fill_held(struct tls *tls, uint8_t *out, size_t cap, size_t *n)
{
	struct record_layer *layer = tls->layer;
	size_t record_n = RECORD_HEADER;
	enum tls_status status;

	if (layer->held_n < RECORD_HEADER && !hold(tls, RECORD_HEADER - layer->held_n))
		return tls_fail(tls, "out of memory");
	if (layer->held_n < RECORD_HEADER)
		return TLS_WANT_READ;
	status = look_at_header(tls, layer->held, &record_n);
	if (status != TLS_OK)
		return status;
	if (!hold(tls, record_n - layer->held_n))
		return tls_fail(tls, "out of memory");
	return layer->held_n < record_n ? TLS_WANT_READ : open_held(tls, out, cap, n);
}

/* Takes one record, or a part of one. *n may be 0 with TLS_OK. */
static enum tls_status read_record(struct tls *tls, uint8_t *out, size_t cap, size_t *n)
{
	struct record_layer *layer = tls->layer;
	const uint8_t *record = tls->in;
	enum tls_status status;
	size_t record_n;

	*n = 0;
	if (layer->plain_n > 0) {
		give_held(layer, out, cap, n);
		return TLS_OK;
	}
	if (tls->in_left == 0)
		return TLS_WANT_READ;
	if (layer->held_n > 0 || tls->in_left < RECORD_HEADER)
		return fill_held(tls, out, cap, n);
	status = look_at_header(tls, record, &record_n);
	if (status != TLS_OK)
		return status;
	if (tls->in_left < record_n || cap < content_max(record_n))
		return fill_held(tls, out, cap, n);
	tls->in += record_n;
	tls->in_left -= record_n;
	return open_into(tls, record, record_n, out, n);
}

enum tls_status record_read(struct tls *tls, uint8_t *out, size_t cap, size_t *n)
{
	enum tls_status status = TLS_OK;

	*n = 0;
	while (*n < cap && status == TLS_OK) {
		size_t got;

		status = read_record(tls, out + *n, cap - *n, &got);
		tls_count_content(tls, got);
		*n += got;
	}
	return *n > 0 ? TLS_OK : status;
}
