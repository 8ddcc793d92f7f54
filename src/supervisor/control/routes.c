/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked for: one table, and a function for each of its lines. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "supervisor/control/call.h"
#include "supervisor/settings/settings.h"

#define REFUSED(call, fault) control_refuse(call, 422, fault)

/* What was begun is whole, or is not sent. Ends out. */
static void answer(
        struct control_call *call, unsigned status, const struct json *j, struct buf *out)
{
	if (j->failed)
		control_refuse(call, 500, "the daemon has no memory for the answer");
	else
		control_answer(call, status, buf_slice(out));
	buf_fini(out);
}

/* What can be seen of the place that it was attached to and is not guarded with it. */
static const char *warning_of(const struct attachment_view *view)
{
	return view->has_resolver && settings_host_asks_itself()
	               ? "this is a network of Docker's that has a name: a container on it that "
	                 "was "
	                 "started without --dns has Docker ask for names, which may go out from "
	                 "the "
	                 "host's network, past the guard; start it with --dns ADDRESS (any address "
	                 "will do)"
	               : "";
}

/* Of a credential's file: its first request would be told as well, when whoever can mend it no
 * longer looks. */
static void add_fault(void *context, const char *fault)
{
	json_put_string(context, NULL, slice_from_string(fault), 0);
}

static void answer_sandbox(struct control_call *call, unsigned status, struct attachment *a,
        const char *diff, const struct guest_files_report *files)
{
	struct attachment_view view;
	struct buf out;
	struct json j;

	attachment_view(a, &view);
	call->id = view.id;
	snprintf(call->name, sizeof call->name, "%s", view.name);
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	control_open_sandbox(&j, NULL, &view);
	if (diff)
		control_put_lines(&j, "diff", diff);
	if (files)
		control_put_lines(&j, "files", files->written);
	if (status == 201 || diff) {
		json_put_array(&j, "warnings");
		control_add_lines(&j, view.notes);
		attachment_examine(a, add_fault, &j);
		if (!diff)
			control_add_lines(&j, files ? files->faults : warning_of(&view));
		json_put_end_array(&j);
	}
	json_put_end_object(&j);
	answer(call, status, &j, &out);
}

/* Answers of operations. */

static void on_sandbox(void *context, const struct attach_result *result)
{
	struct control_call *call = context;

	if (!control_is_open(call))
		return;
	if (result->status != ATTACH_OK || !result->attachment)
		control_refuse_result(call, result);
	else
		answer_sandbox(call, 200, result->attachment, NULL, NULL);
}

static void on_reloaded(void *context, const struct attach_result *result)
{
	struct control_call *call = context;

	if (!control_is_open(call))
		return;
	if (result->status != ATTACH_OK || !result->attachment)
		control_refuse_result(call, result);
	else
		answer_sandbox(
		        call, 200, result->attachment, result->diff ? result->diff : "", NULL);
}

static void on_all_reloaded(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct buf out;
	struct json j;

	if (!control_is_open(call))
		return;
	if (result->status != ATTACH_OK) {
		control_refuse_result(call, result);
		return;
	}
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_uint(&j, "reloaded", result->reloaded);
	json_put_uint(&j, "failed", result->failed);
	json_put_end_object(&j);
	answer(call, 200, &j, &out);
}

static void on_detached(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	const struct message_summary *m = result->summary;
	struct attachment_view view = {0};
	struct buf out;
	struct json j;

	if (!control_is_open(call))
		return;
	if (result->status != ATTACH_OK) {
		control_refuse_result(call, result);
		return;
	}
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_string(&j, "name", slice_from_string(call->name), 0);
	if (result->attachment)
		attachment_view(result->attachment, &view);
	if (view.interface && view.interface[0])
		json_put_string(&j, "opened", slice_from_string(view.interface), 0);
	if (m) {
		json_put_object(&j, "summary");
		json_put_uint(&j, "allowed", m->allowed);
		json_put_uint(&j, "denied", m->denied);
		json_put_uint(&j, "observed", m->observed);
		json_put_uint(&j, "failed", m->failed);
		json_put_uint(&j, "dropped", m->dropped);
		json_put_uint(&j, "findings", m->findings);
		json_put_end_object(&j);
	}
	json_put_end_object(&j);
	answer(call, 200, &j, &out);
}

static void on_env(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct buf out;
	struct json j;

	if (!control_is_open(call))
		return;
	if (result->status != ATTACH_OK || !result->env) {
		control_refuse_result(call, result);
		return;
	}
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	control_put_env(&j, call->name, result->env);
	answer(call, 200, &j, &out);
}

static void on_stats(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct attachment_view view;
	struct buf out;
	struct json j;

	if (!control_is_open(call))
		return;
	if (result->status != ATTACH_OK || !result->stats || !result->attachment) {
		control_refuse_result(call, result);
		return;
	}
	attachment_view(result->attachment, &view);
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	control_put_stats(&j, &view, result->stats);
	answer(call, 200, &j, &out);
}

