/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate: inflates messages that were compressed with permessage-deflate (RFC 7692), to search them; the messages
 * themselves are passed on as they are. Memory is one window per connection (a bit more than 32 KiB); inflated bytes
 * are handed over in pieces and not kept.
 */
#ifndef VETHGUARD_CREDENTIAL_INFLATE_H
#define VETHGUARD_CREDENTIAL_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bound on what a connection may inflate to: a fixed number of bytes, plus a multiple of what it sent. DEFLATE itself
 * could reach 1032 to 1 (RFC 1951). */
#define INFLATED_FREE (16u << 20)
#define INFLATED_RATIO 256u

struct inflater;

/* window_bits (8 to 15) and forgets: as agreed on in the handshake. Returns NULL if there is no memory. */
struct inflater *inflater_new(uint8_t window_bits, bool forgets);
void inflater_free(struct inflater *w);

typedef void (*inflater_text)(void *context, const uint8_t *p, size_t n);
/* Takes the content of a message, piece by piece; ends: this is the last piece, which may be empty. Calls text with
 * the inflated bytes. Returns 0; -EBADMSG: not compressed data; -EFBIG: it inflates to too much; or -ENOMEM. After a
 * failure w can only be freed. */
int inflater_feed(struct inflater *w, const uint8_t *p, size_t n, bool ends, inflater_text text, void *context);

#endif
