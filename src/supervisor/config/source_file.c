/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: sources: whose rights open them? Two kinds of files must work: the invoking user's own, and
 * those that the administrator keeps from that user (/etc/vethguard/secrets, owned by root, mode
 * 0600). One attack must fail: the sandboxed command, which usually runs as the invoking user with
 * that user's files, puts a symbolic link to /etc/shadow in place of a credential, and has root's
 * file sent to a host that the policy allows.
 *
 * So the file is opened as the invoking user first. If that user may not read it, the supervisor's
 * own rights are used, but only along the literal path without symbolic links (openat2(2),
 * RESOLVE_NO_SYMLINKS), and only for a file that root owns: only root can have put it there. In
 * both cases it must be a regular file that belongs to root or the invoking user and that neither
 * its group nor others can write: a credential that somebody else can exchange is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"
#include "supervisor/config/sources.h"

/* Does not wait at a FIFO, does not acquire a controlling terminal. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static int open_plain(void *context)
{
	int fd = open(context, OPEN_FLAGS);

	return fd < 0 ? -errno : fd;
}

static int open_local(void *context)
{
	return local_file_open(context);
}

static int open_literal(const char *path)
{
	struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_NO_SYMLINKS};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* Returns why the open file may not serve, or NULL. */
static const char *objection(int fd, const struct identity *id, bool by_root)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "cannot be examined";
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	if (by_root && st.st_uid != 0)
		return "is not readable by the invoking user and does not belong to root";
	if (!id->fixed && st.st_uid != 0 && st.st_uid != id->uid)
		return "belongs neither to root nor to the invoking user";
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return "can be written by its group or by others: chmod go-w fixes that";
	return NULL;
}

int source_file_open(
        const struct identity *id, const char *path, bool wait, char error[SOURCE_ERROR_MAX])
{
	char shown[256];
	bool by_root = false;
	int fd = identity_run(id, wait ? open_plain : open_local, (void *)(uintptr_t)path);

	slice_escape(slice_from_string(path), shown, sizeof(shown));
	if (fd == -EACCES && id->lends && id->uid != 0) {
		by_root = true;
		fd = open_literal(path);
		if (fd == -ELOOP) {
			snprintf(error, SOURCE_ERROR_MAX,
			        "%s is reached through a symbolic link, which is refused for a "
			        "file that the invoking user cannot read",
			        shown);
			return -1;
		}
	}
	if (fd == LOCAL_FILE_UNKNOWN) {
		snprintf(error, SOURCE_ERROR_MAX,
		        "%s lies on a file system that may stop answering: keep it on a local one",
		        shown);
		return fd;
	}
	if (fd < 0) {
		snprintf(error, SOURCE_ERROR_MAX, "%s: %s", shown,
		        fd == -EINVAL ? "not a regular file" : strerror(-fd));
		return -1;
	}
	const char *why = objection(fd, id, by_root);
	if (!why)
		return fd;
	snprintf(error, SOURCE_ERROR_MAX, "%s %s", shown, why);
	close(fd);
	return -1;
}

void source_secrets_close(struct source_secrets *secrets)
{
	for (size_t i = 0; i < secrets->count; i++)
		close(secrets->fds[i]);
	secrets->count = 0;
}

bool source_secrets_open(const struct identity *identity, const struct policy_credential *c,
        struct source_secrets *out, char error[SOURCE_ERROR_MAX])
{
	struct slice file;

	error[0] = '\0';
	out->count = 0;
	out->changes = SOURCE_FILES_MAX;
	for (size_t k = 0; k < SOURCE_FILES_MAX && policy_credential_file(c, k, &file); k++) {
		char *path = out->paths[k];

		if (file.n >= SOURCE_PATH_MAX) {
			snprintf(error, SOURCE_ERROR_MAX, "the path is too long");
			break;
		}
		memcpy(path, file.p, file.n);
		path[file.n] = 0;
		out->fds[k] = source_file_open(identity, path, false, error);
		if (out->fds[k] < 0)
			break;
		out->count = k + 1;
		/* Of a service's arguments only this one ends with such a path. */
		for (size_t i = 1; i < c->argc; i++)
			if (slice_starts_with(c->argv[i], SLICE("refresh_token=file:")) &&
			        slice_ends_with(c->argv[i], file))
				out->changes = k;
	}
	if (error[0])
		source_secrets_close(out);
	return !error[0];
}
