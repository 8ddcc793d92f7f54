/* SPDX-License-Identifier: Apache-2.0 */
/* One file for each sandbox: written beside the old one and renamed; read only if nobody else could
 * have written it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/daemon/state_json.h"
#include "vethguard/base/fd.h"

static void file_name(const char *name, const char *suffix, char out[NAME_MAX + 1])
{
	snprintf(out, NAME_MAX + 1, "%.64s%s", name, suffix);
}

static int open_fresh(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

static int replace_file(int dir, const char *name, const char *text, size_t n)
{
	char file[NAME_MAX + 1], fresh[NAME_MAX + 1];

	file_name(name, STATE_SUFFIX, file);
	file_name(name, STATE_FRESH_SUFFIX, fresh);
	int fd = open_fresh(dir, fresh);
	if (fd == -EEXIST && unlinkat(dir, fresh, 0) == 0) /* of a daemon that was killed */
		fd = open_fresh(dir, fresh);
	if (fd < 0)
		return fd;
	int rc = fd_write_all(fd, slice_of(text, n));
	if (!rc && fsync(fd) < 0)
		rc = -errno;
	close(fd);
	if (!rc && renameat(dir, fresh, dir, file) < 0)
		rc = -errno;
	if (!rc && fsync(dir) < 0)
		rc = -errno;
	if (rc)
		unlinkat(dir, fresh, 0);
	return rc;
}

int state_save(int dir, const struct attach_record *record, const struct gate *gate)
{
	json_t *root = state_pack(record, gate);
	char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	int rc = text ? replace_file(dir, record->name, text, strlen(text)) : -ENOMEM;

	free(text);
	json_decref(root);
	return rc;
}

bool state_exists(int dir, const char *name)
{
	char file[NAME_MAX + 1];

	file_name(name, STATE_SUFFIX, file);
	return faccessat(dir, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int state_remove(int dir, const char *name)
{
	char file[NAME_MAX + 1];

	file_name(name, STATE_SUFFIX, file);
	if (unlinkat(dir, file, 0) < 0 && errno != ENOENT)
		return -errno;
	return fsync(dir) < 0 ? -errno : 0;
}

/* Only this program writes these files: anything unusual was put there by somebody else. */
static char *read_own_file(int dir, const char *file, size_t *n, char error[STATE_ERROR_MAX])
{
	int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	const char *why = NULL;
	char *text = NULL;
	struct stat st = {0};

	if (fd < 0 || fstat(fd, &st) < 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		why = "is not a regular file";
	else if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		why = "could have been written by somebody else";
	else if (st.st_size <= 0 || (uint64_t)st.st_size > STATE_FILE_MAX)
		why = "has an impossible size";
	else if (!(text = malloc((size_t)st.st_size)))
		why = "no memory";
	else if (read(fd, text, (size_t)st.st_size) != st.st_size)
		why = "cannot be read whole";
	if (fd >= 0)
		close(fd);
	if (!why) {
		*n = (size_t)st.st_size;
		return text;
	}
	snprintf(error, STATE_ERROR_MAX, "the state file %.64s %s", file, why);
	free(text);
	return NULL;
}

static int damaged(const char *file, const char *how, char error[STATE_ERROR_MAX])
{
	snprintf(error, STATE_ERROR_MAX, "the state file %.64s is damaged: %.192s", file, how);
	return -EINVAL;
}

int state_load(int dir, const char *file, struct attach_record *r, struct gate *gate,
        char error[STATE_ERROR_MAX])
{
	char expected[NAME_MAX + 1], how[JSON_ERROR_TEXT_LENGTH + 32];
	json_error_t why;
	const char *wrong;
	size_t n;

	memset(r, 0, sizeof(*r));
	char *text = read_own_file(dir, file, &n, error);
	if (!text)
		return -EINVAL;
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	free(text);
	if (!root) {
		snprintf(how, sizeof(how), "line %d: %s", why.line, why.text);
		return damaged(file, how, error);
	}
	wrong = state_unpack(root, r, gate, &why);
	file_name(r->name, STATE_SUFFIX, expected);
	if (!wrong && strcmp(expected, file) != 0)
		wrong = "name";
	json_decref(root);
	if (!wrong)
		return 0;
	attach_record_fini(r);
	return damaged(file, wrong, error);
}
