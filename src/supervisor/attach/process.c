/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pids are reused. So a process is held by a pidfd first, and everything that is read by pid counts
 * only if the process still existed afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/process.h"
#include "supervisor/attach/process.h"
#include "supervisor/os/local_file.h"

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

int attach_process_open(pid_t pid, uint64_t start_time)
{
	int fd = pidfd_open(pid, 0);
	uint64_t now = 0;
	int rc;

	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	rc = process_start_time(pid, &now);
	if (!rc && (has_ended(fd) || (start_time && now != start_time)))
		rc = -ESRCH;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int open_path(void *context)
{
	int fd = open(context, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

int attach_process_netns(const struct identity *id, pid_t pid, int pidfd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = identity_run(id, open_path, path);
	if (!has_ended(pidfd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ESRCH;
}

/* True for the usual paths of network namespaces: proc(5) and ip-netns(8), where only root makes
 * files and mounts. Opening them never hangs. */
static bool is_usual(const char *path)
{
	static const char named[] = "/run/netns/";
	int pid, end = -1;

	if (strncmp(path, named, strlen(named)) == 0)
		return !strchr(path + strlen(named), '/');
	return sscanf(path, "/proc/%d/ns/net%n", &pid, &end) == 1 && end >= 0 && !path[end];
}

static int open_local(void *context)
{
	return local_file_open(context);
}

int attach_netns_open(const struct identity *id, const char *path)
{
	int fd = identity_run(id, is_usual(path) ? open_path : open_local, (void *)(uintptr_t)path);

	if (fd < 0 || ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET)
		return fd;
	close(fd);
	return -EINVAL;
}

static bool is_netns_of(const char *path, const struct stat *netns, bool unknown)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return unknown;
	return st.st_dev == netns->st_dev && st.st_ino == netns->st_ino;
}

bool attach_process_is_in_own_netns(pid_t pid, int pidfd)
{
	static struct stat own; /* the daemon's, which never moves */
	char path[64];
	struct stat st;

	if (!own.st_ino && stat("/proc/self/ns/net", &own) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	return stat(path, &st) == 0 && st.st_dev == own.st_dev && st.st_ino == own.st_ino &&
	       (pidfd < 0 || !has_ended(pidfd));
}

bool attach_netns_is_own(int netns)
{
	struct stat st;

	/* If the daemon may not examine the first process, nobody gets its namespace through the
	 * daemon. */
	return fstat(netns, &st) < 0 || is_netns_of("/proc/self/ns/net", &st, true) ||
	       is_netns_of("/proc/1/ns/net", &st, false);
}
