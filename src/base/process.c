/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/process.h"

#define START_TIME_FIELD 22
#define STAT_MAX 1024

int process_start_time(pid_t pid, uint64_t *out)
{
	char path[64], text[STAT_MAX], *p, *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = 0;
	p = strrchr(text, ')'); /* the name before it may contain anything, also parentheses */
	for (int field = 2; p && field < START_TIME_FIELD; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -EBADMSG;
	errno = 0;
	*out = strtoull(p + 1, &end, 10);
	return errno || end == p + 1 ? -EBADMSG : 0;
}

__attribute__((no_sanitize_address)) void process_reset_signals(void)
{
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			sigaction(s, &normal, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
