/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Started through sudo, the supervisor could create and append to any file there is, and the path
 * comes from the user. So the open happens with that user's rights. The last part of the path may
 * not be a symbolic link even so: the sandboxed command often runs as the same user and may put one
 * there, to have log lines appended to a file of its choice.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/audit_file.h"

#define OPEN_FLAGS (O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK)

static int check_and_settle(int fd)
{
	struct stat st;
	int error = 0;

	if (fstat(fd, &st) < 0)
		error = -errno;
	else if (!S_ISREG(st.st_mode))
		error = -EINVAL;
	else if (fcntl(fd, F_SETFL, O_APPEND) <
	         0) /* O_NONBLOCK was only for not waiting at a fifo */
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

static int make_directories(const char *path)
{
	char part[PATH_MAX];

	if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
		return -ENAMETOOLONG;
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static int open_as_user(void *context)
{
	const char *path = context;
	int fd = open(path, OPEN_FLAGS, 0600);

	if (fd < 0 && errno == ENOENT) {
		int error = make_directories(path);
		if (error)
			return error;
		fd = open(path, OPEN_FLAGS, 0600);
	}
	return fd < 0 ? -errno : check_and_settle(fd);
}

int audit_file_open(const struct identity *id, const char *path)
{
	if (path[0] == 0) {
		int fd = memfd_create("vethguard-audit", MFD_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	return identity_run(id, open_as_user, (void *)(uintptr_t)path);
}
