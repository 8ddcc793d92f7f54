/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writers: who can change what a file says, besides root and the user who uses the file: through the permissions of
 * the file, or through those of a directory above it, where another file can be put in its place. Whoever can change
 * a policy has a way out of the sandbox.
 */
#ifndef VETHGUARD_POLICY_WRITERS_H
#define VETHGUARD_POLICY_WRITERS_H

#include <stdint.h>
#include <sys/stat.h>

#include "vethguard/base/slice.h"

#define POLICY_WRITERS_PLACE_MAX 256 /* bytes of a directory's name, with the NUL; longer names are cut */
#define POLICY_WRITERS_TEXT_MAX 384  /* escaped, with the NUL */

enum policy_writer { POLICY_WRITER_NONE, POLICY_WRITER_OWNER, POLICY_WRITER_GROUP, POLICY_WRITER_EVERYBODY };

struct policy_writers {
	enum policy_writer who;               /* the widest kind found */
	uint32_t id;                          /* of that owner or group */
	char place[POLICY_WRITERS_PLACE_MAX]; /* the directory; "": the file itself */
};

/* Looks at a directory. Returns 0 or -errno; a directory that cannot be looked at is skipped. */
typedef int policy_writers_look(void *context, const char *path, struct stat *st);

/* Adds to *w (zeroed before the first call) what the permissions of a file, or of the directory at place, allow.
 * user: who uses the file. A group counts as nobody else if it is root's group or if its number is the owner's or the
 * user's, as with groups made for one user alone. In a directory with the sticky bit only owners can take a file
 * away. */
void policy_writers_add(struct policy_writers *w, const struct stat *st, const char *place, uint32_t user);
/* Does the same for each directory above path (absolute). */
void policy_writers_add_above(
        struct policy_writers *w, const char *path, uint32_t user, policy_writers_look *look, void *context);
bool policy_writers_equal(const struct policy_writers *a, const struct policy_writers *b);
/* Writes into out the text that goes behind a file's name ("can be changed by everybody: ...") and says how to mend
 * it. Returns out. */
const char *policy_writers_text(const struct policy_writers *w, char out[POLICY_WRITERS_TEXT_MAX]);

#endif
