/* SPDX-License-Identifier: Apache-2.0 */
/* gunzip: a whole body that git compressed. */
#ifndef VETHGUARD_SRC_GIT_GUNZIP_H
#define VETHGUARD_SRC_GIT_GUNZIP_H

#include "vethguard/base/buf.h"

/* Appends what the text holds. It has to be exactly one member of gzip (RFC 1952). Returns 0;
 * -EBADMSG; or -ENOBUFS or -ENOMEM, if out takes no more. */
int gunzip(struct slice text, struct buf *out);

#endif
