/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effective ids are switched, not only those for files (setfsuid(2)), because all capabilities
 * go with them. With CAP_SYS_PTRACE kept, the links in proc(5) of other people's processes (root,
 * cwd, ns/net) would lead where the user may not go. The saved ids allow switching back, and keep
 * the user from sending signals.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/os/identity.h"

int identity_copy(struct identity *out, const struct identity *id)
{
	gid_t *groups = id->group_count ? calloc(id->group_count, sizeof(*groups)) : NULL;

	*out = *id;
	out->groups = groups;
	if (groups)
		memcpy(groups, id->groups, id->group_count * sizeof(*groups));
	else
		out->group_count = 0;
	return id->group_count && !groups ? -ENOMEM : 0;
}

void identity_fini(struct identity *id)
{
	free((gid_t *)(uintptr_t)id->groups);
	id->groups = NULL;
	id->group_count = 0;
}

/* If id is of a process that asked: the groups of that process, which may be fewer or more than the
 * user's. Otherwise the user's groups; for a user unknown to the system, only the gid. */
static int groups_of(const struct identity *id, gid_t out[IDENTITY_GROUPS_MAX])
{
	int count = IDENTITY_GROUPS_MAX;
	struct passwd *user;

	if (id->asked) {
		if (id->group_count > IDENTITY_GROUPS_MAX)
			return -E2BIG;
		if (id->group_count)
			memcpy(out, id->groups, id->group_count * sizeof(*out));
		return (int)id->group_count;
	}
	user = getpwuid(id->uid);
	if (user && getgrouplist(user->pw_name, id->gid, out, &count) >= 0)
		return count;
	out[0] = id->gid;
	return 1;
}

/*
 * System calls for the calling thread only (credentials(7)), like setns(2). The C library's
 * functions change all threads of the supervisor, so a thread that is deleting a sandbox's link
 * (gate/unlink.h) would lose its rights, and be waited for.
 */
#ifdef SYS_setresuid32
#define OWN_SETRESUID SYS_setresuid32
#define OWN_SETRESGID SYS_setresgid32
#define OWN_SETGROUPS SYS_setgroups32
#else
#define OWN_SETRESUID SYS_setresuid
#define OWN_SETRESGID SYS_setresgid
#define OWN_SETGROUPS SYS_setgroups
#endif

static int own_ids(long call, unsigned effective)
{
	return (int)syscall(call, (uid_t)-1, effective, (uid_t)-1);
}

static int own_groups(int count, const gid_t *groups)
{
	return (int)syscall(OWN_SETGROUPS, count, groups);
}

static bool effective_is(uid_t uid, gid_t gid)
{
	/* setfsuid(2) does not report success; a call that changes nothing returns the current
	 * id. */
	return geteuid() == uid && getegid() == gid && setfsuid((uid_t)-1) == (int)uid &&
	       setfsgid((gid_t)-1) == (int)gid;
}

static int enter(const struct identity *id)
{
	gid_t groups[IDENTITY_GROUPS_MAX];
	int count = groups_of(id, groups);

	if (count < 0)
		return count;
	if (own_groups(count, groups) < 0 || own_ids(OWN_SETRESGID, id->gid) < 0 ||
	        own_ids(OWN_SETRESUID, id->uid) < 0)
		return -errno;
	return effective_is(id->uid, id->gid) ? 0 : -EPERM;
}

/* The user id first: it brings back the capabilities that the rest needs. */
static void leave(uid_t uid, gid_t gid, const gid_t *groups, int count)
{
	if (own_ids(OWN_SETRESUID, uid) < 0 || own_ids(OWN_SETRESGID, gid) < 0 ||
	        !effective_is(uid, gid) || own_groups(count, groups) < 0)
		die(125, "cannot take back the supervisor's own identity");
}

int identity_run(const struct identity *id, int (*what)(void *context), void *context)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	gid_t groups[IDENTITY_GROUPS_MAX];

	if (id->fixed || (id->uid == uid && id->gid == gid))
		return what(context);
	int count = getgroups(IDENTITY_GROUPS_MAX, groups);
	if (count < 0)
		return -errno;
	int rc = enter(id);
	if (!rc)
		rc = what(context);
	leave(uid, gid, groups, count);
	return rc;
}

int identity_become(const struct identity *id)
{
	gid_t groups[IDENTITY_GROUPS_MAX];

	if (id->fixed || (id->uid == getuid() && id->gid == getgid()))
		return 0;
	int count = groups_of(id, groups);
	if (count < 0)
		return count;
	if (setgroups((size_t)count, groups) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
	        setresuid(id->uid, id->uid, id->uid) < 0)
		return -errno;
	return getuid() == id->uid && geteuid() == id->uid ? 0 : -EPERM;
}
