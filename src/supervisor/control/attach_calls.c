/* SPDX-License-Identifier: Apache-2.0 */
/* The call that attaches: the sandbox, then its files if requested. */
#include <stdio.h>

#include "supervisor/control/call.h"

static void on_files(void *context, const struct guest_files_report *report)
{
	struct control_call *call = context;
	struct attachment *a = attachments_find(control_attachments(call->control), call->name);

	if (a)
		control_answer_created(call, a, report);
	else
		control_refuse(call, 409, "the sandbox ended while it was being set up");
}

static void no_files(struct control_call *call, const char *why)
{
	struct guest_files_report report = {.written = ""};
	char fault[256];

	snprintf(fault, sizeof(fault), "nothing was written into the sandbox: %.200s", why);
	report.faults = fault;
	on_files(call, &report);
}

/* Writes into the same process that was attached: the pid may be another process's by now. */
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
	int rc =
	        guest_files_write(control_loop(call->control), &plan, on_files, call, &call->files);

	if (rc)
		no_files(call, strerror(-rc));
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

	if (!control_succeeded(call, result, result->attachment))
		return;
	if (!call->attach.files) {
		control_answer_created(call, result->attachment, NULL);
		return;
	}
	control_view_for(call, result->attachment, &view);
	attachments_env(control_attachments(call->control), call->name, on_attached_env, call);
}

/* The socket is the caller's unless another owner was named. */
static void own_socket(struct attach_request *request)
{
	struct listen_socket *s = &request->listen;

	if (s->uid == CONTROL_ID_OF_CALLER)
		s->uid = request->caller.uid;
	if (s->gid == CONTROL_ID_OF_CALLER)
		s->gid = request->caller.gid;
}

void control_run_attach(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_attach(call->body, &call->attach, fault)) {
		control_refuse(call, 422, fault);
		return;
	}
	call->attach.request.caller = control_identity_of(call);
	call->attach.request.caller_pid = call->peer.pid;
	own_socket(&call->attach.request);
	if (call->attach.request.name)
		snprintf(call->name, sizeof(call->name), "%s", call->attach.request.name);
	attachments_attach(control_attachments(control), &call->attach.request, on_attached, call);
}
