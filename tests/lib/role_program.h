/* SPDX-License-Identifier: Apache-2.0 */
/* role_program: a test becomes one of the confined programs of this build, as a supervisor starts
 * it. Without root it does so in a user namespace of its own, like a rootless supervisor. */
#ifndef VETHGUARD_TESTS_LIB_ROLE_PROGRAM_H
#define VETHGUARD_TESTS_LIB_ROLE_PROGRAM_H

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/ipc/peer.h"

static inline void role_program_map_ids(uid_t uid, gid_t gid)
{
	const char *const files[] = {
	        "/proc/self/setgroups", "/proc/self/uid_map", "/proc/self/gid_map"};
	char text[3][64];

	snprintf(text[0], sizeof(text[0]), "deny");
	snprintf(text[1], sizeof(text[1]), "0 %u 1", uid);
	snprintf(text[2], sizeof(text[2]), "0 %u 1", gid);
	for (int i = 0; i < 3; i++) {
		int fd = open(files[i], O_WRONLY);

		if (fd < 0 || write(fd, text[i], strlen(text[i])) < 0)
			_exit(77);
		close(fd);
	}
}

/* In the child: becomes build/.../bin/NAME; this test lies in build/.../tests/unit/MODULE/.
 * control: its pair to the supervisor; environment: its one variable. */
static inline void role_program_exec(const char *name, int control, char *environment)
{
	char path[PATH_MAX], *argv[] = {path, NULL}, *envp[] = {environment, NULL};
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (n < 0)
		_exit(76);
	path[n] = 0;
	for (int up = 0; up < 4; up++)
		*strrchr(path, '/') = 0;
	strcat(strcat(path, "/bin/"), name);
	if (uid != 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		role_program_map_ids(uid, gid);
	}
	dup2(control, IPC_SUPERVISOR_FD);
	execve(path, argv, envp);
	_exit(76);
}

#endif
