/* SPDX-License-Identifier: Apache-2.0 */
/* unix_listener: a listening Unix socket by path, or one that the service manager made (sd_listen_fds(3)). */
#ifndef VETHGUARD_LOOP_UNIX_LISTENER_H
#define VETHGUARD_LOOP_UNIX_LISTENER_H

#include <sys/types.h>
#include <time.h>

#include "vethguard/loop/loop.h"

#define UNIX_LISTENER_PATH_MAX 107 /* bytes, unix(7) */
#define UNIX_LISTENER_BACKLOG 128

struct unix_listener {
	int fd;         /* -1: closed */
	bool ours;      /* made here: its file goes when it is closed */
	dev_t device;   /* of the file */
	ino_t inode;
	struct timespec changed; /* inode numbers are used again */
	char path[UNIX_LISTENER_PATH_MAX + 1];
};

/* Binds path with mode 0660 and, gid not being (gid_t)-1, that group; from the first moment on nobody else can
 * connect. A socket that nobody listens on any more is replaced. 0 or -errno: -ENAMETOOLONG; -EADDRINUSE: somebody
 * listens there; -EEXIST: the path is something else than a socket. */
int unix_listener_open(struct unix_listener *listener, const char *path, gid_t gid);
/* The socket that the service manager passed to this process (sd_listen_fds(3)), which has to be the only descriptor
 * passed, a Unix stream socket that listens, and bound to path, whose file nobody may write to but root, this user and
 * gid (to connect is to write: unix(7)). What the manager said leaves the environment in any case. To be asked first in
 * a process, while descriptor 3 can be nothing else. 0; -ENOENT: nothing was passed to this process; -EINVAL: *why is a
 * sentence's second half, and what was passed is left as it is. */
int unix_listener_inherit(struct unix_listener *listener, const char *path, gid_t gid, const char **why);
/* One that another process has made and gives away (fd is taken); ours: with its file. 0 or -errno. */
int unix_listener_adopt(struct unix_listener *listener, int fd, bool ours);
/* Another process has it from now on, and with it the file. */
void unix_listener_give(struct unix_listener *listener);
/* Harmless on a closed one (fd -1). The file is removed only where it is still the one that was made here. */
void unix_listener_close(struct unix_listener *listener);

#endif
