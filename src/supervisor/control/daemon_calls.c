/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about the daemon as a whole. */
#include <errno.h>

#include "supervisor/control/call.h"

static void on_all_reloaded(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, true))
		return;
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_uint(&j, "reloaded", result->reloaded);
	json_put_uint(&j, "failed", result->failed);
	control_put_lines(&j, "warnings", result->warnings);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

void control_run_reload_all(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_empty(call->body, fault))
		control_refuse(call, 422, fault);
	else
		attachments_reload_all(control_attachments(control), on_all_reloaded, call);
}

void control_run_status(struct control *control, struct control_call *call)
{
	struct attachments_status status;
	struct buf out;
	struct json j;

	attachments_status(control_attachments(control), &status);
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	control_put_status(&j, &status);
	control_answer(call, 200, &j, &out);
}

static void on_head(void *context, const char *fingerprint)
{
	struct control_call *call = context;
	struct attachments_status status;
	struct buf out;
	struct json j;

	if (!control_is_open(call))
		return;
	attachments_status(control_attachments(call->control), &status);
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	control_put_audit(&j, &status, fingerprint);
	control_answer(call, 200, &j, &out);
}

void control_run_audit(struct control *control, struct control_call *call)
{
	struct control_owner *owner = control_owner(control);
	int rc = owner->head(owner, on_head, call);

	if (rc)
		control_refuse(call, 503,
		        rc == -EBUSY ? "too many callers ask for that at the moment: try again"
		                     : "no memory");
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
	control_answer(call, 200, &j, &out);
}

void control_run_upgrade(struct control *control, struct control_call *call)
{
	struct control_owner *owner = control_owner(control);
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_empty(call->body, fault))
		control_refuse(call, 422, fault);
	else
		owner->upgrade(owner, on_upgraded, call);
}

static void on_roles(
        void *context, uint64_t id, const struct confinement_report *reports, size_t count)
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
	if (!j.failed) {
		control_answer(call, 200, &j, &out);
		return;
	}
	control_refuse(call, 503, "the list is too large for one answer");
	buf_fini(&out);
}

void control_run_roles(struct control *control, struct control_call *call)
{
	struct control_owner *owner = control_owner(control);
	int rc = owner->roles(owner, on_roles, call);

	if (rc == -EBUSY)
		control_refuse(call, 503, "another caller's question is under way: try again");
	else if (rc)
		control_refuse(call, 503, "no memory");
}
