/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a policy that a command has made: to the standard output, or to a new file. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/policy/policy.h"
#include "vethguard/base/fd.h"

static bool complain(const char *path, const char *why)
{
	char shown[512];

	fprintf(stderr, "vethguard: error: %s: %s\n",
	        slice_escape(slice_from_string(path), shown, sizeof(shown)), why);
	return false;
}

static bool write_file(const char *path, struct slice text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644), rc;

	if (fd < 0)
		return complain(path, errno == EEXIST ? "already exists and is not overwritten; "
		                                        "name another file with --output"
		                                      : strerror(errno));
	rc = fd_write_all(fd, text);
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0)
		return true;
	unlink(path);
	return complain(path, strerror(-rc));
}

bool policy_write(const char *path, struct slice text)
{
	int rc;

	if (strcmp(path, "-") != 0)
		return write_file(path, text);
	rc = fd_write_all(STDOUT_FILENO, text);
	return rc == 0 || complain("the standard output", strerror(-rc));
}
