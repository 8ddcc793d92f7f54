/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about sandboxes: how each begins, and its answer. */
#include <stdio.h>

#include "supervisor/control/call.h"
#include "supervisor/session/session.h"

/* Returns a warning about a visible gap of the place it was attached to, or "". */
static const char *warning_of(const struct attachment_view *view)
{
	return view->has_resolver
	               ? "this is a user-defined network of Docker: for a container without --dns "
	                 "Docker itself resolves names, which may leave by the host's network, "
	                 "past the guard; start such a container with --dns ADDRESS (any address "
	                 "will do)"
	               : "";
}

/* Reports a fault of a credential's file now: its first request would report it as well, but too
 * late for the caller who can fix it. */
static void add_fault(void *context, const char *fault)
{
	json_put_string(context, NULL, slice_from_string(fault), 0);
}

void control_view_for(struct control_call *call, struct attachment *a, struct attachment_view *view)
{
	attachment_view(a, view);
	call->id = view->id;
	snprintf(call->name, sizeof(call->name), "%s", view->name);
}

static void answer_sandbox(struct control_call *call, unsigned status, struct attachment *a,
        const char *diff, const struct guest_files_report *files)
{
	struct attachment_view view;
	struct buf out;
	struct json j;

	control_view_for(call, a, &view);
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
		attachment_verify(a, add_fault, &j);
		if (!diff)
			control_add_lines(&j, files ? files->faults : warning_of(&view));
		json_put_end_array(&j);
	}
	json_put_end_object(&j);
	control_answer(call, status, &j, &out);
}

void control_answer_created(
        struct control_call *call, struct attachment *a, const struct guest_files_report *files)
{
	answer_sandbox(call, 201, a, NULL, files);
}

static void on_sandbox(void *context, const struct attach_result *result)
{
	struct control_call *call = context;

	if (control_succeeded(call, result, result->attachment))
		answer_sandbox(call, 200, result->attachment, NULL, NULL);
}

static void on_reloaded(void *context, const struct attach_result *result)
{
	struct control_call *call = context;

	if (control_succeeded(call, result, result->attachment))
		answer_sandbox(
		        call, 200, result->attachment, result->diff ? result->diff : "", NULL);
}

void control_put_summary(struct json *j, const struct message_summary *m)
{
	if (!m)
		return;
	json_put_object(j, "summary");
	json_put_uint(j, "allowed", m->allowed);
	json_put_uint(j, "denied", m->denied);
	json_put_uint(j, "observed", m->observed);
	json_put_uint(j, "failed", m->failed);
	json_put_uint(j, "dropped", m->dropped);
	json_put_uint(j, "findings", m->findings);
	json_put_end_object(j);
}

static void on_detached(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct attachment_view view = {0};
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, true))
		return;
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_string(&j, "name", slice_from_string(call->name), 0);
	if (result->attachment)
		attachment_view(result->attachment, &view);
	if (view.interface && view.interface[0])
		json_put_string(&j, "opened", slice_from_string(view.interface), 0);
	control_put_summary(&j, result->summary);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

static void on_env(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, result->env))
		return;
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	control_put_env(&j, call->name, result->env);
	control_answer(call, 200, &j, &out);
}

static void on_stats(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct attachment_view view;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, result->stats && result->attachment))
		return;
	attachment_view(result->attachment, &view);
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	control_put_stats(&j, &view, result->stats);
	control_answer(call, 200, &j, &out);
}

struct identity control_identity_of(const struct control_call *call)
{
	return (struct identity){.uid = call->peer.uid,
	        .gid = call->peer.gid,
	        .asked = true,
	        .group_count = call->peer.group_count,
	        .groups = call->peer.groups};
}

#define SANDBOX_TEXT_BYTES 1024 /* usually more than one sandbox needs in a list */

struct listing {
	struct json j;
	bool sessions; /* list sessions only */
	bool brief;
};

static bool put_one(void *context, struct attachment *a)
{
	struct listing *list = context;
	struct attachment_view view;

	attachment_view(a, &view);
	if (view.state == ATTACH_PREPARED)
		return true; /* nobody's yet: control_run_prepared() lists it */
	if (list->sessions && view.kind != ATTACH_SESSION)
		return true;
	view.brief = list->brief;
	control_open_sandbox(&list->j, NULL, &view);
	json_put_end_object(&list->j);
	return !list->j.failed;
}

