/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_record: reads any records after the handshake, from a peer that has the keys. The input is a
 * byte each for the suite, the size of segments and the size of reads, and then pieces: a byte with
 * the kind, a byte with the length, and the bytes. A piece is sealed as a record of some type, or
 * goes over the wire as it is. What tls_read() gives is what was sealed as data, in order, up to
 * the first record that is refused. The results are the same with and without segments.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tls/record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WIRE_MAX (1u << 20)
#define OUT_MAX (1u << 20)
/* Flags in the kind of a piece; the other bits say the record's type. */
#define PIECE_RAW 0x80
#define PIECE_NEW_KEYS 0x40
#define PIECE_LONG 0x20
#define LONG_TIMES 65

static struct record_suites suites;

/* Makes a connection after its handshake, with known (all-zero) keys. */
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

/* Feeds the wire in segments and reads in pieces of these sizes; 0: all at once. */
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

/* Appends the content of a record to `sealed` if its type is data. Type 0: the type is the last
 * byte of p that is not zero, and the content ends before it. */
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

/* Writes all pieces to the wire, and what was sealed as data to `sealed`. */
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
