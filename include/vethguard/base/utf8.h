/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8: checks whether a text that arrives in pieces is UTF-8 (RFC 3629). Overlong forms, surrogates and code points
 * beyond U+10FFFF are not. Only the state of one character is kept.
 */
#ifndef VETHGUARD_BASE_UTF8_H
#define VETHGUARD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed at the beginning of a text. */
struct utf8 {
	uint8_t state; /* 0: between two characters */
};

/* Checks the next piece. Returns false as soon as a byte shows that the text is not UTF-8; the struct is unusable
 * then. */
bool utf8_feed(struct utf8 *u, const uint8_t *p, size_t n);
/* True if the text may end here. */
static inline bool utf8_is_whole(const struct utf8 *u)
{
	return u->state == 0;
}

#endif
