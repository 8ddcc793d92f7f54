/* SPDX-License-Identifier: Apache-2.0 */
/* unix_listener: a listening Unix socket at a path, made here or by the service manager (sd_listen_fds(3)). */
#ifndef VETHGUARD_LOOP_UNIX_LISTENER_H
#define VETHGUARD_LOOP_UNIX_LISTENER_H

#include <sys/types.h>
#include <time.h>

#include "vethguard/loop/loop.h"

#define UNIX_LISTENER_PATH_MAX 107 /* bytes, unix(7) */
#define UNIX_LISTENER_BACKLOG 128

struct unix_listener {
	int fd;       /* -1: closed */
	bool ours;    /* made here: its file is removed when the listener is closed */
	dev_t device; /* of the file */
	ino_t inode;
	struct timespec changed; /* to recognize the file, because inode numbers are reused */
	char path[UNIX_LISTENER_PATH_MAX + 1];
};

/* Binds path with mode 0660 and, unless gid is (gid_t)-1, that group; nobody else can connect at any moment. Replaces
 * a socket that nobody listens on any more. Returns 0 or -errno: -ENAMETOOLONG; -EADDRINUSE: somebody listens there;
 * -EEXIST: path is not a socket. */
int unix_listener_open(struct unix_listener *listener, const char *path, gid_t gid);
/* Takes the socket that the service manager passed to this process (sd_listen_fds(3)). It has to be the only
 * descriptor passed, a listening Unix stream socket bound to path, and only root, this user and gid may have write
 * permission for its file (connecting needs it: unix(7)). Removes the manager's variables from the environment in any
 * case. Call this first in a process, while descriptor 3 can be nothing else. Returns 0; -ENOENT: nothing was passed
 * to this process; -EINVAL: *why is the second half of a sentence, and the passed descriptors are left as they
 * are. */
int unix_listener_inherit(struct unix_listener *listener, const char *path, gid_t gid, const char **why);
/* Takes over fd, a listener that another process made; ours: with its file. Returns 0 or -errno. */
int unix_listener_adopt(struct unix_listener *listener, int fd, bool ours);
/* Closes the listener and leaves its file to another process that has the socket from now on. */
void unix_listener_give(struct unix_listener *listener);
/* Removes the file only if it is still the one made here. Does nothing on a closed listener (fd -1). */
void unix_listener_close(struct unix_listener *listener);

#endif
