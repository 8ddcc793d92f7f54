/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/idle_cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/wire/message.h"

/* Fourth field of /proc/loadavg (proc_loadavg(5)): those that run or could, and all there are. */
static unsigned running(void)
{
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	unsigned count = 0;
	char text[128];
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%*s %*s %*s %u/", &count) == 1 ? count : 0;
}

uint16_t idle_cpu_beside(void)
{
	int cpu = sched_getcpu();

	return cpu >= 0 && cpu < MESSAGE_CPU_ANY && running() == 1 ? (uint16_t)cpu
	                                                           : MESSAGE_CPU_ANY;
}
