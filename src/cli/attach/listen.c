/* SPDX-License-Identifier: Apache-2.0 */
/* The member "listen" of a request to attach: where a socket is to be made, for whom. */
#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "vethguard/base/slice.h"
#include "vethguard/wire/vsock_name.h"

#define NAME_BYTES 256

/* The file does not exist yet: its directory is made absolute. */
static bool resolve(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char directory[PATH_MAX], real[PATH_MAX];
	int n = slash == path ? 1 : slash ? (int)(slash - path) : 0;

	if (!name[0] || n >= PATH_MAX)
		return errno = ENOENT, false;
	snprintf(directory, sizeof(directory), "%.*s", n ? n : 1, n ? path : ".");
	if (!realpath(directory, real))
		return false;
	if (snprintf(out, PATH_MAX, "%s/%s", real[1] ? real : "", name) < PATH_MAX)
		return true;
	return errno = ENAMETOOLONG, false;
}

static bool find_user(const char *text, uint64_t *uid, uint64_t *gid)
{
	struct passwd *user;

	if (slice_to_u64(slice_from_string(text), UINT32_MAX - 1, uid))
		return true;
	user = getpwnam(text);
	if (!user)
		return false;
	*uid = user->pw_uid;
	*gid = user->pw_gid;
	return true;
}

static bool find_group(const char *text, uint64_t *gid)
{
	struct group *group;

	if (slice_to_u64(slice_from_string(text), UINT32_MAX - 1, gid))
		return true;
	group = getgrnam(text);
	if (!group)
		return false;
	*gid = group->gr_gid;
	return true;
}

/* USER, USER:GROUP or :GROUP, as in chown(1). A user by name brings the user's group. */
static bool add_owner(json_t *listen, const char *owner)
{
	const char *colon = strchr(owner, ':');
	uint64_t uid = UINT64_MAX, gid = UINT64_MAX;
	char user[NAME_BYTES];
	int n = colon ? (int)(colon - owner) : (int)strlen(owner);

	if (n >= NAME_BYTES)
		return option_wrong("listen-owner", owner, "no such user");
	snprintf(user, sizeof(user), "%.*s", n, owner);
	if (user[0] ? !find_user(user, &uid, &gid) : !colon)
		return option_wrong("listen-owner", owner, "no such user");
	if (colon && !find_group(colon + 1, &gid))
		return option_wrong("listen-owner", owner, "no such group");
	return (uid == UINT64_MAX ||
	               json_object_set_new(listen, "uid", json_integer((json_int_t)uid)) == 0) &&
	       (gid == UINT64_MAX ||
	               json_object_set_new(listen, "gid", json_integer((json_int_t)gid)) == 0);
}

static bool add_vsock(json_t *body, const struct attach_options *o)
{
	struct vsock_name name;
	const char *objection = vsock_name_parse(slice_from_string(o->listen), &name);
	json_t *listen;

	if (!objection && (o->listen_mode || o->listen_owner))
		objection = "--listen-mode and --listen-owner are for Unix sockets: a vsock is not "
		            "a file";
	if (objection)
		return option_wrong("listen", o->listen, objection);
	listen =
	        json_pack("{s:I, s:I}", "cid", (json_int_t)name.cid, "port", (json_int_t)name.port);
	return json_object_set_new(body, "listen", listen) == 0;
}

bool attach_add_listen(json_t *body, const struct attach_options *o)
{
	char path[PATH_MAX];
	json_t *listen;

	if (vsock_name_is(slice_from_string(o->listen)))
		return add_vsock(body, o);
	listen = json_object();
	if (!resolve(o->listen, path)) {
		json_decref(listen);
		return option_wrong("listen", o->listen, strerror(errno));
	}
	if (json_object_set_new(listen, "path", json_string(path)) != 0) {
		json_decref(listen);
		return option_wrong("listen", o->listen, "a path has to be UTF-8");
	}
	if ((o->listen_mode &&
	            json_object_set_new(listen, "mode", json_string(o->listen_mode)) != 0) ||
	        (o->listen_owner && !add_owner(listen, o->listen_owner))) {
		json_decref(listen);
		return false;
	}
	return json_object_set_new(body, "listen", listen) == 0;
}
