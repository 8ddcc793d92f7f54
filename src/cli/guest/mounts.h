/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts: what the command sees in place of a few files of the machine. Files are written to a
 * scratch tmpfs and attached over their targets read-only; the scratch itself is then let go, so
 * nothing of it has a name.
 */
#ifndef VETHGUARD_SRC_CLI_GUEST_MOUNTS_H
#define VETHGUARD_SRC_CLI_GUEST_MOUNTS_H

#include <sys/stat.h>

#include "cli/guest/guest.h"
#include "vethguard/base/buf.h"

#define MOUNTS_FILE_MAX (16u << 20) /* bytes of one file that is copied */

struct mounts {
	const struct guest_plan *plan;
	unsigned next; /* number of the next scratch file */
	int pty;       /* to stay open for as long as the sandbox lives; -1: none */
};

/* Where the scratch tmpfs is while it has a name. */
#define MOUNTS_SCRATCH "/proc"

/* Reads a regular file whole, at most MOUNTS_FILE_MAX. 0 or -errno. */
int mounts_read(const char *path, struct buf *out);
/* Attaches source (a path) over target, both of one kind, read-only where asked. 0 or -errno. */
int mounts_attach_at(
        const char *source, int target, bool read_only); /* target: an O_PATH descriptor */
int mounts_attach(const char *source, const char *target, bool read_only);
/* Shows bytes in place of the file at target (which must exist; links are followed). 0 or -errno.
 */
int mounts_replace(struct mounts *m, const char *target, struct slice bytes);
/* A new empty scratch file or directory; its path is written to out. 0 or -errno. */
int mounts_scratch(struct mounts *m, bool directory, mode_t mode, char *out, size_t out_size);
/* Writes a whole file. 0 or -errno. */
int mounts_write(const char *path, struct slice bytes, mode_t mode);

/* guest/trust_store.c: the CA in every store that exists. guest/java_store.c, guest/nss_store.c:
 * the two kinds with a format. */
int trust_mounts(struct mounts *m, struct failure *failure);
int java_store_add(struct slice old, struct slice bundle, struct slice ca_pem, struct buf *out);
int nss_store_mount(struct mounts *m);
/* guest/hide.c: what leads out of the sandbox without a packet. */
int hide_mounts(struct mounts *m, struct failure *failure);
/* guest/devices.c: a /dev of the sandbox's own; device files elsewhere are none. 0 or -errno with a
 * text.
 */
int devices_mounts(struct mounts *m, struct failure *failure);

/* The hashed directory (on Fedora and openSUSE a link to it), and the CA alone in it. Bundles:
 * bundle_paths of vethguard/tls/bundle.h. */
#define TRUST_DIRECTORY "/etc/ssl/certs"
#define TRUST_CA "/etc/ssl/certs/vethguard.pem"

#endif
