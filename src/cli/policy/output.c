/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a policy that a command has made: to the standard output, or to a new file. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/policy/policy.h"

static bool write_all(int fd, struct slice text)
{
	while (text.n > 0) {
		ssize_t n = write(fd, text.p, text.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text = slice_of(text.p + n, text.n - (size_t)n);
	}
	return true;
}

static bool complain(const char *path, const char *why)
{
	char shown[512];

	fprintf(stderr, "vethguard: error: %s: %s\n",
	        slice_escape(slice_from_string(path), shown, sizeof(shown)), why);
	return false;
}

static bool write_file(const char *path, struct slice text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644), error = 0;

	if (fd < 0)
		return complain(path, errno == EEXIST ? "already exists and is not overwritten; "
		                                        "name another file with --output"
		                                      : strerror(errno));
	if (!write_all(fd, text) || fsync(fd) < 0)
		error = errno;
	if (close(fd) < 0 && error == 0)
		error = errno;
	if (error == 0)
		return true;
	unlink(path);
	return complain(path, strerror(error));
}

bool policy_write(const char *path, struct slice text)
{
	if (strcmp(path, "-") != 0)
		return write_file(path, text);
	return write_all(STDOUT_FILENO, text) || complain("the standard output", strerror(errno));
}
