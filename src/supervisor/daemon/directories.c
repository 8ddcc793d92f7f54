/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon keeps its files: directories that nobody else may write in, the lock that
 * permits one daemon for each state directory, and the audit log. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "supervisor/events/audit_file.h"
#include "supervisor/events/generations.h"
#include "supervisor/daemon/daemon_state.h"

#define LOCK_MS 2000 /* for the processes of a killed daemon to exit */
#define LOCK_RETRY_MS 5

/* Makes the directory if it is missing; only its owner and root may write in it. Returns the
 * descriptor. */
static int directory(const char *parent, const char *name, mode_t mode)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", parent, name[0] ? "/" : "", name);
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		die(STATUS_FAILED, "%s cannot be made: %s", path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		die(STATUS_FAILED, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		die(STATUS_FAILED,
		        "%s can be written by others than the daemon: that would let them decide "
		        "what it trusts",
		        path);
	return fd;
}

/* A killed daemon's lock is held for a moment by a child that was about to become a role. */
static int lock_within(int fd, int64_t patience_ms)
{
	int64_t end_ms = clock_monotonic_ms() + patience_ms;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_monotonic_ms() >= end_ms)
			return -errno;
		poll(NULL, 0, LOCK_RETRY_MS);
	}
	return 0;
}

static void lock_state(struct daemon *d, int state)
{
	int rc;

	d->lock = openat(state, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (d->lock < 0)
		die(STATUS_FAILED, "%s/lock: %s", d->state, strerror(errno));
	rc = lock_within(d->lock, LOCK_MS);
	if (rc)
		die(STATUS_FAILED,
		        "another vethguardd uses %s already, or its lock cannot be taken: %s",
		        d->state, strerror(-rc));
}

static void open_recording(struct daemon *d)
{
	int fd = takeover_is_active(&d->takeover)
	                 ? journal_generation_new(d->state_directory, &d->set)
	                 : journal_generation_last(d->state_directory, &d->set);
	int rc = fd < 0 ? fd : recording_keep_at(&d->supervisor, fd);

	if (rc)
		die(STATUS_FAILED, "events cannot be kept in %s: %s", d->state, strerror(-rc));
	close(fd);
}

void daemon_open_directories(struct daemon *d)
{
	struct attachments *all = &d->attachments;
	int data;

	d->state_directory = directory(d->state, "", 0755);
	if (!takeover_is_active(&d->takeover))
		lock_state(d, d->state_directory);
	open_recording(d);
	all->state = directory(d->state, "sandboxes", 0700);
	close(directory(d->state, "netns", 0700));
	d->supervisor.names = directory(d->state, "names", 0700);
	d->supervisor.limits = directory(d->state, "limits", 0700);
	d->leases = directory(d->state, "leases", 0700);
	snprintf(all->pins, sizeof(all->pins), "%s/netns", d->state);
	data = directory(d->data, "", 0755);
	close(data);
	all->bundles.dir = directory(d->data, "bundles", 0755);
	snprintf(all->bundles.path, sizeof(all->bundles.path), "%s/bundles", d->data);
	d->supervisor.bundles = all->bundles.path;
	d->supervisor.ca = directory(d->data, "ca", 0755);
}

/* Makes only the directory of the default path: any other is the operator's. */
void daemon_open_log(struct daemon *d)
{
	struct attachments *all = &d->attachments;
	int fd, rc;

	if (!all->audit_path[0]) {
		close(directory("/var/log", "vethguard", 0750));
		snprintf(all->audit_path, sizeof(all->audit_path), DAEMON_AUDIT);
	}
	fd = audit_file_open_own(all->audit_path);
	if (fd < 0)
		die(STATUS_FAILED, "audit file %s: %s", all->audit_path, strerror(-fd));
	rc = recording_start(&d->supervisor, all->audit_path, fd, NULL);
	if (rc)
		die(STATUS_FAILED, "the recorder cannot be told of %s: %s", all->audit_path,
		        strerror(-rc));
}
