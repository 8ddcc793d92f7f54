/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new file gets its name only when the keeper has filled it and synced it to the disk: if the
 * keeper or the machine dies before, no incomplete root CA is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "supervisor/daemon/root_file.h"

#define NAME "root.key"
#define FRESH "root.key.new"
#define NEXT "root.key.next"
#define FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* Returns why the file is refused, or NULL. */
static const char *objection(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "cannot be examined";
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	if (st.st_uid != geteuid())
		return "belongs to somebody else";
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return "can be read by others: if nobody has read it, chmod 0600 fixes that";
	return st.st_nlink == 1 ? NULL : "has a second hard link: remove one of the two names";
}

int root_file_open(int dir)
{
	int fd = openat(dir, NAME, O_RDONLY | FLAGS);
	const char *why;

	if (fd < 0 && errno == ENOENT) {
		if (unlinkat(dir, FRESH, 0) < 0 && errno != ENOENT)
			return -errno;
		fd = openat(dir, FRESH, O_RDWR | O_CREAT | O_EXCL | FLAGS, 0600);
	}
	if (fd < 0)
		return -errno;
	why = objection(fd);
	if (!why)
		return fd;
	log_error("the root CA's file " NAME " %s", why);
	close(fd);
	return -EPERM;
}

int root_file_keep(int dir)
{
	if (renameat2(dir, FRESH, dir, NAME, RENAME_NOREPLACE) < 0)
		return errno == ENOENT ? 0 : -errno;
	return fsync(dir) < 0 ? -errno : 0;
}

int root_file_next(int dir)
{
	int fd;

	if (unlinkat(dir, NEXT, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, NEXT, O_RDWR | O_CREAT | O_EXCL | FLAGS, 0600);
	return fd < 0 ? -errno : fd;
}

int root_file_replace(int dir)
{
	int rc = renameat(dir, NEXT, dir, NAME) < 0 ? -errno : 0;

	if (rc) /* it holds a key */
		root_file_forget_next(dir);
	return rc ? rc : fsync(dir) < 0 ? -errno : 0;
}

void root_file_forget_next(int dir)
{
	(void)!unlinkat(dir, NEXT, 0);
}

int root_file_publish(int dir, const char *pem)
{
	size_t n = strlen(pem);
	int fd, rc = 0;

	if (unlinkat(dir, "root.pem.new", 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, "root.pem.new", O_WRONLY | O_CREAT | O_EXCL | FLAGS, 0644);
	if (fd < 0)
		return -errno;
	if (write(fd, pem, n) != (ssize_t)n || fchmod(fd, 0644) < 0)
		rc = -EIO;
	close(fd);
	if (!rc && renameat(dir, "root.pem.new", dir, "root.pem") < 0)
		rc = -errno;
	return rc;
}
