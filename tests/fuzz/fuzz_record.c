/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any records after the handshake, from a peer that has the keys. The input is the suite, the sizes
 * of segments and reads, and pieces: a byte for what it is, one for its length, and bytes. A piece
 * is sealed as a record of some type, or goes over the wire as it is. What comes out is what was
 * sealed as data, in order, up to the first thing that may not come; cut in segments or not, all
 * the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tls/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WIRE_MAX (1u << 20)
#define OUT_MAX (1u << 20)
/* Bits of what a piece is; the others say its type. */
#define PIECE_RAW 0x80
#define PIECE_NEW_KEYS 0x40
#define PIECE_LONG 0x20
#define LONG_TIMES 65

static struct record_suites suites;

/* A connection after its handshake, under keys that everybody knows. */
static struct tls *tls_known(struct buf *out, uint8_t suite)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	struct record_layer *layer = calloc(1, sizeof(*layer));

	if (!tls || !layer)
		abort();
	tls->layer = layer;
	tls->out = out;
	tls->established = true;
	layer->suites = &suites;
	layer->suite = suite % 3;
	layer->key_life = RECORD_KEY_LIFE;
	if (!record_keys_begin(layer, &layer->reading) ||
	        !record_keys_begin(layer, &layer->writing))
		abort();
	return tls;
}

struct result {
	enum tls_status status;
	size_t n, answer_n;
	uint8_t out[OUT_MAX];
	uint8_t answer[OUT_MAX];
};

/* Feeds the wire in segments and reads in pieces; 0: as large as there is. */
static void run(
        const struct buf *wire, uint8_t suite, size_t segment, size_t piece, struct result *result)
{
	struct buf answer;
	struct tls *tls;
	size_t at = 0;

	buf_init(&answer, OUT_MAX);
	tls = tls_known(&answer, suite);
	result->n = 0;
	result->status = TLS_WANT_READ;
	while (at < wire->len && result->status == TLS_WANT_READ) {
		size_t n = segment && segment < wire->len - at ? segment : wire->len - at, got;

		tls_feed(tls, buf_bytes(wire) + at, n);
		do {
			size_t cap = OUT_MAX - result->n;

			result->status = tls_read(tls, result->out + result->n,
			        piece && piece < cap ? piece : cap, &got);
			if ((result->status == TLS_OK) != (got > 0))
				abort();
			result->n += got;
		} while (result->status == TLS_OK);
		if (result->status == TLS_WANT_READ && tls_input_left(tls))
			abort();
		at += n;
	}
	result->answer_n = answer.len;
	if (answer.len)
		memcpy(result->answer, buf_bytes(&answer), answer.len);
	if (result->status == TLS_ERROR && !tls_error_text(tls)[0])
		abort();
	tls_free(tls);
	buf_fini(&answer);
}

/* Notes what a record gives that was sealed with this type; 0: the type is its last byte that is
 * not zero. */
static void note_data(struct buf *sealed, uint8_t type, const uint8_t *p, size_t n)
{
	if (type == 0) {
		while (n > 0 && !p[n - 1])
			n--;
		if (n > 0)
			type = p[--n];
	}
	if (type == RECORD_DATA)
		buf_append(sealed, p, n);
}

static void seal_piece(struct tls *peer, uint8_t what, const uint8_t *p, size_t n, struct buf *wire,
        struct buf *sealed)
{
	static uint8_t many[255 * LONG_TIMES];
	uint8_t low = what & 0x1f, type = low < 3    ? (uint8_t)(RECORD_ALERT + low)
	                                  : low == 3 ? 0
	                                             : low;

	if (what & PIECE_LONG) {
		for (size_t i = 0; i < n * LONG_TIMES; i++)
			many[i] = p[i % n];
		p = many;
		n *= LONG_TIMES;
	}
	if (record_seal(peer->layer, type, p, n, wire) < 0)
		abort();
	note_data(sealed, type, p, n);
	if (what & PIECE_NEW_KEYS)
		record_keys_update(peer->layer, &peer->layer->writing);
}

/* Writes the wire, and notes what was sealed as data. */
static void write_wire(
        const uint8_t *p, size_t n, uint8_t suite, struct buf *wire, struct buf *sealed)
{
	struct tls *peer = tls_known(wire, suite);

	while (n >= 2 && wire->len < WIRE_MAX / 2) {
		uint8_t what = p[0];
		size_t length = p[1] < n - 2 ? p[1] : n - 2;

		p += 2;
		n -= 2;
		if (what & PIECE_RAW)
			buf_append(wire, p, length);
		else
			seal_piece(peer, what, p, length, wire, sealed);
		p += length;
		n -= length;
	}
	tls_free(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct result whole, cut;
	struct buf wire, sealed;

	tls_library_init();
	if (size < 3 || (!suites.digest && !record_suites_init(&suites)))
		return 0;
	buf_init(&wire, WIRE_MAX);
	buf_init(&sealed, WIRE_MAX);
	write_wire(data + 3, size - 3, data[0], &wire, &sealed);
	run(&wire, data[0], 0, 0, &whole);
	run(&wire, data[0], data[1], data[2], &cut);
	if (whole.status != cut.status || whole.n != cut.n ||
	        memcmp(whole.out, cut.out, whole.n) != 0 || whole.answer_n != cut.answer_n ||
	        memcmp(whole.answer, cut.answer, whole.answer_n) != 0)
		abort();
	if (whole.n > sealed.len ||
	        (whole.n && memcmp(whole.out, buf_bytes(&sealed), whole.n) != 0))
		abort();
	buf_fini(&wire);
	buf_fini(&sealed);
	return 0;
}
