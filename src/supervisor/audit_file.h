/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file: the log that the recorder appends to, opened on the invoking user's behalf. */
#ifndef SUPERVISOR_AUDIT_FILE_H
#define SUPERVISOR_AUDIT_FILE_H

#include "supervisor/identity.h"

/* id as the identity of the supervisor itself, for the path that the operator's configuration
 * names. */
#define AUDIT_FILE_OWN ((struct identity){0, 0, true})

/* Opens path for append (and reading: the recorder goes on from the last line), making it (0600)
 * and missing directories above it (0700) as the invoking user. Only a regular file, never through
 * a symbolic link as the last part. Empty path: memory of its own. The descriptor, or -errno:
 * -ELOOP a symbolic link, -EINVAL not a regular file. */
int audit_file_open(const struct identity *id, const char *path);

#endif
