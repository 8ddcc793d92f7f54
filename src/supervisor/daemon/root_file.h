/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_file: the root CA of the daemon's sandboxes, root.key in the directory ca of its data. Only
 * the keeper reads and writes what is in it (keeper/authority.h).
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_ROOT_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_ROOT_FILE_H

/* The file, or where there is none a new, empty one under another name. The descriptor or -errno:
 * -EPERM somebody else could read or exchange it. */
int root_file_open(int dir);
/* The keeper has filled it: it gets its name. 0 or -errno; one that has its name stays as it is. */
int root_file_keep(int dir);
/* Writes the certificate beside it (root.pem), for people. 0 or -errno. */
int root_file_publish(int dir, const char *pem);

#endif
