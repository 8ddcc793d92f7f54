/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_file: the root CA of the daemon's sandboxes: root.key in the directory "ca" of its data
 * directory. Only the keeper reads and writes its content (keeper/authority.h).
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_ROOT_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_ROOT_FILE_H

/* Opens the file; if there is none, makes an empty one under another name. Returns the descriptor
 * or -errno; -EPERM: somebody else could read or replace it. */
int root_file_open(int dir);
/* Gives the new file its name, once the keeper has filled it. A file that has its name stays as it
 * is. Returns 0 or -errno. */
int root_file_keep(int dir);
/* Makes an empty file that is to replace it. Returns the descriptor or -errno. */
int root_file_next(int dir);
/* Puts that file in its place; if it cannot, removes it. Returns 0 or -errno. */
int root_file_replace(int dir);
void root_file_forget_next(int dir);
/* Writes the certificates to be trusted beside it (root.pem), for people. Returns 0 or -errno. */
int root_file_publish(int dir, const char *pem);

#endif
