/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task of the sandbox that waits for the answer to its call. Whatever is read of the task may
 * change at once, since its other threads, and others that share its memory, continue to run. So
 * everything is read once, and the copy is what is judged and used.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cli/guest/sockets.h"
#include "cli/commands.h"

#ifndef PIDFD_THREAD /* Linux 6.9 */
#define PIDFD_THREAD O_EXCL
#endif

#define STATUS_MAX 8192

static struct caller_ids own;

void caller_start(void)
{
	own.uid = geteuid();
	own.gid = getegid();
	own.group_count = getgroups(CALLER_GROUPS_MAX, own.groups);
}

/* Returns the rest of a line of proc_pid_status(5) after its colon, or NULL if there is none. */
static const char *status_line(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

static int read_status(pid_t tid, char out[STATUS_MAX])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, out, STATUS_MAX - 1);
	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? 0 : -ESRCH;
}

static pid_t leader(pid_t tid)
{
	char text[STATUS_MAX];
	const char *line = read_status(tid, text) == 0 ? status_line(text, "\nTgid:") : NULL;

	return line ? (pid_t)strtol(line, NULL, 10) : tid;
}

/* Before Linux 6.9 a pidfd refers to a process: for a thread with a descriptor table of its own,
 * the table of the process's first thread is looked at, and what is found there is judged. */
static int open_task(pid_t tid)
{
	int fd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, leader(tid), 0);
	return fd < 0 ? -errno : fd;
}

int caller_take(const struct caller *c, int fd)
{
	int copy = (int)syscall(SYS_pidfd_getfd, c->pidfd, fd, 0);

	if (copy >= 0)
		return copy;
	return errno == EPERM ? -EACCES : -errno;
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &n) == 0 ? value : -errno;
}

int caller_open(struct caller *c)
{
	int flags;

	c->pidfd = open_task(c->tid);
	if (c->pidfd < 0)
		return c->pidfd;
	c->socket = caller_take(c, (int)c->args[0]);
	if (c->socket < 0)
		return c->socket;
	c->domain = option(c->socket, SO_DOMAIN);
	c->type = option(c->socket, SO_TYPE);
	flags = fcntl(c->socket, F_GETFL);
	if (c->domain < 0 || c->type < 0 || flags < 0)
		return c->domain == -EBADF ? -EBADF : -ENOTSOCK;
	c->blocks = (flags & O_NONBLOCK) == 0;
	return 0;
}

void caller_close(struct caller *c)
{
	if (c->socket >= 0)
		close(c->socket);
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->socket = c->pidfd = -1;
}

/* The directory of its threads has one link for each thread besides the usual two. */
bool caller_is_alone(const struct caller *c)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)c->tid);
	return stat(path, &st) == 0 && st.st_nlink == 3;
}

bool caller_is_there(const struct caller *c)
{
	return ioctl(c->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->id) == 0;
}

bool caller_has_signal(const struct caller *c)
{
	static const char *const keys[] = {"\nSigPnd:", "\nShdPnd:", "\nSigBlk:"};
	unsigned long long sets[3] = {0};
	char text[STATUS_MAX];

	if (read_status(c->tid, text) != 0)
		return false;
	for (size_t i = 0; i < 3; i++) {
		const char *line = status_line(text, keys[i]);

		sets[i] = line ? strtoull(line, NULL, 16) : 0;
	}
	return ((sets[0] | sets[1]) & ~sets[2]) != 0;
}

int caller_read(const struct caller *c, uint64_t address, void *out, size_t n)
{
	struct iovec here = {out, n}, there = {(void *)(uintptr_t)address, n};

	return process_vm_readv(c->tid, &here, 1, &there, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}

int caller_write(const struct caller *c, uint64_t address, const void *bytes, size_t n)
{
	struct iovec here = {(void *)(uintptr_t)bytes, n};
	struct iovec there = {(void *)(uintptr_t)address, n};

	return process_vm_writev(c->tid, &here, 1, &there, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}

/* Of the four numbers (real, effective, saved, file system) the effective one is what a peer is
 * told. */
static unsigned effective(const char *line)
{
	char *end;

	strtoul(line, &end, 10);
	return (unsigned)strtoul(end, NULL, 10);
}

int caller_ids(const struct caller *c, struct caller_ids *out)
{
	char text[STATUS_MAX], *end;
	const char *uid, *gid, *groups;

	if (read_status(c->tid, text) != 0)
		return -ESRCH;
	uid = status_line(text, "\nUid:");
	gid = status_line(text, "\nGid:");
	groups = status_line(text, "\nGroups:");
	if (!uid || !gid || !groups)
		return -ESRCH;
	*out = (struct caller_ids){.uid = effective(uid), .gid = effective(gid)};
	for (; out->group_count < CALLER_GROUPS_MAX; groups = end) {
		unsigned long group;

		while (*groups == ' ' || *groups == '\t')
			groups++;
		group = strtoul(groups, &end, 10);
		if (end == groups || *groups < '0' || *groups > '9')
			break;
		out->groups[out->group_count++] = (gid_t)group;
	}
	return 0;
}

static bool is_own(const struct caller_ids *ids)
{
	return ids->uid == own.uid && ids->gid == own.gid;
}

/* Uses the bare system calls, which change the ids of this thread; the C library's functions change
 * all threads. The kernel may then let processes with the new id trace this one, so
 * PR_SET_DUMPABLE (prctl(2)) forbids it again. */
static int take_ids(const struct caller_ids *ids)
{
	if (syscall(SYS_setgroups, (size_t)ids->group_count, ids->groups) != 0 ||
	        syscall(SYS_setresgid, -1, ids->gid, -1) != 0 ||
	        syscall(SYS_setresuid, -1, ids->uid, -1) != 0)
		return -errno;
	prctl(PR_SET_DUMPABLE, 0);
	return 0;
}

int caller_lend(const struct caller_ids *ids)
{
	int rc = is_own(ids) ? 0 : take_ids(ids);

	if (rc != 0)
		caller_return();
	return rc;
}

void caller_return(void)
{
	if (geteuid() == own.uid && getegid() == own.gid)
		return;
	if (syscall(SYS_setresuid, -1, own.uid, -1) != 0 || take_ids(&own) != 0)
		_exit(CLI_FAILED); /* init ends, and with it everything in the sandbox */
}
