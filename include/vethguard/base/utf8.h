/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8: is a text that comes in pieces UTF-8 (RFC 3629)? Overlong forms, surrogates and what lies beyond U+10FFFF are
 * not. Nothing is kept but the state of one character.
 */
#ifndef VETHGUARD_BASE_UTF8_H
#define VETHGUARD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: at the beginning of a text. */
struct utf8 {
	uint8_t state; /* 0: between two characters */
};

/* The next piece. False as soon as a byte shows that the text is not UTF-8; the struct is of no use then. */
bool utf8_feed(struct utf8 *u, const uint8_t *p, size_t n);
/* The text may end here. */
static inline bool utf8_is_whole(const struct utf8 *u)
{
	return u->state == 0;
}

#endif
