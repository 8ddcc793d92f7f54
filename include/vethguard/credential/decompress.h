/* SPDX-License-Identifier: Apache-2.0 */
/* decompress: gzip (RFC 1952) to plain bytes while they stream, so that a response can be scanned. */
#ifndef VETHGUARD_CREDENTIAL_DECOMPRESS_H
#define VETHGUARD_CREDENTIAL_DECOMPRESS_H

#include "vethguard/base/buf.h"

struct decompress;
struct decompress *decompress_new(void); /* NULL: no memory */
void decompress_free(struct decompress *u);
/* Takes input until it is used up or out holds out_limit bytes or more; *used tells how much was taken. Several gzip
 * members in a row are one stream. 0; -EBADMSG: not gzip or damaged, for good; -errno. A caller calls again, also with
 * n 0, as long as a call left out at its limit: the decoder may hold more. */
int decompress_feed(struct decompress *u, const uint8_t *p, size_t n, size_t *used, struct buf *out, size_t out_limit);
/* True when the stream ended at a member's end: anything else is a truncated body. */
bool decompress_complete(const struct decompress *u);

#endif
