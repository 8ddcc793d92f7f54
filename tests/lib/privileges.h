/* SPDX-License-Identifier: Apache-2.0 */
/* The tests need no root: an ordinary user gets a user namespace of their own. */
#ifndef VETHGUARD_TESTS_LIB_PRIVILEGES_H
#define VETHGUARD_TESTS_LIB_PRIVILEGES_H

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Enters a network namespace of our own; false where not even a user namespace is permitted. */
static bool privileges_for_namespaces(void)
{
	char map[64];
	uid_t uid = geteuid();
	int fd;

	if (uid == 0)
		return unshare(CLONE_NEWNET) == 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, map, strlen(map)) > 0 && close(fd) == 0;
}

#endif
