/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writers: who can change what a file says, besides root and whoever uses it: by the rights of the file, or by those of a
 * directory above it, where another file can be put in its place. Of a policy that is a way out of the sandbox for
 * whoever gets so far.
 */
#ifndef VETHGUARD_POLICY_WRITERS_H
#define VETHGUARD_POLICY_WRITERS_H

#include <stdint.h>
#include <sys/stat.h>

#include "vethguard/base/slice.h"

#define POLICY_WRITERS_PLACE_MAX 256 /* bytes of a directory's name, with the NUL; longer ones are cut */
#define POLICY_WRITERS_TEXT_MAX 384  /* escaped, with the NUL */

enum policy_writer { POLICY_WRITER_NONE, POLICY_WRITER_OWNER, POLICY_WRITER_GROUP, POLICY_WRITER_EVERYBODY };

struct policy_writers {
	enum policy_writer who;               /* the most that were found */
	uint32_t id;                          /* of that owner or group */
	char place[POLICY_WRITERS_PLACE_MAX]; /* the directory; "": the file itself */
};

/* Tells of a directory: 0 or -errno; one that cannot be looked at is passed over. */
typedef int policy_writers_look(void *context, const char *path, struct stat *st);

/* What the rights of a file, or of a directory at place, add to *w (zeroed before the first). user: who uses the file.
 * A group that is root's, or has the number of the owner or of user, as the group that is made for one user alone, is
 * nobody else; in a directory with the sticky bit only owners can take a file away. */
void policy_writers_add(struct policy_writers *w, const struct stat *st, const char *place, uint32_t user);
/* The same of each directory above path (absolute). */
void policy_writers_add_above(struct policy_writers *w, const char *path, uint32_t user, policy_writers_look *look,
	void *context);
bool policy_writers_equal(const struct policy_writers *a, const struct policy_writers *b);
/* What stands behind a file's name ("can be changed by everybody: ..."), with how to mend it; out. */
const char *policy_writers_text(const struct policy_writers *w, char out[POLICY_WRITERS_TEXT_MAX]);

#endif
