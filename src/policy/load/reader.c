/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the only part of this module that touches the file system. A policy is a
 * regular file of bounded size. A fifo or device named by mistake must neither hang nor be read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/policy/load.h"

#ifndef VETHGUARD_DATADIR
#define VETHGUARD_DATADIR "/usr/local/share/vethguard"
#endif

int policy_read_open_file(int fd, char **text, size_t *n, struct policy_file_facts *facts)
{
	struct stat st;
	size_t size, have = 0;
	char *out;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 0 || st.st_size > (off_t)POLICY_FILE_MAX)
		return -EFBIG;
	if (facts) {
		*facts = (struct policy_file_facts){
		        .owner = st.st_uid, .closed = (st.st_mode & 077) == 0};
		policy_writers_add(&facts->writers, &st, "", geteuid());
	}
	size = (size_t)st.st_size;
	out = malloc(size + 1);
	if (!out)
		return -ENOMEM;
	while (have < size) {
		ssize_t got = read(fd, out + have, size - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int rc = -errno;

			free(out);
			return rc;
		}
		if (got == 0)
			break;
		have += (size_t)got;
	}
	out[have] = '\0';
	*text = out;
	*n = have;
	return 0;
}

static int look_at(void *context, const char *path, struct stat *st)
{
	(void)context;
	return stat(path, st) < 0 ? -errno : 0;
}

/* Checks the directories above the path that was opened, and above the file's real path. */
static void look_above(int fd, const char *path, struct policy_writers *writers)
{
	char link[64], real[PATH_MAX];
	ssize_t n;

	policy_writers_add_above(writers, path, geteuid(), look_at, NULL);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof(real) - 1);
	if (n <= 0)
		return;
	real[n] = 0;
	if (strcmp(real, path) != 0)
		policy_writers_add_above(writers, real, geteuid(), look_at, NULL);
}

static int read_file(void *context, const char *path, char **text, size_t *n)
{
	struct policy_file_facts *facts = context;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd < 0)
		return -errno;
	rc = policy_read_open_file(fd, text, n, facts);
	if (rc == 0 && facts)
		look_above(fd, path, &facts->writers);
	close(fd);
	return rc;
}

struct policy_reader policy_reader_files(const char *preset_dir)
{
	return (struct policy_reader){
	        .read = read_file, .preset_dir = preset_dir, .presets = policy_list_presets};
}

static bool is_private(void *context)
{
	const struct policy_file_facts *facts = context;

	return facts->closed && (facts->owner == 0 || facts->owner == geteuid());
}

struct policy_reader policy_reader_private_files(
        const char *preset_dir, struct policy_file_facts *facts)
{
	return (struct policy_reader){.context = facts,
	        .read = read_file,
	        .preset_dir = preset_dir,
	        .is_private = is_private};
}

static const struct policy_writers *many_writers(void *context)
{
	const struct policy_file_facts *facts = context;

	return facts->writers.who > POLICY_WRITER_OWNER ? &facts->writers : NULL;
}

struct policy_reader policy_reader_watchful_files(
        const char *preset_dir, struct policy_file_facts *facts)
{
	return (struct policy_reader){.context = facts,
	        .read = read_file,
	        .preset_dir = preset_dir,
	        .writers = many_writers,
	        .presets = policy_list_presets};
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

void policy_list_presets(const char *directory, struct policy_presets *out)
{
	DIR *dir = directory ? opendir(directory) : NULL;
	const struct dirent *entry;

	out->count = 0;
	while (dir && out->count < POLICY_PRESETS_MAX && (entry = readdir(dir))) {
		struct slice name = slice_from_string(entry->d_name);

		if (!slice_ends_with(name, SLICE(".yaml")))
			continue;
		name.n -= strlen(".yaml");
		if (!policy_is_preset_name(name))
			continue;
		snprintf(out->names[out->count++], sizeof(out->names[0]), "%.*s", SLICE_ARG(name));
	}
	if (dir)
		closedir(dir);
	qsort(out->names, out->count, sizeof(out->names[0]), compare_names);
}

#define TREE_LEVELS_MAX 6 /* build/VARIANT/tests/unit/MODULE/ROOM/PROGRAM */

/* Finds the tree that the running program was built in: "policies/presets" beside one of the
 * directories above it. */
static bool find_build_tree(char *out, size_t size)
{
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n <= 0)
		return false;
	program[n] = '\0';
	for (int up = 0; up < TREE_LEVELS_MAX; up++) {
		char *slash = strrchr(program, '/');
		struct stat st;

		if (!slash || slash == program)
			return false;
		*slash = '\0';
		/* only below a directory named build: a program installed beside other people's
		 * files has no tree */
		slash = strrchr(program, '/');
		if (!slash || strcmp(slash, "/build") != 0)
			continue;
		*slash = '\0';
		if (snprintf(out, size, "%s/policies/presets", program) >= (int)size)
			return false;
		/* if this user has no access to it, reading it will say so; another build has other
		 * presets */
		return stat(out, &st) == 0 ? S_ISDIR(st.st_mode) : errno == EACCES;
	}
	return false;
}

const char *policy_default_preset_dir(void)
{
	static char tree[PATH_MAX + 32];
	static const char *found;

	if (!found)
		found = find_build_tree(tree, sizeof(tree)) ? tree : VETHGUARD_DATADIR "/presets";
	return found;
}
