/* SPDX-License-Identifier: Apache-2.0 */
/* The routes, in one table. */
#include <stdio.h>

#include "supervisor/control/call.h"

#define CHANGES true
#define LOOKS false
#define BODY true
#define NO_BODY false

static const struct control_route routes[] = {
        {"GET", "/v1/status", "status.get", LOOKS, NO_BODY, control_run_status},
        {"POST", "/v1/reload", "reload", CHANGES, BODY, control_run_reload_all},
        {"GET", "/v1/audit", "audit.get", LOOKS, NO_BODY, control_run_audit},
        {"GET", "/v1/roles", "roles.get", LOOKS, NO_BODY, control_run_roles},
        {"POST", "/v1/upgrade", "upgrade", CHANGES, BODY, control_run_upgrade},
        {"GET", "/v1/ca", "ca.get", LOOKS, NO_BODY, control_run_ca},
        {"POST", "/v1/ca/csr", "ca.csr", CHANGES, BODY, control_run_ca_csr},
        {"POST", "/v1/ca/install", "ca.install", CHANGES, BODY, control_run_ca_install},
        {"POST", "/v1/ca/rotate", "ca.rotate", CHANGES, BODY, control_run_ca_rotate},
        {"GET", "/v1/sandboxes", "sandboxes.list", LOOKS, NO_BODY, control_run_list},
        {"POST", "/v1/sandboxes", "sandboxes.attach", CHANGES, BODY, control_run_attach},
        {"GET", "/v1/prepared", "prepared.list", LOOKS, NO_BODY, control_run_prepared},
        {"POST", "/v1/prepared", "prepared.add", CHANGES, BODY, control_run_prepare},
        {"POST", "/v1/claim", "sandboxes.claim", CHANGES, BODY, control_run_claim},
        {"POST", "/v1/sandboxes/*/release", "sandboxes.release", CHANGES, BODY,
                control_run_release},
        {"GET", "/v1/sandboxes/*", "sandboxes.get", LOOKS, NO_BODY, control_run_show},
        {"DELETE", "/v1/sandboxes/*", "sandboxes.detach", CHANGES, NO_BODY, control_run_detach},
        {"GET", "/v1/sessions", "sessions.list", LOOKS, NO_BODY, control_run_sessions},
        {"POST", "/v1/sessions", "sessions.create", CHANGES, BODY, control_run_create},
        {"GET", "/v1/sessions/*", "sessions.get", LOOKS, NO_BODY, control_run_session},
        {"DELETE", "/v1/sessions/*", "sessions.revoke", CHANGES, NO_BODY, control_run_revoke},
        {"POST", "/v1/sessions/*/extend", "sessions.extend", CHANGES, BODY, control_run_extend},
        {"POST", "/v1/sessions/*/certificate", "sessions.certify", CHANGES, BODY,
                control_run_certify},
        {"POST", "/v1/tokens/revoke", "tokens.revoke", CHANGES, BODY, control_run_revoke_token},
        {"GET", "/v1/sandboxes/*/env", "sandboxes.env", LOOKS, NO_BODY, control_run_env},
        {"GET", "/v1/sandboxes/*/stats", "sandboxes.stats", LOOKS, NO_BODY, control_run_stats},
        {"GET", "/v1/asks", "asks.list", LOOKS, NO_BODY, control_run_asks},
        {"POST", "/v1/asks/*/approve", "asks.approve", CHANGES, BODY, control_run_approve},
        {"POST", "/v1/asks/*/refuse", "asks.refuse", CHANGES, BODY, control_run_refuse},
        {"GET", "/v1/sandboxes/*/credentials", "credentials.list", LOOKS, NO_BODY,
                control_run_credentials},
        {"POST", "/v1/sandboxes/*/credentials/check", "credentials.check", CHANGES, BODY,
                control_run_credential_check},
        {"POST", "/v1/sandboxes/*/credentials/rotate", "credentials.rotate", CHANGES, BODY,
                control_run_credential_rotate},
        {"POST", "/v1/sandboxes/*/credentials/revoke", "credentials.revoke", CHANGES, BODY,
                control_run_credential_revoke},
        {"POST", "/v1/sandboxes/*/follow", "sandboxes.follow", CHANGES, BODY, control_run_follow},
        {"POST", "/v1/sandboxes/*/reload", "sandboxes.reload", CHANGES, BODY, control_run_reload},
        {"POST", "/v1/sandboxes/*/pause", "sandboxes.pause", CHANGES, BODY, control_run_pause},
        {"POST", "/v1/sandboxes/*/resume", "sandboxes.resume", CHANGES, BODY, control_run_resume},
};

/* The '*' of a pattern matches one segment of the path that is a valid sandbox name. */
static bool path_matches(const char *pattern, struct slice path, char name[MESSAGE_NAME_MAX + 1])
{
	const char *star = strchr(pattern, '*');
	struct slice head, tail, middle;

	name[0] = '\0';
	if (!star)
		return slice_equals(path, slice_from_string(pattern));
	head = slice_of(pattern, (size_t)(star - pattern));
	tail = slice_from_string(star + 1);
	if (path.n <= head.n + tail.n || !slice_starts_with(path, head) ||
	        !slice_ends_with(path, tail))
		return false;
	middle = slice_of(path.p + head.n, path.n - head.n - tail.n);
	if (!message_name_is_plain(middle))
		return false;
	memcpy(name, middle.p, middle.n);
	name[middle.n] = '\0';
	return true;
}

const struct control_route *control_route_find(struct slice method, struct slice path,
        char name[MESSAGE_NAME_MAX + 1], char allowed[CONTROL_ALLOWED_MAX])
{
	size_t n = 0;

	allowed[0] = '\0';
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!path_matches(routes[i].path, path, name))
			continue;
		if (slice_equals(method, slice_from_string(routes[i].method)))
			return &routes[i];
		n += (size_t)snprintf(allowed + n, CONTROL_ALLOWED_MAX - n, "%s%s", n ? ", " : "",
		        routes[i].method);
	}
	name[0] = '\0';
	return NULL;
}

void control_route_target(
        const struct control_route *route, const char *name, char out[CONTROL_TARGET_TEXT])
{
	const char *star = strchr(route->path, '*');

	if (star)
		snprintf(out, CONTROL_TARGET_TEXT, "%.*s%s%s", (int)(star - route->path),
		        route->path, name, star + 1);
	else
		snprintf(out, CONTROL_TARGET_TEXT, "%s", route->path);
}
