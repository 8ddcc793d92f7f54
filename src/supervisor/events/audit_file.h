/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file: opens the audit log that the recorder appends to. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_FILE_H

#include "supervisor/os/identity.h"

/* Opens path for appending only, with the rights of id, and makes the file (0600) if it is missing;
 * no directory is made (-ENOENT). It must be a regular file, and the last part of the path no
 * symbolic link. Empty path: anonymous memory. Returns the descriptor, or -errno; -ELOOP: a
 * symbolic link; -EINVAL: not a regular file. */
int audit_file_open(const struct identity *id, const char *path);
/* The same with the supervisor's own rights, for the path in the operator's configuration: no part
 * of it may be a symbolic link (-ELOOP); no directory is made. */
int audit_file_open_own(const char *path);

/* Opens the same file for reading only: the recorder continues after its last line. Returns the
 * descriptor or -errno. */
int audit_file_reader(int fd);

#endif
