/* SPDX-License-Identifier: Apache-2.0 */
/* fd: descriptors of files. */
#ifndef VETHGUARD_BASE_FD_H
#define VETHGUARD_BASE_FD_H

#include "vethguard/base/slice.h"

/* Writes all bytes, also after signals and in several parts. Returns 0, or -errno of write(2) with some of them
 * written; -EIO if the file takes nothing more without an error. */
int fd_write_all(int fd, struct slice bytes);

#endif
