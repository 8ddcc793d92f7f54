/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a text is searched in windows that overlap. A window is matched as it is;
 * then each run of it that looks encoded, and the whole window where it has escapes, is decoded
 * into the room of the next depth and searched there in the same way. Base64 is searched from each
 * of four beginnings, because what stands before it may belong to the run. It is decoded once; the
 * other beginnings are the same bits, moved. Compressed data is inflated from where its head
 * stands, and searched as it comes.
 *
 * What all this may cost is bounded: a depth, and for each piece of text an amount of decoded
 * bytes (BUDGET). What lies beyond is not searched.
 */
#include "vethguard/dlp/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "dlp/decode.h"
#include "dlp/match.h"
#include "dlp/shapes.h"

#define WINDOW 65536u
#define BUDGET_BASE (512u << 10)
#define BUDGET_RATIO 24u /* decoded bytes for each byte of the text */
#define INFLATED_BASE (256u << 10)
#define INFLATED_RATIO 16u
#define AROUND 1024u /* bytes before and behind an escape that are decoded with it */
#define INFLATE_PIECE 32768u
#define COMPRESSED_MIN 20 /* bytes of gzip or zlib that could hold a key */

_Static_assert(WINDOW > 2 * DLP_OVERLAP, "a window is more than what it shares with the next");

struct dlp_scanner {
	uint8_t room[DLP_DEPTH][WINDOW];
	uint8_t inflated[DLP_DEPTH][DLP_OVERLAP + INFLATE_PIECE];
	const struct dlp_question *question;
	struct dlp_finding *found;
	uint64_t budget;
	size_t inflated_n, inflated_max;
	enum dlp_coding codings[DLP_DEPTH];
	z_stream inflaters[DLP_DEPTH]; /* made when first needed, and used again: making one costs
	                                  more than most heads that chance has made */
	bool has_inflater[DLP_DEPTH];
};

struct dlp_scanner *dlp_scanner_new(void)
{
	return calloc(1, sizeof(struct dlp_scanner));
}

void dlp_scanner_free(struct dlp_scanner *scanner)
{
	for (size_t i = 0; scanner && i < DLP_DEPTH; i++)
		if (scanner->has_inflater[i])
			inflateEnd(&scanner->inflaters[i]);
	free(scanner);
}

static bool scan_at(struct dlp_scanner *s, const uint8_t *text, size_t n, unsigned depth);

static bool found(struct dlp_scanner *s, uint32_t format, unsigned depth)
{
	s->found->format = format;
	for (unsigned i = 0; i < DLP_DEPTH; i++)
		s->found->codings[i] = i < depth ? s->codings[i] : DLP_PLAIN;
	return true;
}

/* Searches n bytes that were decoded into the room of this depth. */
static bool scan_decoded(struct dlp_scanner *s, enum dlp_coding coding, const uint8_t *text,
        size_t n, unsigned depth)
{
	if (n == 0 || s->budget < n)
		return false;
	s->budget -= n;
	s->codings[depth] = coding;
	return scan_at(s, text, n, depth + 1);
}

/* Hex digits in a run, from each of two beginnings. Returns true if there is a finding; else *all
 * tells whether the whole run is of such. */
static bool scan_hex(
        struct dlp_scanner *s, const uint8_t *text, size_t n, unsigned depth, bool *all)
{
	uint8_t *room = s->room[depth];
	struct decode_run hex;

	*all = false;
	for (size_t at = 0; decode_next_hex(text, n, at, &hex); at = hex.at + hex.n) {
		const uint8_t *p = text + hex.at;

		*all = hex.n == n;
		if (scan_decoded(s, DLP_HEX, room, decode_hex(p, hex.n, room), depth) ||
		        scan_decoded(s, DLP_HEX, room, decode_hex(p + 1, hex.n - 1, room), depth))
			return true;
	}
	return false;
}

static bool scan_run(
        struct dlp_scanner *s, const uint8_t *text, const struct decode_run *run, unsigned depth)
{
	const uint8_t *p = text + run->at;
	uint8_t *room = s->room[depth];
	size_t bits;
	bool all;

	if (scan_hex(s, p, run->n, depth, &all))
		return true;
	if (all)
		return false;
	bits = decode_base64(p, run->n, room);
	for (size_t from = 0; from < 4; from++, bits = decode_base64_next(room, bits))
		if (scan_decoded(s, DLP_BASE64, room, bits / 8, depth))
			return true;
	return false;
}

/* --- escapes --- */

struct escapes {
	enum dlp_coding coding;
	size_t (*find)(const uint8_t *text, size_t n, size_t at);
	size_t (*decode)(const uint8_t *text, size_t n, uint8_t *out);
	uint8_t sign; /* without it there is nothing more to decode; 0: not asked */
	enum decode_kind kind;
};

