/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket: where the frames of one direction begin and end (RFC 6455 section 5.2). Nothing is
 * judged and nothing is changed: whoever looks for something in the content has to know where it
 * is.
 */
#ifndef VETHGUARD_SRC_PROXY_WEBSOCKET_H
#define VETHGUARD_SRC_PROXY_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEBSOCKET_HEAD_MAX 14

/* Zeroed: at the beginning of a frame. */
struct websocket {
	uint8_t head[WEBSOCKET_HEAD_MAX];
	size_t head_n;  /* bytes of a head that is not whole yet */
	uint8_t key[4]; /* of the frame's content; zeros: not masked */
	uint64_t left;  /* content still to come */
	uint64_t at;    /* content that has come */
};

/* The first run of p[n] (n > 0) that is all head or all content; returns its length. */
size_t websocket_next(struct websocket *w, const uint8_t *p, size_t n, bool *content);
/* Undoes the masking of content that websocket_next() has just told of (RFC 6455 section 5.3). */
void websocket_unmask(const struct websocket *w, const uint8_t *p, size_t n, uint8_t *out);
/* The last run ended a frame. */
static inline bool websocket_is_between(const struct websocket *w)
{
	return w->left == 0 && w->head_n == 0;
}

#endif