/* Attaching: the sandbox, then its files where these are wanted. */

static void on_files(void *context, const struct guest_files_report *report)
{
	struct control_call *call = context;
	struct attachment *a = attachments_find(control_attachments(call->control), call->name);

	if (a)
		answer_sandbox(call, 201, a, NULL, report);
	else
		control_refuse(call, 409, "the sandbox ended while it was being set up");
}

static void no_files(struct control_call *call, const char *why)
{
	struct guest_files_report report = {.written = ""};
	char fault[256];

	snprintf(fault, sizeof fault, "nothing was written into the sandbox: %.200s", why);
	report.faults = fault;
	on_files(call, &report);
}

/* Into the very process that was attached: its number may be another's by now. */
static void write_files(
        struct control_call *call, struct attachment *a, const struct attach_env *env)
{
	struct attachment_view view;

	attachment_view(a, &view);
	struct guest_files_plan plan = {.pid = view.pid,
	        .start_time = view.pid_start_time,
	        .servers = {env->gate4, env->gate6},
	        .root_pem = slice_from_string(env->root_pem),
	        .caller = call->attach.request.caller};
	int error =
	        guest_files_write(control_loop(call->control), &plan, on_files, call, &call->files);

	if (error)
		no_files(call, strerror(-error));
}

static void on_attached_env(void *context, const struct attach_result *result)
{
	struct control_call *call = context;

	if (!control_is_open(call))
		return;
	if (result->status == ATTACH_OK && result->env && result->attachment)
		write_files(call, result->attachment, result->env);
	else /* it is attached all the same */
		no_files(call, result->text);
}

static void on_attached(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct attachment_view view;

	if (!control_is_open(call))
		return;
	if (result->status != ATTACH_OK || !result->attachment) {
		control_refuse_result(call, result);
		return;
	}
	if (!call->attach.files) {
		answer_sandbox(call, 201, result->attachment, NULL, NULL);
		return;
	}
	attachment_view(result->attachment, &view);
	call->id = view.id;
	snprintf(call->name, sizeof call->name, "%s", view.name);
	attachments_env(control_attachments(call->control), call->name, on_attached_env, call);
}

static struct identity identity_of(const struct control_call *call)
{
	return (struct identity){.uid = call->peer.uid,
	        .gid = call->peer.gid,
	        .asked = true,
	        .group_count = call->peer.group_count,
	        .groups = call->peer.groups};
}

static void run_attach(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_attach(call->body, &call->attach, fault)) {
		REFUSED(call, fault);
		return;
	}
	call->attach.request.caller = identity_of(call);
	call->attach.request.caller_pid = call->peer.pid;
	if (call->attach.request.name)
		snprintf(call->name, sizeof call->name, "%s", call->attach.request.name);
	attachments_attach(control_attachments(control), &call->attach.request, on_attached, call);
}

/* The rest. */

#define SANDBOX_TEXT_BYTES 1024 /* more than one takes in a list, as a rule */

struct listing {
	struct json j;
	bool brief;
};

static bool put_one(void *context, struct attachment *a)
{
	struct listing *list = context;
	struct attachment_view view;

	attachment_view(a, &view);
	view.brief = list->brief;
	control_open_sandbox(&list->j, NULL, &view);
	json_put_end_object(&list->j);
	return !list->j.failed;
}

static void put_list(struct control *control, struct listing *list, struct buf *out)
{
	size_t count = attachments_count(control_attachments(control));

	(void)!buf_reserve(out, count * SANDBOX_TEXT_BYTES); /* it grows where that is too little */
	json_begin(&list->j, out);
	json_put_object(&list->j, NULL);
	json_put_bool(&list->j, "brief", list->brief);
	json_put_array(&list->j, "sandboxes");
	attachments_for_each(control_attachments(control), put_one, list);
	json_put_end_array(&list->j);
	json_put_end_object(&list->j);
}

/* What people wrote into labels and variables may be more than one answer holds. That is no reason
 * to show nothing: ATTACHMENTS_MAX sandboxes without it fit. */
static void run_list(struct control *control, struct control_call *call)
{
	struct listing list = {.brief = false};
	struct buf out;

	buf_init(&out, CONTROL_ANSWER_MAX);
	put_list(control, &list, &out);
	if (list.j.failed) {
		buf_fini(&out);
		buf_init(&out, CONTROL_ANSWER_MAX);
		list.brief = true;
		put_list(control, &list, &out);
	}
	answer(call, 200, &list.j, &out);
}

static void run_show(struct control *control, struct control_call *call)
{
	struct attachment *a = attachments_find(control_attachments(control), call->name);
	char text[MESSAGE_NAME_MAX + 32];

	snprintf(text, sizeof text, "there is no sandbox %s", call->name);
	if (a)
		answer_sandbox(call, 200, a, NULL, NULL);
	else
		control_refuse(call, 404, text);
}

