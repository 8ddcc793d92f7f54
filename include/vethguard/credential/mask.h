/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask: finds a credential's bytes in a stream and overwrites them with '*', also if a value lies across two chunks.
 * The output is exactly as long as the input.
 *
 * Base strings, made of each value V:
 *   - V;
 *   - base64 of any text that contains V: for each of the three alignments, the characters whose six bits all come
 *     from V, in the standard and in the URL alphabet (RFC 4648). Padding is not compared, nor is the at most one
 *     character at either end that V shares with its neighbors: the surroundings of V do not matter.
 * An occurrence is a base string of which each byte is written in one of these ways, in any mixture:
 *   - as it is, including '%' and '\'; SP also as '+' (application/x-www-form-urlencoded);
 *   - %XX with digits of either case (RFC 3986);
 *   - \uXXXX with digits of either case, or the short escape: \" \\ \/ \b \f \n \r \t (RFC 8259). A byte from 0x80
 *     on may be \u00XX (written by a program that took it for Latin-1); a UTF-8 sequence may be the escape of its
 *     code point, if need be a surrogate pair. SP may also be the escape of '+'.
 *
 * So none, some or all of a value may be escaped, whether or not the escaping program also escapes '%' and '\'. Each
 * byte is escaped once: a percent-encoded V in a JSON string is found; an escape whose own '%' or '\' is escaped
 * again is not.
 *
 * Every byte of every occurrence is masked, including overlapping ones. Not found are: further nested encodings (JSON
 * inside base64, percent twice), base64 broken over lines, hex, HTML entities, compression, V cut into parts. A value
 * over MASK_PIECE_MAX bytes is searched for as overlapping pieces of at most that length.
 */
#ifndef VETHGUARD_CREDENTIAL_MASK_H
#define VETHGUARD_CREDENTIAL_MASK_H

#include "vethguard/base/secret.h"
#include "vethguard/base/buf.h"

#define MASK_VALUE_MIN 6 /* bytes; shorter values cannot be told from ordinary text, and are refused when loaded */

#define MASK_PIECE_MAX 4096u
#define MASK_VALUES_MAX 64
#define MASK_SHOWN_MAX 4 /* bytes of a value's beginning that may be passed on before the rest comes, at most */

struct mask; /* the patterns of one credential, in secret memory */

/* Compiles the patterns of n values (a value and, for basic, the pair): 1 to MASK_VALUES_MAX values of MASK_VALUE_MIN
 * to SECRET_MAX bytes. Returns NULL if there is no memory, or if a count or length is out of these bounds. */
struct mask *mask_new(const struct slice *values, size_t n);
void mask_free(struct mask *mask);
/* Returns how many bytes the longest text has that can stand for one of the values. */
size_t mask_longest(const struct mask *mask);

/* One stream under a mask. At the end of each piece of text, "open" bytes are kept back, whether or not a value
 * begins there: bytes of the kinds that values consist of, which for most values are letters, digits and the signs of
 * keys, URLs and escapes. So the waiting itself reveals nothing. */
struct mask_stream {
	const struct mask *mask;
	uint64_t found;     /* occurrences masked so far, without those that overlap an earlier one */
	size_t held;        /* bytes kept back, preceded by those remembered; at most the longest occurrence */
	size_t covered;     /* of these: bytes at the front that end an occurrence found already */
	size_t shown;       /* of these: bytes passed on already and only remembered */
	size_t passed;      /* open bytes passed on right before those kept back, up to MASK_SHOWN_MAX + 1 */
	struct secret tail; /* the held bytes */
	unsigned waited;    /* how often mask_stream_release() found the beginning of a value */
};
int mask_stream_init(struct mask_stream *s, const struct mask *mask); /* 0 or -errno */
void mask_stream_fini(struct mask_stream *s);                         /* call this before freeing the mask */
/* Appends to out what is certain of p, and keeps back the open bytes at its end. Returns 0; -ENOBUFS if out's
 * bound has no room for the held bytes and n more; or -errno. On failure nothing was appended and nothing of p was
 * taken. */
int mask_stream_feed(struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out);
/* For a pause, so that no message waits for the next one. If the bytes kept back are so few that, as a beginning of a
 * value, they would reveal nothing (an eighth of the shortest pattern, 1 to MASK_SHOWN_MAX bytes, including open
 * bytes passed on before them), appends them, and remembers those that may begin a value: an occurrence that goes on
 * is masked from there. Returns as above. */
int mask_stream_pause(struct mask_stream *s, struct buf *out);
/* mask_stream_feed() and mask_stream_pause() in one. *rest: bytes of p that need not be copied; they follow those
 * that were appended. Returns as above. */
int mask_stream_take(struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out, struct slice *rest);
/* For a pause so long that the wait has to end: does the same as mask_stream_show(), unless the bytes kept back end
 * with a beginning of a value that is too long to be revealed. Then nothing is appended, the case is counted, and
 * -EACCES is returned. Other errors as above. */
int mask_stream_release(struct mask_stream *s, struct buf *out);
/* At the stream's end: appends what was kept back, which can no longer become a whole value. Returns as above. */
int mask_stream_end(struct mask_stream *s, struct buf *out);
/* For a pause in which nothing may wait: appends everything kept back, as at the end, and remembers what may be the
 * beginning of a value: an occurrence that goes on is masked from there. Returns as above. */
int mask_stream_show(struct mask_stream *s, struct buf *out);
/* Only searches: true if an occurrence ends in p, which continues the last p. Nothing is kept back; the stream can be
 * used for nothing else. If there is no memory for the end of p, occurrences across two pieces are missed. */
bool mask_stream_search(struct mask_stream *s, const uint8_t *p, size_t n);
/* True if p has an occurrence of any value except those in except (bit i: the value with index i). */
bool mask_finds(const struct mask *mask, const uint8_t *p, size_t n, uint64_t except);
/* Where the longest end of p that is a true beginning of an occurrence starts; n if there is none. */
size_t mask_end_begins(const struct mask *mask, const uint8_t *p, size_t n);
#define MASK_BEGINNING_MAX(n) (6 * (((n)*4 + 2) / 3)) /* bytes of that end at most, for values of n bytes */
/* For bytes that are complete: masks in place and returns the number of occurrences. */
uint64_t mask_in_place(const struct mask *mask, uint8_t *p, size_t n);
/* Fast path for a stream that keeps nothing back: true if p has no pattern and nothing of its end has to be kept, so
 * that the bytes may be passed on as they are; they then count as passed on. */
bool mask_stream_clean(struct mask_stream *s, const uint8_t *p, size_t n);

#endif
