/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Root or rootless. Rootless, vethguard enters a user namespace that maps one id: its user is root
 * there, over the namespaces made from then on and over nothing else. If a kernel or a distribution
 * forbids that, the message names the switch.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/privilege.h"
#include "vethguard/base/slice.h"
#include "vethguard/jail/capabilities.h"
#include "vethguard/jail/spawn.h"

bool privilege_is_root(void)
{
	static const unsigned needed[] = {CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SETUID, CAP_SETGID,
	        CAP_SETPCAP, CAP_DAC_OVERRIDE, CAP_CHOWN};

	if (geteuid() != 0)
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!capabilities_have(needed[i]))
			return false;
	return true;
}

/* Reads an id that sudo left in the environment. Returns false if it is missing or not an id. */
static bool id_from_environment(const char *name, unsigned *out)
{
	const char *text = getenv(name);
	uint64_t id;

	if (!text || !slice_to_u64(slice_from_string(text), UINT32_MAX - 1, &id))
		return false;
	*out = (unsigned)id;
	return true;
}

int privilege_write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rc = -errno;
	close(fd);
	return rc;
}

static int read_number(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? atoi(text) : -1;
}

/* Explains why this user gets no namespace: names the switch that forbids it, if one can be
 * seen. */
static int refused(struct failure *failure, int error)
{
	const char *why = "this kernel refuses it";

	if (read_number("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		why = "sysctl kernel.unprivileged_userns_clone is 0";
	else if (read_number("/proc/sys/user/max_user_namespaces") == 0)
		why = "sysctl user.max_user_namespaces is 0";
	else if (read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		why = "sysctl kernel.apparmor_restrict_unprivileged_userns is 1";
	else if (access("/proc/self/ns/user", F_OK) != 0)
		why = "this kernel has no user namespaces";
	return failure_set(failure, error,
	        "cannot make a user namespace (%s). Run vethguard through sudo, or see "
	        "'vethguard doctor' for how to permit it",
	        why);
}

static int enter_user_namespace(const struct privilege *p, struct failure *failure)
{
	char map[64];
	int rc;

	spawn_remember_self(); /* before the mount namespace of below */
	if (unshare(CLONE_NEWUSER) != 0)
		return refused(failure, -errno);
	rc = privilege_write_map("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)p->uid);
	if (rc == 0 || rc == -ENOENT)
		rc = privilege_write_map("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)p->gid);
	if (rc == 0)
		rc = privilege_write_map("/proc/self/gid_map", map);
	/* AppArmor permits the namespace but takes its capabilities away; the first use shows
	 * that. */
	if (rc == 0 && unshare(CLONE_NEWNS) != 0)
		rc = -errno;
	return rc == 0 ? 0 : refused(failure, rc);
}

int privilege_enter(struct privilege *out, struct failure *failure)
{
	unsigned uid, gid;

	*out = (struct privilege){.uid = getuid(), .gid = getgid()};
	if (getuid() != geteuid() || getgid() != getegid())
		return failure_set(failure, -EPERM, "vethguard must not be installed set-user-id");
	if (privilege_is_root()) {
		if (id_from_environment("SUDO_UID", &uid) &&
		        id_from_environment("SUDO_GID", &gid)) {
			out->uid = uid;
			out->gid = gid;
		}
		return 0;
	}
	out->rootless = true;
	return enter_user_namespace(out, failure);
}
