/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file: bytes that other programs read through a descriptor and nobody can change: sealed
 * memfds. */
#ifndef SUPERVISOR_MEMORY_FILE_H
#define SUPERVISOR_MEMORY_FILE_H

#include "vethguard/policy/config.h"

#define CA_BUNDLE_MAX (16u << 20) /* bytes of all trusted CA files together */

/* A sealed copy. The descriptor or -errno. */
int memory_file_of(const char *name, const void *p, size_t n);
/* The system's trusted CAs and then those of the configuration, in PEM. The descriptor or -errno;
 * where a file of the configuration is at fault, *culprit is its path. */
int memory_file_trusted_cas(const struct config *config, const char **culprit);

/* Many sandboxes trust the same CAs: where fd holds what *kept holds, it is closed and a copy of
 * *kept is returned; else *kept becomes a copy of fd (-1: none yet) and fd is returned. Both are
 * sealed. */
int memory_file_share(int fd, int *kept);

#endif
