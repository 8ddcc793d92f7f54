/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_file: opening what somebody names without ever waiting for a file system that may not
 * answer: FUSE, NFS and others that have a server, which may be stopped, gone or hostile. One look
 * at such a path is enough to hang for good.
 *
 * Local is what lies on the file system of the root directory, whatever that is, or on a mount of
 * this process' own namespace whose type is known to need nobody else's answer (local_types).
 * Everything else may be all right as well, but only a child of ours finds out (os/helper_child.h).
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_LOCAL_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_OS_LOCAL_FILE_H

#include <errno.h>
#include <sys/stat.h>

#define LOCAL_FILE_UNKNOWN (-EREMOTE)

/* The file or directory at path (absolute), as an O_PATH descriptor (close-on-exec), with the
 * rights that are in force. -errno as open(2); LOCAL_FILE_UNKNOWN: some part of the way, or the
 * file, may lie where nobody answers. */
int local_file_find(const char *path);
/* The regular file at path, for reading, without waiting for whoever has a lease on it. -EINVAL: it
 * is none; else as above. */
int local_file_open(const char *path);

/* Tells of what is on the file system of the root directory, in one step: 0, or -errno; -EXDEV:
 * some part of the way is not there. */
int local_file_look(const char *path, struct stat *st);
/* The directory above one that was found, as such a descriptor. -EXDEV: that is on another mount;
 * the root directory is above itself. */
int local_file_above(int directory);

#endif
