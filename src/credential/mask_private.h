/* SPDX-License-Identifier: Apache-2.0 */
/* mask_private: the compiled patterns, shared by mask.c (compiling), mask_match.c, mask_scan.c and
 * mask_stream.c. */
#ifndef VETHGUARD_SRC_CREDENTIAL_MASK_PRIVATE_H
#define VETHGUARD_SRC_CREDENTIAL_MASK_PRIVATE_H

#include "vethguard/base/vector.h"
#include "vethguard/credential/mask.h"

/* The two bytes that can begin an escape; each can stand for itself as well. */
enum mask_escape { MASK_PERCENT, MASK_BACKSLASH, MASK_ESCAPE_COUNT };

#define MASK_SHIFT_BITS 13
#define MASK_SHIFTS (1u << MASK_SHIFT_BITS)
#define MASK_WINDOW_MAX 255 /* a shift fits a byte */
#define MASK_EXPANSION 6    /* bytes of text per byte of a pattern, at most: \u00XX */
#define MASK_ESCAPE_MAX 12  /* bytes of the longest escape: a surrogate pair */
#define MASK_PATTERN_MAX (MASK_PIECE_MAX * 4 / 3 + 2) /* bytes: a piece in base64 */

struct mask_pattern {
	const uint8_t *p;
	size_t n;
	size_t bare;     /* bytes before its first '%' or '\\'; n: it has none */
	bool spaced;     /* has SP, which may be written as '+' */
	uint64_t values; /* the values it was made of: bit i for value i */
	unsigned block;  /* mask_block() of the last two bytes in the window */
};

/* All of this is derived from the value, and is in secret memory. */
struct mask_tables {
	uint8_t shift[MASK_SHIFTS]; /* by mask_block(): how far the window may move */
	/* Patterns of which an occurrence may begin with this byte: bit k % 8 for pattern k. */
	uint8_t first[256];
	uint8_t member[256]; /* true if any pattern has this byte */
	uint8_t open[256];   /* true if an end of text with it may be kept back */
	/* True if this byte may follow a '%' or '\\' that is the first one in an occurrence. */
	uint8_t follows[MASK_ESCAPE_COUNT][256];
	struct vector_groups places; /* the ends of windows, and escapes (mask_nothing.c) */
};

struct mask {
	struct mask_tables *tables;
	struct mask_pattern *patterns;
	size_t count;
	size_t window;         /* bytes that the search looks at: the shortest pattern's */
	size_t longest;        /* bytes of the longest pattern */
	bool has_escapes;      /* a pattern itself has '%' or '\\' */
	bool vectors;          /* the processor searches by tables->places */
	struct secret *blocks; /* the memory of all of the above */
	size_t block_count;
	size_t block_used;    /* bytes used of the last block */
	struct secret *spare; /* for the next stream that holds bytes; may be empty */
};

static inline unsigned mask_block(const uint8_t *p)
{
	return ((unsigned)p[0] << 5 ^ p[1]) & (MASK_SHIFTS - 1);
}

static inline bool mask_is_escape(uint8_t c)
{
	return c == '%' || c == '\\';
}

/* By byte: true if it may follow the given escape byte. */
static inline const uint8_t *mask_follows(const struct mask_tables *t, uint8_t escape)
{
	return t->follows[escape == '%' ? MASK_PERCENT : MASK_BACKSLASH];
}

/* True if c, plain or as the meaning of an escape, stands for a pattern's byte. A form writes SP as
 * '+' (application/x-www-form-urlencoded). */
static inline bool mask_same(uint8_t pattern, uint8_t c)
{
	return c == pattern || (pattern == ' ' && c == '+');
}

/* True if text is the first n bytes of the pattern, plain. */
bool mask_is_raw(const struct mask_pattern *pattern, const uint8_t *text, size_t n);

struct mask_fit {
	size_t used;    /* bytes of the longest spelling that text begins with; 0: none */
	bool part;      /* the text ends inside a spelling and is a true beginning of it */
	size_t reached; /* ... which covers this many bytes of the pattern, from its first */
};

/* Compares text with the spellings of the pattern's bytes from index i < n on. */
struct mask_fit mask_fit(
        const struct mask_pattern *pattern, size_t i, const uint8_t *text, size_t left);
/* Gets the bytes of a pattern for which an escape at text may stand; returns how many (0 to 2). */
unsigned mask_escape_stands_for(const uint8_t *text, size_t left, uint8_t out[2]);

/* Fills tables->follows from tables->member and the patterns. */
void mask_fill_follows(struct mask *mask);

/* Fills tables->places from the patterns and tables->follows. */
void mask_fill_places(struct mask *mask);

/* True if text has no occurrence. */
bool mask_scan_nothing(const struct mask *mask, const uint8_t *text, size_t n);
/* The length of the longest pattern that is plain at text; 0: none. block: of the window's end. */
size_t mask_scan_plain_here(
        const struct mask *mask, const uint8_t *text, size_t left, unsigned block);
/* True if text has an occurrence that is not plain. */
bool mask_scan_escaped_anywhere(const struct mask *mask, const uint8_t *text, size_t n);
/* True if text has an occurrence that begins at text[at], a '%' or '\\', or before it and without
 * another escape up to there. */
bool mask_scan_escaped_here(const struct mask *mask, const uint8_t *text, size_t n, size_t at);
/* Where the longest end of text that is a true beginning of an occurrence starts; n if there is
 * none. */
size_t mask_scan_prefix(const struct mask *mask, const uint8_t *text, size_t n);
/* The most bytes of any pattern of which the end of text is a true beginning. */
size_t mask_scan_reached(const struct mask *mask, const uint8_t *text, size_t n);
/* Fills tables->open from tables->member. */
void mask_fill_open(struct mask_tables *tables);
/* Where the open end of text starts: judging only by the kinds of bytes that values have, a value
 * could have begun there. */
size_t mask_scan_open(const struct mask *mask, const uint8_t *text, size_t n);
/* Masks every occurrence that starts before until. *covered: bytes at the front that are masked
 * already; on return, the end of the last masked stretch. *first: where the first of the
 * occurrences starts, or n. Returns the number of occurrences, without those that overlap an
 * earlier one. */
uint64_t mask_redact(const struct mask *mask, uint8_t *text, size_t n, size_t until,
        size_t *covered, size_t *first);

#endif
