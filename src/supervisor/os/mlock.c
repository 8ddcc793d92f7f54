/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All processes that map a file share its pages. So one locked mapping, in a process that lives as
 * long as the daemon, is enough for all roles.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/jail/spawn.h"
#include "supervisor/os/mlock.h"

static size_t kept;

static int keep_open_file(int fd)
{
	struct stat st;
	void *pages;
	size_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	n = (size_t)st.st_size;
	if (n > MLOCK_MAX - kept)
		return -ENOMEM;
	pages = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return -errno;
	if (mlock2(pages, n, 0) < 0) {
		int rc = -errno;

		munmap(pages, n);
		return rc == -EAGAIN || rc == -EPERM ? -ENOMEM : rc;
	}
	kept += n;
	return 0;
}

int mlock_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error;

	if (fd < 0)
		return -errno;
	error = keep_open_file(fd);
	close(fd);
	return error;
}

/* Skips the program itself, which has no name here, and the kernel's vDSO, which has no path. */
static int keep_library(struct dl_phdr_info *library, size_t size, void *context)
{
	int *error = context;

	(void)size;
	if (library->dlpi_name[0] == '/' && !*error)
		*error = mlock_file(library->dlpi_name);
	return 0;
}

void mlock_programs(const char *const names[])
{
	int rc = mlock_file("/proc/self/exe");
	char path[PATH_MAX];

	dl_iterate_phdr(keep_library, &rc);
	for (; *names && !rc; names++) {
		rc = spawn_find(*names, path, sizeof(path));
		rc = rc ? rc : mlock_file(path);
	}
	if (rc)
		log_info(
		        "programs and libraries are not kept in memory (%s): where it gets scarce, "
		        "attaching waits for the disk",
		        strerror(-rc));
}
