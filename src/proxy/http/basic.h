/* SPDX-License-Identifier: Apache-2.0 */
/* basic: Basic credentials (RFC 7617) in a field, and base64 (RFC 4648). What is written goes into
 * the caller's buffer only. */
#ifndef VETHGUARD_SRC_PROXY_HTTP_BASIC_H
#define VETHGUARD_SRC_PROXY_HTTP_BASIC_H

#include "vethguard/base/buf.h"

/* The base64 of a field value "Basic BASE64", or empty. */
struct slice basic_credentials(struct slice value);
/* Appends what the base64 stands for (with padding or without). Returns 0; -EBADMSG; or -errno. */
int basic_decode(struct buf *out, struct slice base64);
/* Appends the base64 of the bytes, with padding. Returns 0 or -errno. */
int basic_encode(struct buf *out, struct slice bytes);

#endif
