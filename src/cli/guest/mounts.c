/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's view of the file system: the machine's own, except for what would lead around the
 * guard (directories of services, devices, parts of /proc and /sys that reach the kernel) and what
 * has to name the guard (trusted CAs, resolver, hosts). Runs in init, in a mount namespace of its
 * own, before privileges are dropped. The order matters; guest_mounts() has it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"

#define HOSTS_LINE_MAX 1024

int mounts_read(const char *path, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MOUNTS_FILE_MAX)
		rc = -EFBIG;
	while (rc == 0 && n > 0) {
		uint8_t *room = buf_reserve(out, 65536);

		n = room ? read(fd, room, 65536) : -1;
		if (n > 0)
			buf_commit(out, (size_t)n);
		else if (n < 0)
			rc = room ? -errno : -ENOBUFS;
	}
	close(fd);
	return rc;
}

int mounts_write(const char *path, struct slice bytes, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode), rc = 0;

	if (fd < 0)
		return -errno;
	while (bytes.n > 0 && rc == 0) {
		ssize_t n = write(fd, bytes.p, bytes.n);

		if (n < 0 && errno != EINTR)
			rc = -errno;
		if (n > 0)
			bytes = slice_of(bytes.p + n, bytes.n - (size_t)n);
	}
	if (rc == 0 && fchmod(fd, mode) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

int mounts_attach_at(const char *source, int target, bool read_only)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	unsigned flags = AT_EMPTY_PATH | AT_RECURSIVE;
	int tree = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int rc = 0;

	if (tree < 0)
		return -errno;
	if (read_only && mount_setattr(tree, "", flags, &attr, sizeof(attr)) != 0)
		rc = -errno;
	flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
	if (rc == 0 && move_mount(tree, "", target, "", flags) != 0)
		rc = -errno;
	close(tree);
	return rc;
}

int mounts_attach(const char *source, const char *target, bool read_only)
{
	int fd = open(target, O_PATH | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = mounts_attach_at(source, fd, read_only);
	close(fd);
	return rc;
}

int mounts_scratch(struct mounts *m, bool directory, mode_t mode, char *out, size_t out_size)
{
	int fd;

	snprintf(out, out_size, MOUNTS_SCRATCH "/%u", m->next++);
	if (directory)
		return mkdir(out, mode) != 0 || chmod(out, mode) != 0 ? -errno : 0;
	fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	fchmod(fd, mode);
	close(fd);
	return 0;
}

int mounts_replace(struct mounts *m, const char *target, struct slice bytes)
{
	char path[64];
	int rc = mounts_scratch(m, false, 0644, path, sizeof(path));

	if (rc == 0)
		rc = mounts_write(path, bytes, 0644);
	return rc == 0 ? mounts_attach(path, target, true) : rc;
}

static int mount_resolver(struct mounts *m, struct failure *failure)
{
	char text[256], a[IP_TEXT_MAX];
	size_t n = 0;
	int rc;

	if (m->plan->gate4.family != 0)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "nameserver %s\n",
		        ip_format(&m->plan->gate4, a));
	if (m->plan->gate6.family != 0)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "nameserver %s\n",
		        ip_format(&m->plan->gate6, a));
	n += (size_t)snprintf(text + n, sizeof(text) - n, "options timeout:2 attempts:2\n");
	rc = mounts_replace(m, "/etc/resolv.conf", slice_of(text, n));
	if (rc == -ENOENT)
		return failure_set(failure, 0,
		        "/etc/resolv.conf is missing or a link to nothing, so the sandbox cannot "
		        "be told its name server; an empty file will do: 'touch /etc/resolv.conf'");
	return rc == 0 ? 0 : failure_set(failure, rc, "cannot mount over /etc/resolv.conf");
}

/* Keeps only names of the machine itself. With another address from /etc/hosts a program would
 * connect without the name, but the policy judges names. The worker knows the file and answers for
 * the other names. */
static int mount_hosts(struct mounts *m, struct failure *failure)
{
	FILE *file = fopen("/etc/hosts", "re");
	char line[HOSTS_LINE_MAX];
	struct buf text;
	int rc = 0;

	if (!file)
		return 0;
	buf_init(&text, MOUNTS_FILE_MAX);
	while (rc == 0 && fgets(line, sizeof(line), file) != NULL) {
		size_t n = strcspn(line, " \t\r\n#");
		struct ip ip;

		if (n > 0 && ip_parse(slice_of(line, n), &ip) && ip_classify(&ip) == IP_LOOPBACK)
			rc = buf_append(&text, line, strlen(line));
	}
	fclose(file);
	if (rc == 0)
		rc = mounts_replace(m, "/etc/hosts", buf_slice(&text));
	buf_fini(&text);
	return rc == 0 ? 0 : failure_set(failure, rc, "cannot mount over /etc/hosts");
}

/* Shows only the sandbox's own processes.
 *
 * If root inside is root outside too (same ids), the switches of the whole machine are read-only;
 * the kernel therefore lets nobody inside mount another /proc, which would show them uncovered.
 * Rootless, they belong to nobody inside, so nothing is covered and the command may make sandboxes
 * of its own, with a /proc for the process namespace of each. */
static int mount_proc(const struct guest_plan *plan, struct failure *failure)
{
	static const char *const read_only[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
	        "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"};
	int rc;

	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
		return failure_set(failure, -errno,
		        "cannot mount /proc for the sandbox (inside a container, its own /proc "
		        "must not be masked)");
	for (size_t i = 0; !plan->rootless && i < sizeof(read_only) / sizeof(read_only[0]); i++) {
		rc = mounts_attach(read_only[i], read_only[i], true);
		if (rc != 0 && rc != -ENOENT)
			return failure_set(failure, rc, "cannot make %s read-only", read_only[i]);
	}
	return 0;
}

/* A fresh /sys shows only the sandbox's network. If that is not permitted, the machine's own is
 * used, read-only. */
static int mount_sys(struct failure *failure)
{
	int rc;

	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) ==
	        0)
		return 0;
	rc = mounts_attach("/sys", "/sys", true);
	return rc == 0 || rc == -ENOENT ? 0
	                                : failure_set(failure, rc, "cannot make /sys read-only");
}

static int mount_all(struct mounts *m, struct failure *failure)
{
	int rc = hide_mounts(m, failure);

	if (rc == 0)
		rc = trust_mounts(m, failure);
	if (rc == 0)
		rc = mount_resolver(m, failure);
	if (rc == 0)
		rc = mount_hosts(m, failure);
	if (rc == 0)
		rc = devices_mounts(m, failure);
	return rc;
}

int guest_mounts(const struct guest_plan *plan, int *pty, struct failure *failure)
{
	struct mounts m = {.plan = plan, .pty = -1};
	int rc = 0;

	umask(022);
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		rc = failure_set(failure, -errno, "cannot make a mount namespace");
	else if (mount("vethguard", MOUNTS_SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	                 "mode=755,size=64m") != 0)
		rc = failure_set(failure, -errno, "cannot mount a tmpfs");
	if (rc == 0)
		rc = mount_all(&m, failure);
	*pty = m.pty;
	if (rc == 0 && umount2(MOUNTS_SCRATCH, MNT_DETACH) != 0)
		rc = failure_set(failure, -errno, "cannot let the scratch tmpfs go");
	if (rc == 0)
		rc = mount_proc(plan, failure);
	if (rc == 0 && setns(plan->ns.net, CLONE_NEWNET) != 0)
		rc = failure_set(failure, -errno, "cannot enter the sandbox's network namespace");
	return rc == 0 ? mount_sys(failure) : rc;
}
