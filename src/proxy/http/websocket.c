/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a frame is gathered as it comes, if need be byte by byte. Its first two bytes are
 * checked as soon as they are there, and its length likewise. Content is only counted.
 */
#include <string.h>

#include "proxy/http/websocket.h"
#include "vethguard/base/hash.h"

#define FIN 0x80
#define RSV1 0x40
#define RSV2_RSV3 0x30
#define MASKED 0x80
#define LENGTH_16 126
#define LENGTH_64 127

static size_t length_bytes(const struct websocket *w)
{
	uint8_t length = w->head[1] & 0x7f;

	return length == LENGTH_16 ? 2 : length == LENGTH_64 ? 8 : 0;
}

static size_t head_size(const struct websocket *w)
{
	if (w->head_n < 2)
		return 2;
	return 2 + length_bytes(w) + (w->head[1] & MASKED ? 4 : 0);
}

static const char *control_is_wrong(uint8_t first, uint8_t length)
{
	if (!(first & FIN))
		return "WebSocket: a control frame in fragments";
	if (length > WEBSOCKET_CONTROL_MAX)
		return "WebSocket: a control frame that is too long";
	if (first & RSV1)
		return "WebSocket: a reserved bit is set";
	if ((first & 15) == WEBSOCKET_CLOSE && length == 1)
		return "WebSocket: a close frame with half a code";
	return NULL;
}

static const char *data_is_wrong(const struct websocket *w, uint8_t first)
{
	bool goes_on = (first & 15) == WEBSOCKET_CONTINUATION;

	if ((first & RSV1) && (!w->deflate || goes_on))
		return "WebSocket: a reserved bit is set";
	if (goes_on && !w->in_message)
		return "WebSocket: a continuation of no message";
	if (!goes_on && w->in_message)
		return "WebSocket: a message inside another";
	return NULL;
}

/* Checks the first two bytes. */
static const char *start_is_wrong(const struct websocket *w)
{
	uint8_t first = w->head[0], opcode = first & 15;

	if (first & RSV2_RSV3)
		return "WebSocket: a reserved bit is set";
	if ((opcode > WEBSOCKET_BINARY && opcode < WEBSOCKET_CLOSE) || opcode > WEBSOCKET_PONG)
		return "WebSocket: an unknown kind of frame";
	if (!!(w->head[1] & MASKED) != w->masked)
		return w->masked ? "WebSocket: a frame of the client that is not masked"
		                 : "WebSocket: a frame of the server that is masked";
	if (opcode & 8)
		return control_is_wrong(first, w->head[1] & 0x7f);
	return data_is_wrong(w, first);
}

/* Reads the length (network byte order) into w->left. False: it is not written in its shortest
 * form, or is too large. */
static bool read_length(struct websocket *w)
{
	size_t extended = length_bytes(w);
	uint64_t length = 0;

	if (!extended) {
		w->left = w->head[1] & 0x7f;
		return true;
	}
	for (size_t i = 0; i < extended; i++)
		length = length << 8 | w->head[2 + i];
	w->left = length;
	return extended == 2 ? length >= LENGTH_16 : length > UINT16_MAX && length <= INT64_MAX;
}

static void begin_frame(struct websocket *w)
{
	w->fin = w->head[0] & FIN;
	w->opcode = w->head[0] & 15;
	w->at = 0;
	memset(w->key, 0, sizeof(w->key));
	if (w->masked)
		memcpy(w->key, w->head + w->head_n - sizeof(w->key), sizeof(w->key));
	w->head_was = w->head_n;
	w->head_n = 0;
	if (w->opcode & 8)
		return;
	if (w->opcode != WEBSOCKET_CONTINUATION) {
		w->compressed = w->head[0] & RSV1;
		w->text = w->opcode == WEBSOCKET_TEXT;
	}
	w->in_message = !w->fin;
}

static void maybe_closed(struct websocket *w)
{
	if (w->left == 0 && w->opcode == WEBSOCKET_CLOSE)
		w->closed = true;
}

