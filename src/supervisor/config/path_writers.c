/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the users who can change a policy through the directories above it, in a daemon that waits
 * for no file system. Directories on the root directory's own file system take one call each, and
 * usually that is all. Finding out whether another mount is local takes much longer, so it is done
 * once, for the directory that holds the file; from there the walk goes upward as far as the mount
 * reaches.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"
#include "supervisor/config/private.h"

#define LEVELS_MAX 256 /* nested directories in a path of PATH_MAX */

static int look(void *elsewhere, const char *path, struct stat *st)
{
	int rc = local_file_look(path, st);

	*(bool *)elsewhere |= rc == -EXDEV;
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

void settings_add_path_writers(int fd, const char *path, struct policy_writers *writers)
{
	bool elsewhere = false; /* some directory is on another mount */
	char real[PATH_MAX];

	policy_writers_add_above(writers, path, geteuid(), look, &elsewhere);
	name_of(fd, real);
	if (real[0] == '/' && strcmp(real, path) != 0)
		policy_writers_add_above(writers, real, geteuid(), look, &elsewhere);
	if (elsewhere)
		climb(real[0] == '/' ? real : path, writers);
}
