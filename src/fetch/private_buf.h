/* SPDX-License-Identifier: Apache-2.0 */
/* private_buf: buffers for secrets. They take all their memory at once: one that grows would leave
 * copies behind which nobody wipes. */
#ifndef VETHGUARD_SRC_FETCH_PRIVATE_BUF_H
#define VETHGUARD_SRC_FETCH_PRIVATE_BUF_H

#include "vethguard/base/buf.h"

/* A buffer of max bytes. Without memory nothing can be appended to it. */
void private_buf_init(struct buf *b, size_t max);
/* Wipes and frees. */
void private_buf_fini(struct buf *b);

#endif
