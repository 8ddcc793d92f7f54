/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen_socket: the socket that is a sandbox's only way out: a file, or a vsock port
 * (listen_vsock.h), which has neither rights nor a name to remove.
 *
 * The file is made with the rights of the user who asked for it, never over another file, and has
 * its mode from the first moment on. Every process that may connect to it belongs to the sandbox.
 *
 * The socket lives as long as its descriptor. A file whose socket is gone is stale: nobody can
 * listen on it again, and it is replaced by another file.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_LISTEN_SOCKET_H
#define VETHGUARD_SRC_SUPERVISOR_OS_LISTEN_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/os/identity.h"
#include "vethguard/wire/vsock_name.h"

#define LISTEN_PATH_MAX 107 /* bytes: unix(7), sun_path without its NUL */
#define LISTEN_NAME_MAX 80  /* of the path's last part */
#define LISTEN_MODE_DEFAULT 0600
#define LISTEN_MODE_MAX 0777

struct listen_socket {
	char path[LISTEN_PATH_MAX + 1]; /* absolute; empty: none; for a vsock port: its name */
	struct vsock_name vsock; /* cid 0: a Unix socket; the fields below are about its file */
	mode_t mode;
	uid_t uid; /* owner of the file */
	gid_t gid;
	dev_t device; /* of the file that was made last */
	ino_t inode;  /* 0: none, or not known */
	/* When it was made, because numbers of inodes are used again; 0: the file system does not
	 * tell. */
	uint64_t born_ns;
};

/* Returns why such a path cannot be used, or NULL. */
const char *listen_path_objection(const char *path);
/* Takes a path or the name of a vsock port. Returns NULL, or why it cannot be used. */
const char *listen_socket_name(struct listen_socket *s, const char *path);
/* Whether the file could be made now, with the rights of id. Returns 0 or -errno with why. */
int listen_socket_check(
        const struct listen_socket *s, const struct identity *id, char *why, size_t why_size);
/* Makes the file and listens. again: after removing one that listen_socket_remove() would remove.
 * Sets which file it is. Returns a descriptor (close-on-exec, non-blocking), or -errno with why:
 * then nothing is left. */
int listen_socket_open(
        struct listen_socket *s, const struct identity *id, bool again, char *why, size_t why_size);
/* Removes the file if it is the one that was made. With inode 0: if it is a stale socket of its
 * owner or of the caller. Returns 0 (also if there is nothing to remove), or -errno. */
int listen_socket_remove(const struct listen_socket *s, const struct identity *id);

#endif
