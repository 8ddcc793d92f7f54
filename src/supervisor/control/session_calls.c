/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that make a session and revoke tokens of others. Only this answer ever contains the
 * session's token; the daemon keeps its hash. */
#include <stdio.h>

#include "vethguard/base/secret.h"
#include "supervisor/control/call.h"
#include "supervisor/session/session.h"

static void add_fault(void *context, const char *fault)
{
	json_put_string(context, NULL, slice_from_string(fault), 0);
}

static void answer(struct control_call *call, struct attachment *a)
{
	struct attachment_view view;
	struct buf out;
	struct json j;

	control_view_for(call, a, &view);
	buf_init_secret(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	control_open_sandbox(&j, NULL, &view);
	if (call->token[0])
		json_put_literal(&j, "token", call->token);
	else
		json_put_null(&j, "token");
	json_put_array(&j, "warnings");
	control_add_lines(&j, view.notes);
	attachment_verify(a, add_fault, &j);
	json_put_end_array(&j);
	json_put_end_object(&j);
	secret_wipe(call->token, sizeof(call->token));
	control_answer(call, 201, &j, &out);
}

static void on_created(void *context, const struct attach_result *result)
{
	struct control_call *call = context;

	if (control_succeeded(call, result, result->attachment))
		answer(call, result->attachment);
}

void control_run_create(struct control *control, struct control_call *call)
{
	struct attach_request *request = &call->attach.request;
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_session(call->body, &call->attach, fault)) {
		control_refuse(call, 422, fault);
		return;
	}
	if (!request->session.by_certificate && !request->session.by_address &&
	        session_token_make(&request->session, call->token) != 0) {
		control_refuse(call, 500, "no token can be made");
		return;
	}
	request->caller = control_identity_of(call);
	request->caller_pid = call->peer.pid;
	if (request->name)
		snprintf(call->name, sizeof(call->name), "%s", request->name);
	attachments_attach(control_attachments(control), request, on_created, call);
}

static void on_token_revoked(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct attachment_view view;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, true))
		return;
	if (result->attachment)
		attachment_view(result->attachment, &view);
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	if (result->attachment)
		json_put_literal(&j, "session", view.name);
	else
		json_put_null(&j, "session");
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

void control_run_revoke_token(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	const char *signer, *id;

	if (!control_body_revoke_token(call->body, &signer, &id, fault))
		control_refuse(call, 422, fault);
	else
		attachments_revoke_token(
		        control_attachments(control), signer, id, on_token_revoked, call);
}
