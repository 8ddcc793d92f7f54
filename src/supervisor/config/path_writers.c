/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the users who can change a policy through the directories above it, in a daemon that waits
 * for no file system. Directories on the root directory's own file system take one call each, and
 * usually that is all. Finding out whether another mount is local takes much longer, so it is done
 * once, for the directory that holds the file; from there the walk goes upward as far as the mount
 * reaches.
 *
 * The files of a policy are mostly in the same few directories. One load looks at each directory
 * once; the next load looks again.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"
#include "supervisor/config/private.h"

#define LEVELS_MAX 256 /* nested directories in a path of PATH_MAX */

struct looking {
	struct path_looks *looks; /* NULL: none are kept */
	bool elsewhere;           /* some directory is on another mount */
};

/* Looks with other rights do not count: a directory may be closed to one of the two users. */
static void begin(struct path_looks *looks)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();

	if (looks->uid != uid || looks->gid != gid)
		looks->count = 0;
	looks->uid = uid;
	looks->gid = gid;
}

static const struct path_look *seen(const struct path_looks *looks, const char *path)
{
	for (size_t i = 0; looks && i < looks->count; i++)
		if (strcmp(looks->items[i].path, path) == 0)
			return &looks->items[i];
	return NULL;
}

static void keep(struct path_looks *looks, const char *path, const struct stat *st, int rc)
{
	const size_t n = strlen(path) + 1;

	if (!looks || looks->count == PATH_LOOKS_MAX || n > sizeof(looks->items->path))
		return;
	struct path_look *one = &looks->items[looks->count++];
	memcpy(one->path, path, n);
	one->rc = rc;
	if (!rc)
		one->st = *st;
}

static int look(void *context, const char *path, struct stat *st)
{
	struct looking *looking = context;
	const struct path_look *before = seen(looking->looks, path);
	int rc = before ? before->rc : local_file_look(path, st);

	if (!before)
		keep(looking->looks, path, st, rc);
	else if (!rc)
		*st = before->st;
	looking->elsewhere |= rc == -EXDEV;
	return rc;
}

static const char *name_of(int fd, char out[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = 0;
	return out;
}

static void climb(const char *path, struct policy_writers *writers)
{
	char directory[PATH_MAX], name[PATH_MAX];
	char *slash;
	struct stat st, last = {0};
	int fd, above;

	if (snprintf(directory, sizeof(directory), "%s", path) >= (int)sizeof(directory))
		return;
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return;
	*slash = 0;
	fd = local_file_find(directory);
	for (unsigned i = 0; fd >= 0 && i < LEVELS_MAX; i++) {
		if (fstat(fd, &st) < 0 || (st.st_dev == last.st_dev && st.st_ino == last.st_ino))
			break;
		last = st;
		policy_writers_add(writers, &st, name_of(fd, name), geteuid());
		above = local_file_above(fd);
		close(fd);
		fd = above;
	}
	if (fd >= 0)
		close(fd);
}

void settings_add_path_writers(int fd, const char *path, bool is_real, struct path_looks *looks,
        struct policy_writers *writers)
{
	struct looking looking = {.looks = looks};
	char real[PATH_MAX] = "";

	if (looks)
		begin(looks);
	policy_writers_add_above(writers, path, geteuid(), look, &looking);
	if (!is_real)
		name_of(fd, real);
	if (real[0] == '/' && strcmp(real, path) != 0)
		policy_writers_add_above(writers, real, geteuid(), look, &looking);
	if (looking.elsewhere)
		climb(real[0] == '/' ? real : path, writers);
}
