/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the sandbox's view of the file system. It is the machine's own, with two differences. What
 * would lead around the guard is covered: directories of services, devices, parts of /proc and
 * /sys. What has to point to the guard is replaced: trusted CAs, resolver, hosts. Init does this in
 * a mount namespace of its own, before privileges are dropped. guest_mounts() has the order, which
 * matters.
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
	while (rc == 0 && fgets(line, sizeof(line), file)) {
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
		rc = failure_set(failure, -errno, "cannot detach the scratch tmpfs");
	if (rc == 0)
		rc = mount_proc(plan, failure);
	if (rc == 0 && setns(plan->ns.net, CLONE_NEWNET) != 0)
		rc = failure_set(failure, -errno, "cannot enter the sandbox's network namespace");
	return rc == 0 ? mount_sys(failure) : rc;
}
