/* SPDX-License-Identifier: Apache-2.0 */
/* barrier: which directory above a file keeps this process out, so that "permission denied" can be told by its cause. */
#ifndef VETHGUARD_BASE_BARRIER_H
#define VETHGUARD_BASE_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* The first directory of an absolute path that the effective user may not search (path_resolution(7)), in out, and what
 * it is, in st. False: there is none, or the path is too long or relative. Symbolic links in the path are followed by the kernel;
 * where one leads through a closed directory, the link's own path is told. */
bool barrier_find(const char *path, char *out, size_t out_size, struct stat *st);

#endif
