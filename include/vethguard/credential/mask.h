/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask: finds a credential's bytes in a stream and covers them with '*', also where a value lies across two chunks.
 * The output is exactly as long as the input.
 *
 * Base strings, made of each value V:
 *   - V;
 *   - base64 of any text that holds V: for each of the three alignments the characters whose six bits all come from V,
 *     in the standard and in the URL alphabet (RFC 4648). Padding and the at most one character at either end that V
 *     shares with its neighbours are not looked at, so it does not matter what stands around V.
 * An occurrence is a base string each byte of which is written in one of these ways, in any mixture:
 *   - as it is, '%' and '\' too; SP also as '+' (application/x-www-form-urlencoded);
 *   - %XX with digits of either case (RFC 3986);
 *   - \uXXXX with digits of either case, or the short escape: \" \\ \/ \b \f \n \r \t (RFC 8259). A byte from 0x80 on
 *     may be \u00XX (a reader that took it for Latin-1); a UTF-8 sequence may be the escape of its code point, a
 *     surrogate pair where it needs one. What is SP may also be the escape of '+'.
 * So nothing, some, or all of it may be escaped, whether or not the program that does it escapes '%' and '\' too. Each
 * byte is escaped once: a percent-encoded V in a JSON string is found, an escape's own '%' or '\' escaped is not.
 * Every byte of every occurrence is covered, overlapping ones too. Not covered: encodings of encodings beyond those
 * (JSON inside base64, percent twice), base64 broken over lines, hex, HTML entities, compression, V cut in parts.
 * A value over MASK_PIECE_MAX bytes is looked for as overlapping pieces of at most that many.
 */
#ifndef VETHGUARD_CREDENTIAL_MASK_H
#define VETHGUARD_CREDENTIAL_MASK_H

#include "vethguard/base/secret.h"
#include "vethguard/base/buf.h"

#define MASK_VALUE_MIN 6 /* bytes: shorter values cannot be told from ordinary text; the loader of values refuses them */

#define MASK_PIECE_MAX 4096u
#define MASK_VALUES_MAX 64
#define MASK_SHOWN_MAX 4 /* bytes of a value's beginning that may be passed on before the rest comes */

struct mask; /* the patterns of one credential, in secret memory */

/* Compiles the patterns of n values (a value and, for basic, the pair), 1 to MASK_VALUES_MAX, each of MASK_VALUE_MIN to
 * SECRET_MAX bytes. NULL: no memory, or a count or length out of these bounds. */
struct mask *mask_new(const struct slice *values, size_t n);
void mask_free(struct mask *mask);

/* One stream under a mask. What is kept back at the end of a piece of text is an end of bytes that values are made of,
 * whether a value begins there or not: "open" bytes, which for most values are letters, digits and the signs of keys,
 * URLs and escapes. So it tells nobody anything that it waits. */
struct mask_stream {
	const struct mask *mask;
	uint64_t found;      /* occurrences covered so far; those that overlap an earlier one are not counted */
	size_t held;         /* bytes kept back, and before them those kept in mind; at most the longest occurrence */
	size_t covered;      /* of these, how many at the front end an occurrence already found */
	size_t shown;        /* of these, how many were passed on already and are only kept in mind */
	size_t passed;       /* open bytes before what waits that were passed on, up to MASK_SHOWN_MAX + 1 */
	struct secret tail;  /* the bytes that are held */
	unsigned waited;     /* how often mask_stream_release() found a value's beginning */
};
int mask_stream_init(struct mask_stream *s, const struct mask *mask); /* 0 or -errno */
void mask_stream_fini(struct mask_stream *s); /* before the mask is freed */
/* Appends to out what is certain of p; keeps back the open bytes at its end. 0; -ENOBUFS: out's bound has no room
 * for what is held and n more; -errno. On failure nothing was appended and nothing of p was taken. */
int mask_stream_feed(struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out);
/* At a pause, so that no message waits for the next one: appends what is kept back where it is so short that as a
 * beginning of a value it would tell nothing (an eighth of the shortest pattern, 1 to MASK_SHOWN_MAX bytes, with open
 * bytes before it that were passed on), and keeps it in mind as far as it is one: an occurrence that goes on is covered
 * from there. 0 or -errno as above. */
int mask_stream_pause(struct mask_stream *s, struct buf *out);
/* mask_stream_feed() and mask_stream_pause(); bytes of p that need not be copied are in *rest, and follow those that
 * were appended. Errors as above. */
int mask_stream_take(struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out, struct slice *rest);
/* When nothing more has come for so long that nobody is to wait any longer: as mask_stream_show(). Where a beginning of
 * a value waits that is too long to be seen, nothing is appended, but counted: -EACCES. Else errors as above. */
int mask_stream_release(struct mask_stream *s, struct buf *out);
/* At the stream's end: appends what was kept back (no longer a danger: it never became the whole value). */
int mask_stream_end(struct mask_stream *s, struct buf *out);
/* At a pause in which nothing may wait: appends all that is kept back, as it would go out at the end, and keeps in mind
 * what may be a value's beginning: an occurrence that goes on is covered from there. Errors as above. */
int mask_stream_show(struct mask_stream *s, struct buf *out);
/* For a text in which occurrences are only looked for: true when one ends in p, which goes on where the last p ended.
 * Nothing is kept back, and the stream is used for nothing else. Where there is no memory for what p ends with, only an
 * occurrence that is whole is found. */
bool mask_stream_search(struct mask_stream *s, const uint8_t *p, size_t n);
/* Is any occurrence in p, of any value but those in except (bit i: the value with index i)? */
bool mask_finds(const struct mask *mask, const uint8_t *p, size_t n, uint64_t except);
/* Where the longest end of p starts that is a true beginning of an occurrence; n: there is none. */
size_t mask_end_begins(const struct mask *mask, const uint8_t *p, size_t n);
#define MASK_BEGINNING_MAX(n) (6 * (((n) * 4 + 2) / 3)) /* bytes of it at most, with values of n bytes */
/* For bytes that are all there: covers in place; returns occurrences. */
uint64_t mask_in_place(const struct mask *mask, uint8_t *p, size_t n);
/* Fast path of a stream that holds nothing back: true when p holds no pattern and nothing of its end is to be kept, so
 * that the bytes may be passed on as they are; they count as passed on. */
bool mask_stream_clean(struct mask_stream *s, const uint8_t *p, size_t n);

#endif
