/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a table of states (RFC 3629 section 4). The row of a byte is one number that
 * holds the next state for each state, six bits each. A state is the position of its six bits, so a
 * step is one shift, and the look-ups do not wait for each other. Most text is ASCII: a block of it
 * costs four loads and one comparison.
 */
#include "vethguard/base/utf8.h"

#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)
#define BLOCK (4 * sizeof(uint64_t))
#define PLACE_MASK 63

/* OK is 0, so that a zeroed struct is at the beginning of a text. Nothing leads out of WRONG. */
enum state {
	OK = 0,
	WRONG = 6,
	ONE = 12,   /* one more byte must follow */
	TWO = 18,   /* two more bytes */
	THREE = 24, /* three more bytes */
	E0 = 30,    /* two, the first 0xa0 to 0xbf: a lower one would be overlong */
	ED = 36,    /* two, the first 0x80 to 0x9f: a higher one would be a surrogate */
	F0 = 42,    /* three, the first 0x90 to 0xbf: a lower one would be overlong */
	F4 = 48     /* three, the first 0x80 to 0x8f: a higher one would be beyond U+10FFFF */
};

#define GO(from, to) ((uint64_t)(to) << (from))
/* The next states for a byte, one for each state; WRONG stays WRONG. */
#define ELSE_WRONG(ok, one, two, three, e0, ed, f0, f4)                                   \
	(GO(OK, ok) | GO(WRONG, WRONG) | GO(ONE, one) | GO(TWO, two) | GO(THREE, three) | \
	        GO(E0, e0) | GO(ED, ed) | GO(F0, f0) | GO(F4, f4))
#define FIRST(to) ELSE_WRONG(to, WRONG, WRONG, WRONG, WRONG, WRONG, WRONG, WRONG)

enum kind {
	K_WRONG, /* 0xc0, 0xc1, 0xf5 and above */
	K_ASCII,
	K_80, /* to 0x8f */
	K_90, /* to 0x9f */
	K_A0, /* to 0xbf */
	K_C2, /* to 0xdf */
	K_E0,
	K_E1, /* to 0xef, without 0xed */
	K_ED,
	K_F0,
	K_F1, /* to 0xf3 */
	K_F4,
	K_COUNT
};

static const uint64_t rows[K_COUNT] = {
        [K_WRONG] = FIRST(WRONG),
        [K_ASCII] = FIRST(OK),
        [K_80] = ELSE_WRONG(WRONG, OK, ONE, TWO, WRONG, ONE, WRONG, TWO),
        [K_90] = ELSE_WRONG(WRONG, OK, ONE, TWO, WRONG, ONE, TWO, WRONG),
        [K_A0] = ELSE_WRONG(WRONG, OK, ONE, TWO, ONE, WRONG, TWO, WRONG),
        [K_C2] = FIRST(ONE),
        [K_E0] = FIRST(E0),
        [K_E1] = FIRST(TWO),
        [K_ED] = FIRST(ED),
        [K_F0] = FIRST(F0),
        [K_F1] = FIRST(THREE),
        [K_F4] = FIRST(F4),
};

#define TIMES_8(k) k, k, k, k, k, k, k, k
#define TIMES_16(k) TIMES_8(k), TIMES_8(k)
static const uint8_t kinds[128] = {/* of the bytes from 0x80 on */
        TIMES_16(K_80), TIMES_16(K_90), TIMES_16(K_A0), TIMES_16(K_A0), K_WRONG, K_WRONG, K_C2,
        K_C2, K_C2, K_C2, K_C2, K_C2, TIMES_8(K_C2), TIMES_16(K_C2), K_E0, K_E1, K_E1, K_E1, K_E1,
        K_E1, K_E1, K_E1, K_E1, K_E1, K_E1, K_E1, K_E1, K_ED, K_E1, K_E1, K_F0, K_F1, K_F1, K_F1,
        K_F4, K_WRONG, K_WRONG, K_WRONG, TIMES_8(K_WRONG)};

static bool is_ascii_block(const uint8_t *p)
{
	uint64_t word[BLOCK / sizeof(uint64_t)];

	memcpy(word, p, BLOCK);
	return !((word[0] | word[1] | word[2] | word[3]) & HIGH_BITS);
}

static uint64_t step_over(uint64_t state, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		state = rows[p[i] < 0x80 ? K_ASCII : kinds[p[i] - 0x80]] >> (state & PLACE_MASK);
	return state & PLACE_MASK;
}

bool utf8_feed(struct utf8 *u, const uint8_t *p, size_t n)
{
	uint64_t state = u->state;

	for (; n >= BLOCK && state != WRONG; p += BLOCK, n -= BLOCK)
		if (state != OK || !is_ascii_block(p))
			state = step_over(state, p, BLOCK);
	u->state = (uint8_t)step_over(state, p, n);
	return u->state != WRONG;
}
