/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts: what the command sees in place of a few files of the machine. The files are written to a
 * scratch tmpfs and attached read-only over their targets; then the scratch is detached, so nothing
 * in it has a name.
 */
#ifndef VETHGUARD_SRC_CLI_GUEST_MOUNTS_H
#define VETHGUARD_SRC_CLI_GUEST_MOUNTS_H

#include <sys/stat.h>

#include "cli/guest/guest.h"
#include "vethguard/base/buf.h"

#define MOUNTS_FILE_MAX (16u << 20) /* bytes of one copied file */

struct mounts {
	const struct guest_plan *plan;
	unsigned next; /* number of the next scratch file */
	int pty;       /* to keep open as long as the sandbox lives; -1: none */
};

/* Where the scratch tmpfs is mounted while it has a name. */
#define MOUNTS_SCRATCH "/proc"

/* Reads a whole regular file, at most MOUNTS_FILE_MAX bytes. Returns 0 or -errno. */
int mounts_read(const char *path, struct buf *out);
/* Attach source (a path) over target, both of the same kind, optionally read-only. Return 0 or
 * -errno. */
int mounts_attach_at(
        const char *source, int target, bool read_only); /* target: an O_PATH descriptor */
int mounts_attach(const char *source, const char *target, bool read_only);
/* Shows bytes in place of the file at target, which has to exist; follows links. Returns 0 or
 * -errno. */
int mounts_replace(struct mounts *m, const char *target, struct slice bytes);
/* Makes an empty scratch file or directory and writes its path to out. Returns 0 or -errno. */
int mounts_scratch(struct mounts *m, bool directory, mode_t mode, char *out, size_t out_size);
/* Writes a whole file. Returns 0 or -errno. */
int mounts_write(const char *path, struct slice bytes, mode_t mode);

/* guest/trust_store.c: adds the CA to every store that exists. guest/java_store.c,
 * guest/nss_store.c: the two kinds of stores with a format of their own. */
int trust_mounts(struct mounts *m, struct failure *failure);
int java_store_add(struct slice old, struct slice bundle, struct slice ca_pem, struct buf *out);
int nss_store_mount(struct mounts *m);
/* guest/hide.c: hides what leads out of the sandbox without a packet. */
int hide_mounts(struct mounts *m, struct failure *failure);
/* guest/devices.c: makes a /dev of the sandbox's own; device files elsewhere do not work. Returns
 * 0, or -errno with a text. */
int devices_mounts(struct mounts *m, struct failure *failure);

/* The hashed directory (a link to it on Fedora and openSUSE), and the CA alone in it. Bundles:
 * bundle_paths of vethguard/tls/bundle.h. */
#define TRUST_DIRECTORY "/etc/ssl/certs"
#define TRUST_CA "/etc/ssl/certs/vethguard.pem"

#endif