static void run_detach(struct control *control, struct control_call *call)
{
	attachments_detach(control_attachments(control), call->name, on_detached, call);
}

static void run_env(struct control *control, struct control_call *call)
{
	attachments_env(control_attachments(control), call->name, on_env, call);
}

static void run_stats(struct control *control, struct control_call *call)
{
	attachments_stats(control_attachments(control), call->name, on_stats, call);
}

static void run_reload(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	struct identity caller = identity_of(call);
	const char *policy;

	if (!control_body_reload(call->body, &policy, fault))
		REFUSED(call, fault);
	else
		attachments_reload(control_attachments(control), call->name, policy, &caller,
		        on_reloaded, call);
}

static void run_reload_all(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_empty(call->body, fault))
		REFUSED(call, fault);
	else
		attachments_reload_all(control_attachments(control), on_all_reloaded, call);
}

static void run_pause(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	const char *reason;

	if (!control_body_pause(call->body, &reason, fault))
		REFUSED(call, fault);
	else
		attachments_pause(
		        control_attachments(control), call->name, reason, on_sandbox, call);
}

static void run_resume(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_empty(call->body, fault))
		REFUSED(call, fault);
	else
		attachments_resume(control_attachments(control), call->name, on_sandbox, call);
}

static void run_status(struct control *control, struct control_call *call)
{
	struct attachments_status status;
	struct buf out;
	struct json j;

	attachments_status(control_attachments(control), &status);
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	control_put_status(&j, &status);
	answer(call, 200, &j, &out);
}

static void on_upgraded(void *context, const char *error, pid_t pid)
{
	struct control_call *call = context;
	struct buf out;
	struct json j;

	if (!control_is_open(call))
		return;
	if (error) {
		control_refuse(call, 409, error);
		return;
	}
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_uint(&j, "pid", (uint64_t)pid);
	json_put_end_object(&j);
	answer(call, 200, &j, &out);
}

static void run_upgrade(struct control *control, struct control_call *call)
{
	struct control_owner *owner = control_owner(control);
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_empty(call->body, fault))
		REFUSED(call, fault);
	else
		owner->upgrade(owner, on_upgraded, call);
}

static void on_roles(void *context, uint64_t id, const struct role_report *reports, size_t count)
{
	struct control_call *call = context;
	struct buf out;
	struct json j;

	(void)id;
	if (!control_is_open(call))
		return;
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_array(&j, "roles");
	for (size_t i = 0; i < count; i++) {
		json_put_object(&j, NULL);
		json_put_string(&j, "role", slice_from_string(reports[i].label), 0);
		json_put_uint(&j, "pid", (uint64_t)reports[i].pid);
		json_put_string(&j, "text", slice_from_string(reports[i].text), 0);
		json_put_end_object(&j);
	}
	json_put_end_array(&j);
	json_put_end_object(&j);
	if (j.failed)
		control_refuse(call, 503, "the list is too large for one answer");
	else
		answer(call, 200, &j, &out);
}

static void run_roles(struct control *control, struct control_call *call)
{
	struct control_owner *owner = control_owner(control);
	int error = owner->roles(owner, on_roles, call);

	if (error == -EBUSY)
		control_refuse(call, 503, "somebody else's question is under way");
	else if (error)
		control_refuse(call, 503, "no memory");
}

#define CHANGES true
#define LOOKS false
#define BODY true
#define NO_BODY false

static const struct control_route routes[] = {
        {"GET", "/v1/status", "status.get", LOOKS, NO_BODY, run_status},
        {"POST", "/v1/reload", "reload", CHANGES, BODY, run_reload_all},
        {"GET", "/v1/roles", "roles.get", LOOKS, NO_BODY, run_roles},
        {"POST", "/v1/upgrade", "upgrade", CHANGES, BODY, run_upgrade},
        {"GET", "/v1/sandboxes", "sandboxes.list", LOOKS, NO_BODY, run_list},
        {"POST", "/v1/sandboxes", "sandboxes.attach", CHANGES, BODY, run_attach},
        {"GET", "/v1/sandboxes/*", "sandboxes.get", LOOKS, NO_BODY, run_show},
        {"DELETE", "/v1/sandboxes/*", "sandboxes.detach", CHANGES, NO_BODY, run_detach},
        {"GET", "/v1/sandboxes/*/env", "sandboxes.env", LOOKS, NO_BODY, run_env},
        {"GET", "/v1/sandboxes/*/stats", "sandboxes.stats", LOOKS, NO_BODY, run_stats},
        {"POST", "/v1/sandboxes/*/reload", "sandboxes.reload", CHANGES, BODY, run_reload},
        {"POST", "/v1/sandboxes/*/pause", "sandboxes.pause", CHANGES, BODY, run_pause},
        {"POST", "/v1/sandboxes/*/resume", "sandboxes.resume", CHANGES, BODY, run_resume},
};

/* Where pattern has its '*', path has one segment, which may be a sandbox's name. */
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
