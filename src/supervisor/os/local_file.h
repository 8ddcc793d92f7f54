/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_file: opens files without ever waiting for a file system that may stop answering: FUSE, NFS
 * and others with a server, which may be stopped, gone or hostile. A single access to such a path
 * can hang for ever.
 *
 * A file is local if it is on the file system of the root directory, whatever that is, or on a
 * mount of this process's own namespace whose type is known to need no server (local_types). Other
 * files may be fine as well, but only a child process finds out (os/helper_child.h).
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_LOCAL_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_OS_LOCAL_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#define LOCAL_FILE_UNKNOWN (-EREMOTE)

/* Finds the file or directory at path (absolute), with the rights in force. Returns an O_PATH
 * descriptor (close-on-exec); -errno as open(2); LOCAL_FILE_UNKNOWN: the file, or some part of the
 * path, may be on a file system that does not answer. */
int local_file_find(const char *path);
/* The same. *real: the path holds no link, "." or "..", so it is the file's own. */
int local_file_find_real(const char *path, bool *real);
/* Opens the regular file at path for reading, without waiting for the holder of a lease. Returns
 * -EINVAL if it is not a regular file; otherwise as above. */
int local_file_open(const char *path);

/* Examines a file on the root directory's file system, in one step. Returns 0 or -errno; -EXDEV:
 * some part of the path is elsewhere. */
int local_file_look(const char *path, struct stat *st);
/* Returns the parent of a found directory as such a descriptor. -EXDEV: the parent is on another
 * mount. The root directory is its own parent. */
int local_file_above(int directory);

#endif
