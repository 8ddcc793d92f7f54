/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third stage: identity and capabilities. The result is read back afterwards, because programs
 * like this were broken before by a setuid() that quietly did less.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail_state.h"
#include "vethguard/jail/capabilities.h"

/* The range that systemd uses for dynamic users: no distribution assigns fixed ids from it. */
#define JAIL_ID_FIRST 61184u
#define JAIL_ID_LAST 65519u
#define JAIL_ID_ROLES 7u

static const char *const role_users[] = {
        [JAIL_KEEPER] = "_vethguard-keeper",
        [JAIL_WORKER] = "_vethguard-worker",
        [JAIL_RECORDER] = "_vethguard-recorder",
        [JAIL_FETCH] = "_vethguard-fetch",
        [JAIL_TOKEN] = "_vethguard-token",
        [JAIL_GATEWAY] = "_vethguard-gateway",
        [JAIL_QUOTA] = "_vethguard-quota",
};
_Static_assert(sizeof(role_users) / sizeof(role_users[0]) == JAIL_ID_ROLES, "a user per role");

struct jail_ids jail_role_ids(enum jail_role role, uint32_t salt)
{
	const uint32_t slots = (JAIL_ID_LAST - JAIL_ID_FIRST + 1) / JAIL_ID_ROLES;
	const struct passwd *user;

	jail_state_read_ids();
	if (jail_state.single_id)
		return (struct jail_ids){getuid(), getgid()};
	user = getpwnam(role_users[role]);
	if (user && user->pw_uid != 0)
		return (struct jail_ids){user->pw_uid, user->pw_gid};
	/* neighboring salts (usually process ids) get different slots */
	for (uint32_t i = 0; i < slots; i++) {
		uint32_t id = JAIL_ID_FIRST + ((salt + i) % slots) * JAIL_ID_ROLES + (uint32_t)role;

		if (!getpwuid(id) && !getgrgid(id))
			return (struct jail_ids){id, id};
	}
	return (struct jail_ids){JAIL_ID_LAST, JAIL_ID_LAST};
}

static int jail_drop_ids(struct jail_ids ids, const gid_t *groups, size_t group_count)
{
	bool same = getuid() == ids.uid && geteuid() == ids.uid && getgid() == ids.gid &&
	            getegid() == ids.gid;

	/* in a rootless namespace the kernel refuses setgroups(); an ordinary user keeps its own
	 * groups */
	if (setgroups(group_count, groups) != 0 &&
	        !(errno == EPERM && (jail_state.groups_fixed || (same && getuid() != 0))))
		return -errno;
	if (setresgid(ids.gid, ids.gid, ids.gid) != 0 || setresuid(ids.uid, ids.uid, ids.uid) != 0)
		return -errno;
	return 0;
}

static int jail_verify(struct jail_ids ids, bool bounded)
{
	uid_t r, e, s;
	gid_t gr, ge, gs;
	struct capabilities now;

	if (getresuid(&r, &e, &s) != 0 || getresgid(&gr, &ge, &gs) != 0)
		return -errno;
	if (r != ids.uid || e != ids.uid || s != ids.uid || gr != ids.gid || ge != ids.gid ||
	        gs != ids.gid)
		return -EPERM;
	if (capabilities_get(&now) != 0 || (now.effective | now.permitted | now.inheritable) != 0)
		return -EPERM;
	if (bounded && capabilities_bounding_set() != 0)
		return -EPERM;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_DUMPABLE) != 0)
		return -EPERM;
	/* a process that gave up root must not get it back */
	if (ids.uid != 0 && !jail_state.single_id && setuid(0) == 0)
		return -EPERM;
	return 0;
}

int jail_drop(struct jail_ids ids)
{
	return jail_drop_to(ids, NULL, 0);
}

int jail_drop_to(struct jail_ids ids, const gid_t *groups, size_t group_count)
{
	const struct capabilities none = {0, 0, 0};
	bool bounded = capabilities_have(CAP_SETPCAP);
	int rc;

	/* without CAP_SETPCAP the process is an ordinary user already, and the set bounds nothing
	 * it could gain */
	if (bounded && (rc = capabilities_bound(0)) != 0)
		return rc;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return -errno;
	rc = jail_drop_ids(ids, groups, group_count);
	if (rc == 0)
		rc = capabilities_set(&none);
	if (rc != 0)
		return rc;
	/* the kernel resets both of these when ids change */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0)
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	rc = jail_verify(ids, bounded);
	if (rc != 0)
		return rc;
	jail_read_ids_and_sets();
	jail_state.dropped = true;
	return 0;
}
