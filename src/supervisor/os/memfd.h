/* SPDX-License-Identifier: Apache-2.0 */
/* memfd: bytes that other programs read through a descriptor and nobody can change: sealed memory
 * files (memfd_create(2)). */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_MEMFD_H
#define VETHGUARD_SRC_SUPERVISOR_OS_MEMFD_H

#include <sys/stat.h>

#include "vethguard/policy/config.h"

#define CA_BUNDLE_MAX (16u << 20) /* bytes of all trusted CA files together */

/* Makes a sealed copy. Returns the descriptor or -errno. */
int memfd_of(const char *name, const void *p, size_t n);
/* Makes a sealed file of the system's trusted CAs, followed by the configuration's, in PEM. local:
 * the configuration's files have to be local (local_file.h), or LOCAL_FILE_UNKNOWN is returned.
 * Returns the descriptor or -errno; if a file of the configuration is at fault, *culprit is its
 * path. */
int memfd_trusted_cas(const struct config *config, bool local, const char **culprit);

/* Many sandboxes trust the same CAs: they share one copy and one descriptor. */
struct memory_bundle {
	unsigned refs;
	int fd; /* sealed */
};
void memory_bundle_put(struct memory_bundle *bundle); /* NULL is allowed */
/* Returns true if both have the same bytes. NULL equals only NULL; a failed comparison is
 * unequal. */
bool memory_bundle_equal(const struct memory_bundle *a, const struct memory_bundle *b);
#define MEMORY_FINGERPRINTS_MAX (CONFIG_CA_FILES_MAX + 16)
struct memory_trusted {
	struct memory_bundle *bundle; /* the last one made; NULL: none yet */
	bool local;                   /* see memfd_trusted_cas() */
	size_t count;
	struct memory_fingerprint {
		dev_t device;
		ino_t inode;
		off_t size;
		struct timespec modified, changed;
		/* Of its files at that time; count 0: one was too new to tell. */
	} fingerprints[MEMORY_FINGERPRINTS_MAX];
};
void memory_trusted_init(struct memory_trusted *kept);
void memory_trusted_fini(struct memory_trusted *kept);
/* Returns in *out a reference to a new memfd_trusted_cas() file, or to the kept one if none of its
 * files has changed. Returns 0 or -errno. */
int memfd_trusted(const struct config *config, struct memory_trusted *kept,
        struct memory_bundle **out, const char **culprit);

#endif