static const struct escapes all_escapes[] = {
        {DLP_PERCENT, decode_find_percent, decode_percent, 0, DECODE_PERCENT},
        {DLP_PERCENT, decode_find_percent, decode_form, '+', DECODE_PERCENT},
        {DLP_ESCAPES, decode_find_escape, decode_escapes, 0, DECODE_ESCAPE},
        {DLP_INVISIBLE, decode_find_invisible, decode_invisible, 0, DECODE_INVISIBLE},
};

static bool scan_cluster(struct dlp_scanner *s, const struct escapes *e, const uint8_t *text,
        size_t n, unsigned depth)
{
	uint8_t *room = s->room[depth];

	if (e->sign && !memchr(text, e->sign, n))
		return false;
	return scan_decoded(s, e->coding, room, e->decode(text, n, room), depth);
}

/* The byte before an escape may be the length of the text that the escape begins, as in a message
 * of Protocol Buffers, and look like a letter of it. */
static bool scan_behind_length(struct dlp_scanner *s, const struct escapes *e, const uint8_t *text,
        size_t n, size_t at, unsigned depth)
{
	if (at == 0 || !shape_is(CLASS_ALNUM, text[at - 1]) || n - at < text[at - 1])
		return false;
	return scan_cluster(s, e, text + at, text[at - 1], depth);
}

/* Decodes the surroundings of escapes that are near each other, one cluster after the other: a
 * single escape in a large text does not cost another search of all of it. */
static bool scan_escapes(struct dlp_scanner *s, const struct escapes *e, const uint8_t *text,
        size_t n, unsigned depth)
{
	size_t at = e->find(text, n, 0);

	while (at < n) {
		size_t start = at < AROUND ? 0 : at - AROUND, end = at;
		size_t next = e->find(text, n, at + 1);

		while (next < n && next - end < 2 * AROUND) {
			end = next;
			next = e->find(text, n, end + 1);
		}
		end = n - end < AROUND ? n : end + AROUND;
		if (scan_cluster(s, e, text + start, end - start, depth) ||
		        scan_behind_length(s, e, text, n, at, depth))
			return true;
		at = next;
	}
	return false;
}

/* Pairs of hex digits may have any sign between them, also one that no run has. */
static bool scan_pairs(struct dlp_scanner *s, const uint8_t *text, size_t n, unsigned depth)
{
	uint8_t *room = s->room[depth];
	size_t at = 0, length;

	while ((length = decode_next_pairs(text, n, &at, room)))
		if (scan_decoded(s, DLP_HEX, room, length, depth))
			return true;
	return false;
}

/* kinds: of enum decode_kind, that the text may have. */
static bool scan_window(
        struct dlp_scanner *s, const uint8_t *text, size_t n, unsigned depth, unsigned kinds)
{
	uint32_t format = match_find(s->question, text, n);
	struct decode_run run;

	if (format != DLP_NONE)
		return found(s, format, depth);
	if (depth == DLP_DEPTH)
		return false;
	for (size_t i = 0; kinds && i < sizeof(all_escapes) / sizeof(*all_escapes); i++)
		if (kinds & all_escapes[i].kind && scan_escapes(s, &all_escapes[i], text, n, depth))
			return true;
	for (size_t at = 0; decode_next_run(text, n, at, &run); at = run.at + run.n)
		if (scan_run(s, text, &run, depth))
			return true;
	return scan_pairs(s, text, n, depth);
}

/* --- compressed data --- */

/* Searches what was inflated: the end of the last piece, which begins the room, and n bytes more.
 * Keeps the end of it. Returns true if there is a finding; else *kept is set. */
static bool scan_inflated(struct dlp_scanner *s, size_t n, unsigned depth, size_t *kept)
{
	uint8_t *room = s->inflated[depth];
	size_t all = *kept + n;

	s->inflated_n += n;
	if (scan_decoded(s, DLP_COMPRESSED, room, all, depth))
		return true;
	*kept = all < DLP_OVERLAP ? all : DLP_OVERLAP;
	memmove(room, room + all - *kept, *kept);
	return false;
}

/* Returns the depth's inflater at its beginning, or NULL if there is no memory. */
static z_stream *inflater(struct dlp_scanner *s, unsigned depth)
{
	z_stream *z = &s->inflaters[depth];

	if (s->has_inflater[depth])
		return inflateReset(z) == Z_OK ? z : NULL;
	/* 15 + 32: gzip or zlib, as the head says */
	s->has_inflater[depth] = inflateInit2(z, 15 + 32) == Z_OK;
	return s->has_inflater[depth] ? z : NULL;
}

/* Inflates from text on, as far as it is compressed data. */
static bool scan_compressed(struct dlp_scanner *s, const uint8_t *text, size_t n, unsigned depth)
{
	z_stream *z = inflater(s, depth);
	bool is_found = false;
	size_t kept = 0;
	int rc = Z_OK;

	if (!z)
		return false;
	z->next_in = (uint8_t *)(uintptr_t)text;
	z->avail_in = (unsigned)n;
	while (rc == Z_OK && !is_found && s->inflated_n < s->inflated_max) {
		z->next_out = s->inflated[depth] + kept;
		z->avail_out = INFLATE_PIECE;
		rc = inflate(z, Z_NO_FLUSH);
		if (z->avail_out == INFLATE_PIECE && rc == Z_OK)
			break;
		is_found = scan_inflated(s, INFLATE_PIECE - z->avail_out, depth, &kept);
	}
	return is_found;
}

