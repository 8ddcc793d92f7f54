/* SPDX-License-Identifier: Apache-2.0 */
/* The means of those who change what the sandbox sees: files read and written, scratch files, and
 * mounts attached over others. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "vethguard/base/fd.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"

int mounts_read(const char *path, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MOUNTS_FILE_MAX)
		rc = -EFBIG;
	while (rc == 0 && n > 0) {
		uint8_t *room = buf_reserve(out, 65536);

		n = room ? read(fd, room, 65536) : -1;
		if (n > 0)
			buf_commit(out, (size_t)n);
		else if (n < 0)
			rc = room ? -errno : -ENOBUFS;
	}
	close(fd);
	return rc;
}

int mounts_write(const char *path, struct slice bytes, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode), rc;

	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, bytes);
	if (rc == 0 && fchmod(fd, mode) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

int mounts_attach_at(const char *source, int target, bool read_only)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	unsigned flags = AT_EMPTY_PATH | AT_RECURSIVE;
	int tree = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int rc = 0;

	if (tree < 0)
		return -errno;
	if (read_only && mount_setattr(tree, "", flags, &attr, sizeof(attr)) != 0)
		rc = -errno;
	flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
	if (rc == 0 && move_mount(tree, "", target, "", flags) != 0)
		rc = -errno;
	close(tree);
	return rc;
}

int mounts_attach(const char *source, const char *target, bool read_only)
{
	int fd = open(target, O_PATH | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = mounts_attach_at(source, fd, read_only);
	close(fd);
	return rc;
}

int mounts_scratch(struct mounts *m, bool directory, mode_t mode, char *out, size_t out_size)
{
	int fd;

	snprintf(out, out_size, MOUNTS_SCRATCH "/%u", m->next++);
	if (directory)
		return mkdir(out, mode) != 0 || chmod(out, mode) != 0 ? -errno : 0;
	fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	fchmod(fd, mode);
	close(fd);
	return 0;
}

int mounts_replace(struct mounts *m, const char *target, struct slice bytes)
{
	char path[64];
	int rc = mounts_scratch(m, false, 0644, path, sizeof(path));

	if (rc == 0)
		rc = mounts_write(path, bytes, 0644);
	return rc == 0 ? mounts_attach(path, target, true) : rc;
}
