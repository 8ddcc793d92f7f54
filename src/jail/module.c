/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three walls stand beside each other, so that none has to be perfect: all mounts are read-only
 * except for the writable folders, Landlock enforces the same again, and the process runs as a user
 * that may open few files anyhow. The network namespace is new and has no link that is up: a socket
 * of the internet family, which the filter refuses, would lead nowhere.
 *
 * Without root there is only one id. The process keeps it, as other roles do; everything else is
 * the same.
 */
#include "vethguard/jail/module.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "jail/jail_state.h"
#include "vethguard/base/linux.h"

bool jail_module_user(struct jail_module *jail, const char *name)
{
	const struct passwd *user;
	int count = JAIL_MODULE_GROUPS_MAX;

	jail->ids = jail_role_ids(JAIL_TOKEN, (uint32_t)getpid());
	if (jail_state.single_id)
		return true;
	user = name[0] ? getpwnam(name) : getpwuid(jail->ids.uid);
	if (!user)
		return !name[0];
	if (user->pw_uid == 0)
		return false;
	jail->ids = (struct jail_ids){user->pw_uid, user->pw_gid};
	if (getgrouplist(user->pw_name, user->pw_gid, jail->groups, &count) < 0)
		return false;
	jail->group_count = (size_t)count;
	return true;
}

static int set_read_only(const char *path, unsigned flags, bool on)
{
	struct mount_attr attributes = {.attr_set = on ? MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID : 0,
	        .attr_clr = on ? 0 : MOUNT_ATTR_RDONLY};

	return mount_setattr(AT_FDCWD, path, flags, &attributes, sizeof(attributes)) < 0 ? -errno
	                                                                                 : 0;
}

static int close_mounts(const struct jail_module *jail)
{
	int rc = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;

	for (size_t i = 0; rc == 0 && i < jail->writable_count; i++)
		if (mount(jail->writable[i], jail->writable[i], NULL, MS_BIND, NULL) < 0)
			rc = -errno;
	if (rc == 0)
		rc = set_read_only("/", AT_RECURSIVE, true);
	for (size_t i = 0; rc == 0 && i < jail->writable_count; i++)
		rc = set_read_only(jail->writable[i], 0, false);
	return rc;
}

int jail_module(struct jail_module *jail)
{
	int rc;

	jail->step = "cannot get namespaces of its own";
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET) != 0)
		return -errno;
	jail_read_namespaces();
	jail->step = "cannot make the mounts read-only (is each path of token.writable there?)";
	rc = close_mounts(jail);
	if (rc == 0) {
		jail->step = "cannot drop privileges";
		rc = jail_drop_to(jail->ids, jail->groups, jail->group_count);
	}
	if (rc == 0) {
		jail->step = "cannot use Landlock";
		rc = landlock_read_only(jail->writable, jail->writable_count);
		rc = rc == -EOPNOTSUPP ? 0 : rc;
	}
	if (rc == 0) {
		jail->step = "cannot filter system calls";
		rc = jail_seccomp(JAIL_TOKEN, false);
	}
	return rc;
}
