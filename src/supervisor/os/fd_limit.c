/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/os/fd_limit.h"

#define WANTED_EACH (2 * FD_LIMIT_EACH)
#define WANTED_OF_ITS_OWN 1024
#define WANTED_LEFT (FD_LIMIT_EACH + FD_LIMIT_KEPT)

void fd_limit_raise(unsigned sandboxes)
{
	const rlim_t wanted = (rlim_t)sandboxes * WANTED_EACH + WANTED_OF_ITS_OWN;
	const struct rlimit raised = {wanted, wanted};
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	if (files.rlim_max < wanted && setrlimit(RLIMIT_NOFILE, &raised) == 0)
		return;
	if (files.rlim_max < wanted)
		log_info("at most %llu files can be open, which is enough for about %llu sandboxes",
		        (unsigned long long)files.rlim_max,
		        (unsigned long long)files.rlim_max / FD_LIMIT_EACH);
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		log_warn("the limit of open files stays at its default: %s", strerror(errno));
}

/* proc_pid_fd(5): since Linux 6.2 the folder's size is the number of descriptors. 0: unknown. */
static uint64_t count_open(void)
{
	struct stat st;

	return stat("/proc/self/fd", &st) < 0 ? 0 : (uint64_t)st.st_size;
}

static bool can_open_as_many(void)
{
	int tried[WANTED_LEFT];
	size_t n = 0;

	for (int fd = eventfd(0, EFD_CLOEXEC); fd >= 0;) {
		tried[n++] = fd;
		if (n == WANTED_LEFT)
			break;
		fd = fcntl(tried[0], F_DUPFD_CLOEXEC, 0);
	}
	for (size_t i = n; i--;)
		close(tried[i]);
	return n == WANTED_LEFT;
}

bool fd_limit_left(void)
{
	const uint64_t open = count_open(), limit = fd_limit_get();

	return open ? limit >= WANTED_LEFT && limit - WANTED_LEFT >= open : can_open_as_many();
}

uint64_t fd_limit_get(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) < 0 ? 0 : files.rlim_cur;
}
