/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the user that the command runs as; see run/privilege.h. Call this before any namespace
 * changes what /etc says. */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/privilege.h"
#include "vethguard/base/slice.h"

static void set_text(char *out, size_t out_size, const char *text)
{
	snprintf(out, out_size, "%s", text);
}

static void fill(struct run_user *out, const struct passwd *pw, uid_t uid, gid_t gid)
{
	out->uid = uid;
	out->gid = gid;
	if (pw) {
		set_text(out->name, sizeof(out->name), pw->pw_name);
		set_text(out->home, sizeof(out->home), pw->pw_dir);
		set_text(
		        out->shell, sizeof(out->shell), pw->pw_shell[0] ? pw->pw_shell : "/bin/sh");
		return;
	}
	snprintf(out->name, sizeof(out->name), "%u", (unsigned)uid);
	set_text(out->home, sizeof(out->home), "/");
	set_text(out->shell, sizeof(out->shell), "/bin/sh");
}

static int find_group(const char *text, gid_t *out, struct failure *failure)
{
	const struct group *group = getgrnam(text);
	uint64_t id;

	if (group)
		*out = group->gr_gid;
	else if (slice_to_u64(slice_from_string(text), UINT32_MAX - 1, &id))
		*out = (gid_t)id;
	else
		return failure_set(failure, 0, "--user: there is no group %s", text);
	return 0;
}

static int find_named(const char *wanted, struct run_user *out, struct failure *failure)
{
	char name[256];
	const char *colon = strchr(wanted, ':');
	const struct passwd *pw;
	uint64_t id = 0;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(wanted, ":"), wanted);
	pw = getpwnam(name);
	if (!pw) {
		if (!slice_to_u64(slice_from_string(name), UINT32_MAX - 1, &id))
			return failure_set(failure, 0, "--user: there is no user %s", name);
		pw = getpwuid((uid_t)id);
	}
	fill(out, pw, pw ? pw->pw_uid : (uid_t)id, pw ? pw->pw_gid : (gid_t)id);
	return !colon ? 0 : find_group(colon + 1, &out->gid, failure);
}

static int rootless_user(const struct privilege *p, struct run_user *out, struct failure *failure)
{
	out->group_count = -1;
	if (out->uid != 0 && out->uid != p->uid)
		return failure_set(failure, 0,
		        "--user %s: without root the command can run as your own user (%u) or as "
		        "root only; use sudo for others",
		        out->name, (unsigned)p->uid);
	out->gid = out->uid == 0 ? 0 : p->gid;
	return 0;
}

int run_user_find(const char *wanted, const struct privilege *privilege, struct run_user *out,
        struct failure *failure)
{
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (!wanted)
		fill(out, getpwuid(privilege->uid), privilege->uid, privilege->gid);
	else
		rc = find_named(wanted, out, failure);
	if (rc != 0)
		return rc;
	if (privilege->rootless)
		return rootless_user(privilege, out, failure);
	out->group_count = (int)(sizeof(out->groups) / sizeof(out->groups[0]));
	if (getgrouplist(out->name, out->gid, out->groups, &out->group_count) < 0)
		return failure_set(failure, 0, "user %s is in too many groups", out->name);
	return 0;
}
