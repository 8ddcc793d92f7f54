/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about requests that wait for a person. */
#include <stdio.h>

#include "supervisor/ask/asks.h"
#include "supervisor/control/call.h"

#define ID_DIGITS 16

static void put_url(struct json *j, const struct message_worker_ask *ask)
{
	static char url[POLICY_HOST_MAX + POLICY_PATH_MAX + MESSAGE_ASK_QUERY_MAX + 64];

	attach_ask_url(ask, url, sizeof(url));
	json_put_string(j, "url", slice_from_string(url), 0);
}

/* What the sandbox proposes. Methods and paths are words with a space between them. */
static void put_proposal(struct json *j, const struct policy_proposal *p)
{
	json_put_string(j, "method", slice_from_string(p->methods), 0);
	json_put_string(j, "url", slice_from_string(p->to), 0);
	json_put_string(j, "paths", slice_from_string(p->paths), 0);
	json_put_string(j, "reason", slice_from_string(p->reason), 0);
	json_put_uint(j, "bytes", 0);
}

static void put_request(struct json *j, const struct message_worker_ask *ask)
{
	json_put_string(j, "rule", ask->rule, 0);
	json_put_string(j, "method", ask->method, 0);
	put_url(j, ask);
	json_put_uint(j, "bytes", ask->bytes);
}

static void put_ask(void *context, const struct attach_ask *a)
{
	struct json *j = context;
	char id[ID_DIGITS + 1], rule[ID_DIGITS + 16];

	snprintf(id, sizeof(id), "%016llx", (unsigned long long)a->id);
	json_put_object(j, NULL);
	json_put_literal(j, "id", id);
	json_put_literal(j, "state", a->granted ? "granted" : "waiting");
	json_put_string(j, "sandbox", slice_from_string(a->sandbox), 0);
	json_put_bool(j, "proposed", a->proposal != NULL);
	if (a->proposal) {
		snprintf(rule, sizeof(rule), "proposal-%s", id);
		json_put_literal(j, "rule", rule);
		put_proposal(j, a->proposal);
	} else {
		put_request(j, a->ask);
	}
	control_put_time(j, "since", a->since_ms);
	if (a->ends)
		json_put_uint(j, "left_s", a->left_s);
	else
		json_put_null(j, "left_s");
	json_put_bool(j, "whole_rule", a->whole);
	if (a->granted)
		json_put_string(j, "by", slice_from_string(a->by), 0);
	else
		json_put_null(j, "by");
	json_put_end_object(j);
}

void control_run_asks(struct control *control, struct control_call *call)
{
	struct buf out;
	struct json j;

	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_array(&j, "asks");
	attachments_asks(control_attachments(control), put_ask, &j);
	json_put_end_array(&j);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

/* Answers with the request's id and sandbox; compared: and with what a proposal would change. */
static void answer(struct control_call *call, const struct attach_result *result, bool compared)
{
	struct attachment_view view;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, result->attachment))
		return;
	attachment_view(result->attachment, &view);
	call->id = view.id;
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_string(&j, "id", slice_from_string(call->name), 0);
	json_put_string(&j, "sandbox", slice_from_string(view.name), 0);
	if (compared)
		control_put_lines(&j, "diff", result->diff);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

static void on_decided(void *context, const struct attach_result *result)
{
	answer(context, result, false);
}

static void on_compared(void *context, const struct attach_result *result)
{
	answer(context, result, true);
}

/* Reads the id of the path: 16 hex digits. */
static bool read_id(struct control_call *call, uint64_t *out)
{
	*out = 0;
	for (const char *p = call->name; *p; p++) {
		int digit = slice_hex_digit(*p);

		if (digit < 0 || p - call->name >= ID_DIGITS)
			break;
		*out = *out << 4 | (uint64_t)digit;
	}
	if (strlen(call->name) == ID_DIGITS && strspn(call->name, "0123456789abcdef") == ID_DIGITS)
		return true;
	control_refuse(call, 404, "an id has 16 hex digits in small letters: GET /v1/asks");
	return false;
}

void control_run_proposed(struct control *control, struct control_call *call)
{
	uint64_t id;

	if (read_id(call, &id))
		attachments_propose(control_attachments(control), id, on_compared, call);
}

static void decide(struct control *control, struct control_call *call, struct attach_decision *d)
{
	char by[32];

	snprintf(by, sizeof(by), "uid %u", (unsigned)call->peer.uid);
	d->by = by;
	if (read_id(call, &d->id))
		attachments_decide(control_attachments(control), d, on_decided, call);
	d->by = NULL;
}

void control_run_approve(struct control *control, struct control_call *call)
{
	struct attach_decision d = {.approved = true};
	char fault[CONTROL_FAULT_MAX];

	if (control_body_approve(call->body, &d, fault))
		decide(control, call, &d);
	else
		control_refuse(call, 422, fault);
}

void control_run_refuse(struct control *control, struct control_call *call)
{
	struct attach_decision d = {.approved = false};
	char fault[CONTROL_FAULT_MAX];

	if (control_body_pause(call->body, &d.reason, fault))
		decide(control, call, &d);
	else
		control_refuse(call, 422, fault);
}
