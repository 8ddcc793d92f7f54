/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/open_files.h"

#define WANTED_EACH (2 * OPEN_FILES_EACH)
#define WANTED_OF_ITS_OWN 1024
#define TRIED (OPEN_FILES_EACH + OPEN_FILES_KEPT)

void open_files_raise(unsigned sandboxes)
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
		        (unsigned long long)files.rlim_max / OPEN_FILES_EACH);
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		log_warn("the limit of open files stays at its default: %s", strerror(errno));
}

/* By having them: the kernel tells nobody how many there are, and the limit is not the only one. */
bool open_files_left(void)
{
	int tried[TRIED];
	size_t n = 0;

	for (int fd = eventfd(0, EFD_CLOEXEC); fd >= 0;) {
		tried[n++] = fd;
		if (n == TRIED)
			break;
		fd = fcntl(tried[0], F_DUPFD_CLOEXEC, 0);
	}
	for (size_t i = n; i--;)
		close(tried[i]);
	return n == TRIED;
}

uint64_t open_files_limit(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) < 0 ? 0 : files.rlim_cur;
}
