/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate: messages that were compressed with permessage-deflate (RFC 7692), inflated to be
 * looked at; they themselves are passed on as they are. Memory is one window per connection (32 KiB
 * and some); what is inflated is handed over in pieces and not kept.
 */
#ifndef VETHGUARD_CREDENTIAL_INFLATE_H
#define VETHGUARD_CREDENTIAL_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a connection may inflate to: so much, and so many times what it sent. DEFLATE itself could
 * reach 1032 to 1 (RFC 1951). */
#define INFLATED_FREE (16u << 20)
#define INFLATED_RATIO 256u

struct inflater;

/* window_bits (8 to 15) and forgets as they were agreed on. NULL: no memory. */
struct inflater *inflater_new(uint8_t window_bits, bool forgets);
void inflater_free(struct inflater *w);

typedef void (*inflater_text)(void *context, const uint8_t *p, size_t n);
/* Content of one message, piece by piece; ends: the last piece (which may be empty). text is called
 * with what it inflates to. 0; -EBADMSG: not compressed data; -EFBIG: it inflates to too much;
 * -ENOMEM. After a failure the struct is of no use any more. */
int inflater_feed(struct inflater *w, const uint8_t *p, size_t n, bool ends,
        inflater_text text, void *context);

#endif
