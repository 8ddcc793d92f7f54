/* SPDX-License-Identifier: Apache-2.0 */
/* setfsuid(2) tells nothing of its success; a second call that changes nothing tells who one is
 * now. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/identity.h"

/* The groups of the user; of one that the system does not know, its gid alone. */
static int groups_of(const struct identity *id, gid_t out[IDENTITY_GROUPS_MAX])
{
	struct passwd *user = getpwuid(id->uid);
	int count = IDENTITY_GROUPS_MAX;

	if (user && getgrouplist(user->pw_name, id->gid, out, &count) >= 0)
		return count;
	out[0] = id->gid;
	return 1;
}

static bool fs_identity_is(uid_t uid, gid_t gid)
{
	return setfsuid((uid_t)-1) == (int)uid && setfsgid((gid_t)-1) == (int)gid;
}

static int enter(const struct identity *id)
{
	gid_t groups[IDENTITY_GROUPS_MAX];
	int count = groups_of(id, groups);

	if (setgroups((size_t)count, groups) < 0)
		return -errno;
	setfsgid(id->gid);
	setfsuid(id->uid);
	return fs_identity_is(id->uid, id->gid) ? 0 : -EPERM;
}

static void leave(const gid_t *groups, int count)
{
	setfsuid(geteuid());
	setfsgid(getegid());
	if (!fs_identity_is(geteuid(), getegid()) || setgroups((size_t)count, groups) < 0)
		die(125, "cannot take back the supervisor's own identity");
}

int identity_run(const struct identity *id, int (*what)(void *context), void *context)
{
	gid_t groups[IDENTITY_GROUPS_MAX];

	if (id->fixed || (id->uid == geteuid() && id->gid == getegid()))
		return what(context);
	int count = getgroups(IDENTITY_GROUPS_MAX, groups);
	if (count < 0)
		return -errno;
	int result = enter(id);
	if (!result)
		result = what(context);
	leave(groups, count);
	return result;
}

int identity_become(const struct identity *id)
{
	gid_t groups[IDENTITY_GROUPS_MAX];

	if (id->fixed || (id->uid == getuid() && id->gid == getgid()))
		return 0;
	int count = groups_of(id, groups);
	if (setgroups((size_t)count, groups) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
	        setresuid(id->uid, id->uid, id->uid) < 0)
		return -errno;
	return getuid() == id->uid && geteuid() == id->uid ? 0 : -EPERM;
}
