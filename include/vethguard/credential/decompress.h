/* SPDX-License-Identifier: Apache-2.0 */
/* decompress: streaming gzip (RFC 1952) to plain bytes, so that a response can be searched. */
#ifndef VETHGUARD_CREDENTIAL_DECOMPRESS_H
#define VETHGUARD_CREDENTIAL_DECOMPRESS_H

#include "vethguard/base/buf.h"

struct decompress;
struct decompress *decompress_new(void); /* NULL: no memory */
void decompress_free(struct decompress *u);
/* Decompresses until the input is used up or out holds out_limit bytes or more; *used tells how much was taken.
 * Several gzip members in a row are one stream. Returns 0; -EBADMSG if the input is not gzip or is damaged, which is
 * final; or -errno. If a call leaves out at its limit, the decoder may hold more: call again, also with n 0. */
int decompress_feed(struct decompress *u, const uint8_t *p, size_t n, size_t *used, struct buf *out, size_t out_limit);
/* True if the stream ended at a member's end; otherwise the body is truncated. */
bool decompress_complete(const struct decompress *u);

#endif