/* RFC 1952 section 2.3.1; RFC 1950 section 2.2, with the usual window of 32 KiB. */
static bool begins_compressed(const uint8_t *p)
{
	if (p[0] == 0x1f)
		return p[1] == 0x8b && p[2] == 8 && p[3] < 0x20;
	return p[0] == 0x78 && (p[0] << 8 | p[1]) % 31 == 0 && !(p[1] & 0x20) && p[1] != 0;
}

/* Looks for heads of compressed data with this first byte. Of zlib's, which are short, only as many
 * are tried as would be there in the text if it was random. */
static bool scan_heads(
        struct dlp_scanner *s, const uint8_t *text, size_t n, unsigned depth, uint8_t first)
{
	size_t at = 0, tries = 8 + n / 2048;

	while (n - at >= COMPRESSED_MIN && tries > 0) {
		const uint8_t *head = memchr(text + at, first, n - at - COMPRESSED_MIN + 1);

		if (!head)
			return false;
		at = (size_t)(head - text);
		if (begins_compressed(head)) {
			tries--;
			if (scan_compressed(s, head, n - at, depth))
				return true;
		}
		at++;
	}
	return false;
}

/* --- all of it --- */

static bool scan_at(struct dlp_scanner *s, const uint8_t *text, size_t n, unsigned depth)
{
	unsigned kinds = 0;
	size_t at = 0;

	for (;;) {
		size_t piece = n - at < WINDOW ? n - at : WINDOW;
		unsigned of_piece = depth < DLP_DEPTH ? decode_kinds(text + at, piece) : 0;

		if (scan_window(s, text + at, piece, depth, of_piece))
			return true;
		kinds |= of_piece;
		if (at + piece == n)
			break;
		at += WINDOW - DLP_OVERLAP;
	}
	return (kinds & DECODE_GZIP && scan_heads(s, text, n, depth, 0x1f)) ||
	       (kinds & DECODE_ZLIB && scan_heads(s, text, n, depth, 0x78));
}

bool dlp_scan(struct dlp_scanner *s, const struct dlp_question *question, struct slice text,
        struct dlp_finding *out)
{
	s->question = question;
	s->found = out;
	s->budget = BUDGET_BASE + (uint64_t)text.n * BUDGET_RATIO;
	s->inflated_n = 0;
	s->inflated_max = INFLATED_BASE + text.n * INFLATED_RATIO;
	if (s->inflated_max > DLP_INFLATED_MAX)
		s->inflated_max = DLP_INFLATED_MAX;
	return text.n > 0 && scan_at(s, (const uint8_t *)text.p, text.n, 0);
}

bool dlp_stream_scan(struct dlp_stream *stream, struct dlp_scanner *s,
        const struct dlp_question *question, struct slice piece, struct dlp_finding *out)
{
	size_t first = piece.n < DLP_OVERLAP ? piece.n : DLP_OVERLAP, keep;
	uint8_t border[2 * DLP_OVERLAP];

	memcpy(border, stream->end, stream->n);
	memcpy(border + stream->n, piece.p, first);
	if (stream->n && first && dlp_scan(s, question, slice_of(border, stream->n + first), out))
		return true;
	if ((!stream->n || first < piece.n) && dlp_scan(s, question, piece, out))
		return true;
	if (first < piece.n || first == DLP_OVERLAP) {
		memcpy(stream->end, piece.p + piece.n - DLP_OVERLAP, DLP_OVERLAP);
		stream->n = DLP_OVERLAP;
		return false;
	}
	keep = stream->n + first < DLP_OVERLAP ? stream->n + first : DLP_OVERLAP;
	memcpy(stream->end, border + stream->n + first - keep, keep);
	stream->n = keep;
	return false;
}

const char *dlp_codings_text(const struct dlp_finding *finding, char out[DLP_CODINGS_TEXT_MAX])
{
	static const char *const names[] = {"", "base64", "hex digits", "percent-encoding",
	        "escapes", "invisible characters", "compression"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == DLP_CODING_COUNT, "a name per coding");
	size_t n = 0;

	out[0] = '\0';
	for (unsigned i = DLP_DEPTH; i-- > 0;) {
		int more;

		if (finding->codings[i] == DLP_PLAIN)
			continue;
		more = snprintf(out + n, DLP_CODINGS_TEXT_MAX - n, "%s%s", n ? " in " : "",
		        names[finding->codings[i]]);
		n += more > 0 ? (size_t)more : 0;
	}
	return out;
}
