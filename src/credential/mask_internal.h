/* SPDX-License-Identifier: Apache-2.0 */
/* mask_internal: the compiled patterns, shared by mask.c (compiling), mask_match.c, mask_scan.c and
 * mask_stream.c. */
#ifndef CREDENTIAL_MASK_INTERNAL_H
#define CREDENTIAL_MASK_INTERNAL_H

#include "vethguard/credential/mask.h"

/* In which way the bytes of one occurrence may be written. */
enum mask_mode { MASK_PLAIN, MASK_PERCENT, MASK_JSON, MASK_MODE_COUNT };

#define MASK_SHIFT_BITS 13
#define MASK_SHIFTS (1u << MASK_SHIFT_BITS)
#define MASK_WINDOW_MAX 255 /* a shift fits a byte */
#define MASK_EXPANSION 6    /* bytes of text that one byte of a pattern takes at most: \u00XX */

struct mask_pattern {
	const uint8_t *p;
	size_t n;
	size_t bare[MASK_MODE_COUNT]; /* bytes before the first one that the mode cannot leave
	                                 unescaped */
	unsigned block;               /* mask_block() of the last two bytes in the window */
};

/* All of this is derived from the value and lies in secret memory. */
struct mask_tables {
	uint8_t shift[MASK_SHIFTS];            /* by mask_block(): how far the window may move */
	uint8_t first[256];                    /* may an occurrence begin with this byte? */
	uint8_t member[256];                   /* does any pattern hold this byte? */
	uint8_t escaped[MASK_MODE_COUNT][256]; /* may a pattern's escape go on with this byte? */
};

struct mask {
	struct mask_tables *tables;
	struct mask_pattern *patterns;
	size_t count;
	size_t window;  /* bytes of every pattern that the search looks at: the shortest pattern's
	                   length */
	size_t longest; /* bytes of the longest pattern */
	struct secret *blocks; /* where all of the above lies */
	size_t block_count;
	size_t block_used; /* bytes taken of the last block */
};

static inline unsigned mask_block(const uint8_t *p)
{
	return ((unsigned)p[0] << 5 ^ p[1]) & (MASK_SHIFTS - 1);
}

/* '%' or '\\'; a mode's escapes all begin with it, and in that mode it stands for nothing else. */
static inline uint8_t mask_escape_byte(enum mask_mode mode)
{
	return mode == MASK_PERCENT ? '%' : '\\';
}

enum mask_fit { MASK_NO, MASK_PART, MASK_WHOLE };

/* Does text begin with the pattern's bytes from index i on, written as mode allows? WHOLE: *used
 * bytes of text are the rest of the pattern. PART: the text ends before the pattern does and is a
 * true beginning of it. */
enum mask_fit mask_fit(const struct mask_pattern *pattern, enum mask_mode mode, size_t i,
        const uint8_t *text, size_t left, size_t *used);
/* The byte(s) of a pattern that an escape at text may stand for; returns how many (0 to 2). */
unsigned mask_escape_stands_for(
        enum mask_mode mode, const uint8_t *text, size_t left, uint8_t out[2]);

/* Fills tables->escaped from tables->member. */
void mask_fill_escaped(struct mask_tables *tables);

/* True when text holds no occurrence. */
bool mask_scan_nothing(const struct mask *mask, const uint8_t *text, size_t n);
/* Where the longest end of text that is a true beginning of an occurrence starts; n: there is none.
 */
size_t mask_scan_prefix(const struct mask *mask, const uint8_t *text, size_t n);
/* Covers every occurrence that starts before until. *covered: how many bytes at the front are
 * covered from before; on return the end of the last covered stretch. *first: where the first of
 * the occurrences starts, or n. Returns the occurrences found, those that overlap an earlier one
 * not counted. */
uint64_t mask_cover(const struct mask *mask, uint8_t *text, size_t n, size_t until, size_t *covered,
        size_t *first);

#endif
