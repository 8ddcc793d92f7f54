/* SPDX-License-Identifier: Apache-2.0 */
/* barrier: finds the directory above a file that keeps this process out, so that "permission denied" can be
 * explained. */
#ifndef VETHGUARD_BASE_BARRIER_H
#define VETHGUARD_BASE_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Finds the first directory of an absolute path that the effective user may not search (path_resolution(7)): stores
 * its path in out and its status in *st. Returns false if there is none, or if the path is relative or too long. The
 * kernel follows symbolic links in the path; if one leads through a closed directory, out is the link's own path. */
bool barrier_find(const char *path, char *out, size_t out_size, struct stat *st);

#endif
