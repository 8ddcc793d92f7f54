/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_store: what the daemon keeps of one signed bundle (bundle/signed_bundle.h), in a directory
 * of its own that outlives the daemon and the machine's restart:
 *
 *   serial     the highest serial that was taken, and the SHA-256 of its content
 *   bundle     the file that was taken last, as it came
 *   tree-...   its files
 *   current    a link to that tree; policies and key sets are found through it
 *
 * The tree is complete before the link leads to it, so a reader sees one bundle or the other.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_BUNDLE_STORE_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_BUNDLE_STORE_H

#include "vethguard/bundle/signed_bundle.h"

struct bundle_store {
	int dir;                                    /* owned; -1: none */
	uint64_t highest;                           /* 0: none was taken yet */
	uint8_t digest[SIGNED_BUNDLE_DIGEST_BYTES]; /* of that one */
};

/* Opens the directory NAME of parent, which is made if it is missing, and reads the serial. Returns
 * 0; -EBADMSG: the serial's file is damaged or missing, or others may write here; or -errno. */
int bundle_store_open(struct bundle_store *store, int parent, const char *name);
void bundle_store_close(struct bundle_store *store);
/* Appends the file that was taken last to out. Returns 0; -ENOENT: none was; or -errno. */
int bundle_store_read(const struct bundle_store *store, struct buf *out);
/* Keeps a bundle: its files, its serial, itself. When this returns 0, all of it is on the disk and
 * `current` leads to it. Otherwise -errno: `current` leads to what was before. */
int bundle_store_keep(struct bundle_store *store, const struct signed_bundle *bundle);
/* Makes `current` lead to the files of the bundle that was kept last, if it does not. Returns 0, or
 * -errno: `current` may lead anywhere, so call bundle_store_hide(). */
int bundle_store_extract(struct bundle_store *store, const struct signed_bundle *bundle);
/* `current` leads nowhere from now on. */
void bundle_store_hide(const struct bundle_store *store);

/* Writes the path of the file that a text names ("bundle:NAME/FILE") to out. base: the directory of
 * all stores. Returns 1; 0: the text names no bundle; -EINVAL: it names no file of the bundle, or
 * out has no room for the path. */
int bundle_store_path(const char *base, const char *text, char *out, size_t out_size);

#endif