static enum websocket_step gather(struct websocket *w, const uint8_t *p, size_t n, size_t *used)
{
	while (*used < n) {
		size_t take = head_size(w) - w->head_n;

		if (take > n - *used)
			take = n - *used;
		memcpy(w->head + w->head_n, p + *used, take);
		*used += take;
		w->head_n += (uint8_t)take;
		if (w->head_n == 2)
			w->error = start_is_wrong(w);
		if (!w->error && w->head_n == head_size(w)) {
			if (read_length(w)) {
				begin_frame(w);
				maybe_closed(w);
				return WEBSOCKET_HEAD;
			}
			w->error = "WebSocket: a length that is not written as short as it can be";
		}
		if (w->error) {
			w->left = 0;
			return WEBSOCKET_BAD;
		}
	}
	return WEBSOCKET_PARTIAL;
}

size_t websocket_next(struct websocket *w, const uint8_t *p, size_t n, enum websocket_step *step)
{
	size_t used = 0;

	if (w->error) {
		*step = WEBSOCKET_BAD;
	} else if (w->left) {
		used = n < w->left ? n : (size_t)w->left;
		w->left -= used;
		w->at += used;
		*step = WEBSOCKET_CONTENT;
		maybe_closed(w);
	} else if (w->closed) {
		used = n;
		*step = WEBSOCKET_OVER;
	} else {
		*step = gather(w, p, n, &used);
	}
	return used;
}

void websocket_unmask(const struct websocket *w, const uint8_t *p, size_t n, uint8_t *out)
{
	uint64_t first = w->at - n, keys, word;
	uint8_t turned[8];
	size_t i = 0;

	for (; i < sizeof(turned); i++)
		turned[i] = w->key[(first + i) & 3];
	memcpy(&keys, turned, sizeof(keys));
	for (i = 0; n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		word ^= keys;
		memcpy(out + i, &word, sizeof(word));
	}
	for (; i < n; i++)
		out[i] = p[i] ^ turned[i & 7];
}

/* --- writing --- */

size_t websocket_write_head(uint8_t out[WEBSOCKET_HEAD_MAX], bool fin, uint8_t opcode, uint64_t n)
{
	size_t extended = n < LENGTH_16 ? 0 : n <= UINT16_MAX ? 2 : 8;

	out[0] = (uint8_t)((fin ? FIN : 0) | opcode);
	out[1] = extended == 0 ? (uint8_t)n : extended == 2 ? LENGTH_16 : LENGTH_64;
	for (size_t i = 0; i < extended; i++)
		out[2 + i] = (uint8_t)(n >> 8 * (extended - 1 - i));
	return 2 + extended;
}

size_t websocket_write_close(uint8_t out[WEBSOCKET_CLOSE_BYTES], uint16_t code, bool masked)
{
	uint8_t *content = out + (masked ? 6 : 2);

	out[0] = FIN | WEBSOCKET_CLOSE;
	out[1] = (uint8_t)(2 | (masked ? MASKED : 0));
	content[0] = (uint8_t)(code >> 8);
	content[1] = (uint8_t)code;
	if (!masked)
		return 4;
	random_bytes(out + 2, 4);
	content[0] ^= out[2];
	content[1] ^= out[3];
	return 8;
}

void websocket_begin_text(struct websocket *w, uint64_t n)
{
	size_t head_n;

	*w = (struct websocket){.masked = true, .opcode = WEBSOCKET_TEXT, .fin = true, .left = n};
	head_n = websocket_write_head(w->head, true, WEBSOCKET_TEXT, n);
	w->head[1] |= MASKED;
	random_bytes(w->key, sizeof(w->key));
	memcpy(w->head + head_n, w->key, sizeof(w->key));
	w->head_was = (uint8_t)(head_n + sizeof(w->key));
}

void websocket_mask(struct websocket *w, const uint8_t *p, size_t n, uint8_t *out)
{
	w->at += n;
	w->left -= n;
	websocket_unmask(w, p, n, out);
}
