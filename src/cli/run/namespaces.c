/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short-lived child unshares the namespaces; vethguard writes the child's id maps and opens the
 * namespaces through /proc. From then on the descriptors hold them and the child is not needed any
 * more. So the network namespace exists before the supervisor is asked to connect it, and the
 * sandbox's init starts when everything is ready.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/namespaces.h"

#define MAP_TEXT_MAX 4096

void namespaces_close(struct namespaces *ns)
{
	int *fds[] = {&ns->user, &ns->net, &ns->ipc};

	for (size_t i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int write_map(pid_t pid, const char *which, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	return privilege_write_map(path, text);
}

/* Every id that exists here keeps its number inside. */
static int identity_map(const char *own, char out[MAP_TEXT_MAX])
{
	FILE *file = fopen(own, "re");
	unsigned inside, outside, count;
	size_t n = 0;

	if (!file)
		return -errno;
	while (fscanf(file, "%u %u %u", &inside, &outside, &count) == 3 && n < MAP_TEXT_MAX - 64)
		n += (size_t)snprintf(
		        out + n, MAP_TEXT_MAX - n, "%u %u %u\n", inside, inside, count);
	fclose(file);
	return n > 0 ? 0 : -EINVAL;
}

static int map_ids(pid_t pid, const struct privilege *privilege, const struct run_user *user)
{
	char uids[MAP_TEXT_MAX], gids[MAP_TEXT_MAX];
	int rc = 0;

	if (privilege->rootless) {
		snprintf(uids, sizeof(uids), "%u 0 1", (unsigned)user->uid);
		snprintf(gids, sizeof(gids), "%u 0 1", (unsigned)user->gid);
	} else {
		rc = identity_map("/proc/self/uid_map", uids);
		if (rc == 0)
			rc = identity_map("/proc/self/gid_map", gids);
	}
	if (rc == 0)
		rc = write_map(pid, "uid_map", uids);
	return rc == 0 ? write_map(pid, "gid_map", gids) : rc;
}

static int open_namespace(pid_t pid, const char *which, int *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, which);
	*out = open(path, O_RDONLY | O_CLOEXEC);
	return *out < 0 ? -errno : 0;
}

/* The child: it writes the errno of unshare as one byte, then waits until vethguard closes its end
 * of the pipe. */
static void holder(int report, int hold)
{
	unsigned char error = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0)
		error = (unsigned char)errno;
	if (write(report, &error, 1) == 1 && read(hold, &error, 1) >= 0)
		_exit(0);
	_exit(1);
}

static int take_namespaces(pid_t pid, int report, const struct privilege *privilege,
        const struct run_user *user, struct namespaces *out)
{
	unsigned char error = EPIPE;
	int rc;

	if (read(report, &error, 1) != 1 || error != 0)
		return -(int)error;
	rc = map_ids(pid, privilege, user);
	if (rc == 0)
		rc = open_namespace(pid, "user", &out->user);
	if (rc == 0)
		rc = open_namespace(pid, "net", &out->net);
	return rc == 0 ? open_namespace(pid, "ipc", &out->ipc) : rc;
}

int namespaces_make(const struct privilege *privilege, const struct run_user *user,
        struct namespaces *out, struct failure *failure)
{
	int report[2], hold[2], rc;
	pid_t pid;

	*out = (struct namespaces){-1, -1, -1};
	if (pipe2(report, O_CLOEXEC) != 0 || pipe2(hold, O_CLOEXEC) != 0)
		return failure_set(failure, -errno, "cannot make a pipe");
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		holder(report[1], hold[0]);
	}
	close(report[1]);
	close(hold[0]);
	rc = pid < 0 ? -errno : take_namespaces(pid, report[0], privilege, user, out);
	close(hold[1]);
	close(report[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (rc != 0) {
		namespaces_close(out);
		failure_set(failure, rc,
		        "cannot make the sandbox's namespaces (see 'vethguard doctor')");
	}
	return rc;
}
