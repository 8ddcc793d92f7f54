/* SPDX-License-Identifier: Apache-2.0 */
/* basic: Basic credentials (RFC 7617) in a field, and base64 (RFC 4648). Output goes only into the
 * caller's buffer. */
#ifndef VETHGUARD_SRC_PROXY_HTTP_BASIC_H
#define VETHGUARD_SRC_PROXY_HTTP_BASIC_H

#include "vethguard/base/buf.h"

/* Returns the base64 of a field value "Basic BASE64", or empty. */
struct slice basic_credentials(struct slice value);
/* Appends the bytes that the base64 (with or without padding) decodes to. Returns 0; -EBADMSG; or
 * -errno. */
int basic_decode(struct buf *out, struct slice base64);
/* Appends the base64 of the bytes, with padding. Returns 0 or -errno. */
int basic_encode(struct buf *out, struct slice bytes);

#endif
