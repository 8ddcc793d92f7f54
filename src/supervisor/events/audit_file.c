/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Started through sudo, the supervisor could create and append to any file. So a path from the user
 * is opened with that user's rights. Even then its last part may not be a symbolic link: the
 * sandboxed command often runs as the same user and may put one there, to have log lines appended
 * to a file of its choice.
 *
 * A path from the configuration is the operator's, usually one the user cannot write to, and is
 * opened with the supervisor's own rights. No part of it may be a symbolic link, so that nothing
 * the user can change on the way leads elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/events/audit_file.h"

/* Not for reading as well: a file that is open for both can be mapped, and old lines changed. */
#define OPEN_FLAGS (O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK)

static int check_and_settle(int fd)
{
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -EINVAL;
	else if (fcntl(fd, F_SETFL, O_APPEND) < 0) /* O_NONBLOCK was for opening a FIFO */
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Opens the inode once more, as another open file. */
static int open_again(int fd, int flags)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC | O_NOCTTY);
	return again < 0 ? -errno : again;
}

int audit_file_reader(int fd)
{
	return open_again(fd, O_RDONLY);
}

/* Nobody reads it, but the recorder treats it like any other file. */
static int open_nameless(void)
{
	int fd = memfd_create("vethguard-audit", MFD_CLOEXEC), again;

	if (fd < 0)
		return -errno;
	again = open_again(fd, O_WRONLY | O_APPEND);
	close(fd);
	return again;
}

/* ENXIO: a FIFO that nobody reads, or a missing device: not a regular file, like other FIFOs and
 * devices. */
static int open_error(void)
{
	return errno == ENXIO ? -EINVAL : -errno;
}

static int open_as_user(void *context)
{
	int fd = open(context, OPEN_FLAGS, 0600);

	return fd < 0 ? open_error() : check_and_settle(fd);
}

int audit_file_open(const struct identity *id, const char *path)
{
	if (path[0] == 0)
		return open_nameless();
	return identity_run(id, open_as_user, (void *)(uintptr_t)path);
}

int audit_file_open_own(const char *path)
{
	struct open_how how = {.flags = OPEN_FLAGS, .mode = 0600, .resolve = RESOLVE_NO_SYMLINKS};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? open_error() : check_and_settle((int)fd);
}
