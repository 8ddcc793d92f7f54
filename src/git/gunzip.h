/* SPDX-License-Identifier: Apache-2.0 */
/* gunzip: a whole body that git compressed. */
#ifndef VETHGUARD_SRC_GIT_GUNZIP_H
#define VETHGUARD_SRC_GIT_GUNZIP_H

#include "vethguard/base/buf.h"

/* Decompresses the text, which has to be exactly one gzip member (RFC 1952), and appends the
 * content to out. Returns 0; -EBADMSG for any other text; -ENOBUFS if out is full, or the text has
 * more than UINT32_MAX bytes; or -ENOMEM. */
int gunzip(struct slice text, struct buf *out);

#endif
