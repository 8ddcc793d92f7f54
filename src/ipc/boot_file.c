/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static bool read_boot_id(char out[BOOT_ID_BYTES])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, BOOT_ID_BYTES);

	if (fd >= 0)
		close(fd);
	return n == BOOT_ID_BYTES;
}

static int make(int fd, uint32_t layout, size_t size)
{
	struct boot_head head = {.layout = layout};

	if (!read_boot_id(head.boot_id))
		return -EIO;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	ssize_t done = pwrite(fd, &head, sizeof(head), 0);
	if (done == (ssize_t)sizeof(head))
		return 0;
	return done < 0 ? -errno : -ENOSPC;
}

int boot_file_create(int directory, const char *name, uint32_t layout, size_t size)
{
	int fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = make(fd, layout, size);
	if (rc == 0)
		return fd;
	unlinkat(directory, name, 0);
	close(fd);
	return rc;
}

int boot_file_check(int fd, off_t size, uint32_t layout, size_t wanted)
{
	struct boot_head head;
	char boot_id[BOOT_ID_BYTES];

	if (size != (off_t)wanted)
		return -EBADMSG;
	ssize_t n = pread(fd, &head, sizeof(head), 0);
	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(head) || head.layout != layout)
		return -EBADMSG;
	if (!read_boot_id(boot_id))
		return -EIO;
	return memcmp(head.boot_id, boot_id, BOOT_ID_BYTES) == 0 ? 0 : -EBADMSG;
}
