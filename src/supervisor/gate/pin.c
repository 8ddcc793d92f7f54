/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins: a namespace bound to a file lives without any process. The existence of the file proves
 * nothing: unmounting leaves an empty file, so what was opened is verified before it is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/nsfs.h>

#include "vethguard/base/log.h"
#include "supervisor/gate/private.h"

int gate_pin(const struct gate *gate, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char from[64];
	int rc;

	if (fd < 0)
		return -errno;
	close(fd);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", gate->netns);
	if (mount(from, path, NULL, MS_BIND, NULL) == 0)
		return 0;
	rc = -errno;
	unlink(path);
	return rc;
}

static int unpin(const char *path)
{
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return -errno;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Returns the descriptor, or -errno; -EINVAL: a file, but no network namespace. */
static int open_pin(const char *path)
{
	struct statfs fs;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC &&
	        ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET)
		return fd;
	close(fd);
	return -EINVAL;
}

static int in_gate_packets(void *context)
{
	struct gate *gate = context;

	gate->step = "listening for dropped packets";
	return gate_open_packets(gate);
}

int gate_listen_early(struct gate *gate, const char *path)
{
	int rc;

	gate->netns = open_pin(path);
	rc = gate->netns < 0 ? gate->netns : gate_listen(gate);
	if (rc && gate->netns >= 0)
		close(gate->netns);
	if (rc)
		gate->netns = -1;
	return rc;
}

int gate_adopt(struct gate *gate, struct gate_host *host, const char *path)
{
	int fd = gate->netns < 0 ? open_pin(path) : gate->netns, mended, rc;

	gate->host = host;
	if (fd < 0) {
		gate->step = "opening the pin";
		snprintf(gate->why, sizeof(gate->why), "the gate's pin %s %s", path,
		        fd == -EINVAL ? "holds no network namespace: it was unmounted"
		                      : strerror(-fd));
		return fd;
	}
	gate->netns = fd;
	mended = gate_verify(gate);
	if (mended < 0) {
		gate_close(gate);
		return mended;
	}
	rc = gate->packets < 0 ? netns_run(gate->netns, in_gate_packets, gate) : 0;
	if (!rc && !gate->listener_count)
		rc = gate_listen(gate);
	if (!rc)
		return mended;
	snprintf(gate->why, sizeof(gate->why), "%s: %s", gate->step, strerror(-rc));
	gate_close(gate);
	return rc;
}

int gate_delete_link(void *context)
{
	struct netlink *nl;
	int rc = netlink_open(&nl);

	(void)context;
	if (rc)
		return rc;
	rc = netlink_link_delete(nl, GATE_LINK);
	netlink_close(nl);
	return rc;
}

/* Others may still hold sockets of the namespace, and so the namespace; the link goes now. */
static int remove_link(const struct gate *gate)
{
	int rc = 0;

	if (gate->kind == GATE_DIVERT && gate->host_link[0])
		rc = netlink_link_delete(gate->host->nl, gate->host_link);
	else if (gate->kind != GATE_DIVERT && gate->netns >= 0)
		rc = netns_run(gate->netns, gate_delete_link, NULL);
	return rc == -ENODEV ? 0 : rc;
}

/* Deletes the tables with the last diverted interface, except those of one that stays shut. */
static void tidy(struct gate_host *host)
{
	int rc = host->diverted ? 0 : divert_tidy(host->divert);

	if (rc)
		log_warn("tables \"%s\" cannot be removed: %s", DIVERT_TABLE, strerror(-rc));
}

int gate_remove(struct gate *gate, struct gate_host *host, const char *path, bool closed)
{
	const struct divert_spec spec = gate_divert_spec(gate);
	int rc = 0, failed;

	gate_unwatch(gate); /* it would repair what is removed here */
	if (gate->kind == GATE_DIVERT && gate->device[0]) { /* else no interface was accepted */
		gate->host = host;
		rc = closed ? divert_shut(host->divert, &spec) : divert_remove(host->divert, &spec);
	}
	failed = remove_link(gate);
	rc = rc ? rc : failed;
	failed = path ? unpin(path) : 0;
	gate_close(gate);
	if (gate->kind == GATE_DIVERT)
		tidy(host);
	return rc ? rc : failed;
}
