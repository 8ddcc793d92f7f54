/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file: the log that the recorder appends to. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_FILE_H

#include "supervisor/os/identity.h"

/* Opens path for append, and for nothing else, making it (0600) as the invoking user; no directory
 * is made (-ENOENT). Only a regular file, never through a symbolic link as the last part. Empty
 * path: memory of its own. The descriptor, or -errno: -ELOOP a symbolic link, -EINVAL not a regular
 * file. */
int audit_file_open(const struct identity *id, const char *path);
/* The same with the supervisor's own rights, for the path that the operator's configuration names:
 * no symbolic link anywhere on it (-ELOOP), no directory is made. */
int audit_file_open_own(const char *path);

/* The same file once more, for reading and nothing else: the recorder goes on from its last line.
 * The descriptor or -errno. */
int audit_file_reader(int fd);

#endif
