/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about namespaces that are prepared, claimed and released. */
#include <stdio.h>

#include "supervisor/control/call.h"

#define CREATED 201
#define PREPARED_TEXT_BYTES 320 /* usually more than one needs in a list */

static void on_prepared(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct attachment_view view;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, result->attachment))
		return;
	control_view_for(call, result->attachment, &view);
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	control_put_prepared(&j, NULL, &view);
	control_answer(call, CREATED, &j, &out);
}

static void on_claimed(void *context, const struct attach_result *result)
{
	struct control_call *call = context;

	if (control_succeeded(call, result, result->attachment))
		control_answer_created(call, result->attachment, NULL);
}

static void attach(
        struct control *control, struct control_call *call, attach_done done, const char *fault)
{
	struct attach_request *request = &call->attach.request;

	if (fault) {
		control_refuse(call, 422, fault);
		return;
	}
	request->caller = control_identity_of(call);
	request->caller_pid = call->peer.pid;
	if (request->name)
		snprintf(call->name, sizeof(call->name), "%s", request->name);
	attachments_attach(control_attachments(control), request, done, call);
}

void control_run_prepare(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	bool good = control_body_prepare(call->body, &call->attach, fault);

	attach(control, call, on_prepared, good ? NULL : fault);
}

void control_run_claim(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];
	bool good = control_body_claim(call->body, &call->attach, fault);

	attach(control, call, on_claimed, good ? NULL : fault);
}

static bool put_one(void *context, struct attachment *a)
{
	struct json *j = context;
	struct attachment_view view;

	attachment_view(a, &view);
	if (view.state == ATTACH_PREPARED)
		control_put_prepared(j, NULL, &view);
	return !j->failed;
}

void control_run_prepared(struct control *control, struct control_call *call)
{
	struct attachments *all = control_attachments(control);
	struct buf out;
	struct json j;

	buf_init(&out, CONTROL_ANSWER_MAX);
	(void)!buf_reserve(&out, attachments_count(all) * PREPARED_TEXT_BYTES);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_array(&j, "prepared");
	attachments_for_each(all, put_one, &j);
	json_put_end_array(&j);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

/* The end of a claim. */

static void put_released(struct json *j, struct control_call *call,
        const struct attach_result *result, const struct attachment_view *view)
{
	json_put_object(j, NULL);
	json_put_string(j, "name", slice_from_string(call->name), 0);
	json_put_string(j, "netns", slice_from_string(view->netns), 0);
	json_put_literal(j, "addresses", view->same_addresses ? "same" : "own");
	control_put_summary(j, result->summary);
	json_put_end_object(j);
}

/* The next sandbox with this namespace must find nothing of this one: anything left is a fault,
 * even if the rest was successful. */
static bool is_clean(struct control_call *call, const struct attach_traces *traces)
{
	char text[256];

	if (!traces->gate && !traces->names && !traces->state && !traces->workers)
		return true;
	snprintf(text, sizeof(text),
	        "it has no network any more, but this is left of it:%s%s%s%s; do not prepare its "
	        "namespace again",
	        traces->gate ? " its gate" : "", traces->names ? " its synthetic names" : "",
	        traces->state ? " its state file" : "", traces->workers ? " a worker" : "");
	control_refuse(call, 500, text);
	return false;
}

static void on_released(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	struct attachment_view view;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, result->attachment && result->traces) ||
	        !is_clean(call, result->traces))
		return;
	attachment_view(result->attachment, &view);
	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	put_released(&j, call, result, &view);
	control_answer(call, 200, &j, &out);
}

void control_run_release(struct control *control, struct control_call *call)
{
	char fault[CONTROL_FAULT_MAX];

	if (!control_body_empty(call->body, fault))
		control_refuse(call, 422, fault);
	else
		attachments_give_back(control_attachments(control), call->name, on_released, call);
}
