/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file: bytes that other programs read through a descriptor and nobody can change: sealed
 * memfds. */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_MEMFD_H
#define VETHGUARD_SRC_SUPERVISOR_OS_MEMFD_H

#include <sys/stat.h>

#include "vethguard/policy/config.h"

#define CA_BUNDLE_MAX (16u << 20) /* bytes of all trusted CA files together */

/* A sealed copy. The descriptor or -errno. */
int memfd_of(const char *name, const void *p, size_t n);
/* The system's trusted CAs and then those of the configuration, in PEM; local: those of the
 * configuration have to be local ones (local_file.h), which they are else LOCAL_FILE_UNKNOWN for.
 * The descriptor or -errno; where a file of the configuration is at fault, *culprit is its path. */
int memfd_trusted_cas(const struct config *config, bool local, const char **culprit);

/* Many sandboxes trust the same CAs: one copy, and one descriptor, for all of them. */
struct memory_bundle {
	unsigned refs;
	int fd; /* sealed */
};
void memory_bundle_put(struct memory_bundle *bundle); /* NULL is harmless */
/* The same bytes. NULL equals only NULL; what cannot be compared is not equal. */
bool memory_bundle_equal(const struct memory_bundle *a, const struct memory_bundle *b);
#define MEMORY_STAMPS_MAX (CONFIG_CA_FILES_MAX + 16)
struct memory_trusted {
	struct memory_bundle *bundle; /* as last made; NULL: none yet */
	bool local;                   /* memfd_trusted_cas() */
	size_t count;
	struct memory_fingerprint {
		dev_t device;
		ino_t inode;
		off_t size;
		struct timespec modified, changed;
	} fingerprints[MEMORY_STAMPS_MAX]; /* of its files then; count 0: one was too young to tell
	                                    */
};
void memory_trusted_init(struct memory_trusted *kept);
void memory_trusted_fini(struct memory_trusted *kept);
/* memfd_trusted_cas(), or what is kept where none of the files has changed since: a
 * reference. 0 or -errno. */
int memfd_trusted(const struct config *config, struct memory_trusted *kept,
        struct memory_bundle **out, const char **culprit);

#endif
