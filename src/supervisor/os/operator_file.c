/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/os/operator_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"

static const char *objection(int fd, bool is_secret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "cannot be examined";
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return "belongs to somebody else than root";
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return "can be written by others: if nobody has, 'chmod go-w' repairs that";
	if (is_secret && (st.st_mode & (S_IRGRP | S_IROTH)))
		return "is secret, and others can read it: if nobody has, 'chmod 0600' repairs "
		       "that";
	return NULL;
}

int operator_file_open(
        const char *key, const char *path, bool is_secret, char *why, size_t why_size)
{
	int fd = local_file_open(path);
	const char *wrong = fd < 0 ? NULL : objection(fd, is_secret);

	if (fd >= 0 && !wrong)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(why, why_size, "%s: %s %s", key, path,
	        wrong                      ? wrong
	        : fd == LOCAL_FILE_UNKNOWN ? "is on a file system that may not answer"
	        : fd == -EINVAL            ? "is not a regular file"
	                                   : strerror(-fd));
	return fd < 0 ? fd : -EPERM;
}