static void put_list(struct control *control, struct listing *list, struct buf *out)
{
	size_t count = attachments_count(control_attachments(control));

	(void)!buf_reserve(out, count * SANDBOX_TEXT_BYTES); /* it grows if that is too little */
	json_begin(&list->j, out);
	json_put_object(&list->j, NULL);
	json_put_bool(&list->j, "brief", list->brief);
	json_put_array(&list->j, list->sessions ? "sessions" : "sandboxes");
	attachments_for_each(control_attachments(control), put_one, list);
	json_put_end_array(&list->j);
	json_put_end_object(&list->j);
}

/* Labels and variables may be too long for one answer. Then the list is sent without them:
 * ATTACHMENTS_MAX sandboxes fit that way. */
static void run_list(struct control *control, struct control_call *call, bool sessions)
{
	struct listing list = {.sessions = sessions};
	struct buf out;

	buf_init(&out, CONTROL_ANSWER_MAX);
	put_list(control, &list, &out);
	if (list.j.failed) {
		buf_fini(&out);
		buf_init(&out, CONTROL_ANSWER_MAX);
		list.brief = true;
		put_list(control, &list, &out);
	}
	control_answer(call, 200, &list.j, &out);
}

void control_run_list(struct control *control, struct control_call *call)
{
	run_list(control, call, false);
}

void control_run_sessions(struct control *control, struct control_call *call)
{
	run_list(control, call, true);
}

static void run_show(struct control *control, struct control_call *call, bool session)
{
	struct attachment *a = attachments_find(control_attachments(control), call->name);
	char text[MESSAGE_NAME_MAX + 32];
	struct attachment_view view;

	snprintf(text, sizeof(text), "there is no %s %s", session ? "session" : "sandbox",
	        call->name);
	if (a)
		attachment_view(a, &view);
	if (a && (!session || view.kind == ATTACH_SESSION))
		answer_sandbox(call, 200, a, NULL, NULL);
	else
		control_refuse(call, 404, text);
}

void control_run_show(struct control *control, struct control_call *call)
{
	run_show(control, call, false);
}

void control_run_session(struct control *control, struct control_call *call)
{
	run_show(control, call, true);
}

void control_run_detach(struct control *control, struct control_call *call)
{
	attachments_detach(control_attachments(control), call->name, on_detached, call);
}

void control_run_revoke(struct control *control, struct control_call *call)
{
	attachments_revoke(control_attachments(control), call->name, on_detached, call);
}

void control_run_extend(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	uint32_t ttl_s;

	if (!control_body_extend(call->body, &ttl_s, fault))
		control_refuse(call, 422, fault);
	else
		attachments_extend(
		        control_attachments(control), call->name, ttl_s, on_sandbox, call);
}

void control_run_certify(struct control *control, struct control_call *call)
{
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_certify(call->body, hash, fault))
		control_refuse(call, 422, fault);
	else
		attachments_certify(
		        control_attachments(control), call->name, hash, on_sandbox, call);
}

void control_run_env(struct control *control, struct control_call *call)
{
	attachments_env(control_attachments(control), call->name, on_env, call);
}

void control_run_stats(struct control *control, struct control_call *call)
{
	attachments_stats(control_attachments(control), call->name, on_stats, call);
}

void control_run_follow(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	uint64_t start_time;
	pid_t pid;

	if (!control_body_follow(call->body, &pid, &start_time, fault))
		control_refuse(call, 422, fault);
	else
		attachments_follow(control_attachments(control), call->name, pid, start_time,
		        on_sandbox, call);
}

void control_run_reload(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	struct identity caller = control_identity_of(call);
	const char *policy;

	if (!control_body_reload(call->body, &policy, fault))
		control_refuse(call, 422, fault);
	else
		attachments_reload(control_attachments(control), call->name, policy, &caller,
		        on_reloaded, call);
}

void control_run_pause(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	const char *reason;

	if (!control_body_pause(call->body, &reason, fault))
		control_refuse(call, 422, fault);
	else
		attachments_pause(
		        control_attachments(control), call->name, reason, on_sandbox, call);
}

void control_run_resume(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_empty(call->body, fault))
		control_refuse(call, 422, fault);
	else
		attachments_resume(control_attachments(control), call->name, on_sandbox, call);
}
