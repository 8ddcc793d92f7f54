/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls about a sandbox's credentials. No answer contains a value, because this process knows none.
 * A fingerprint is the keeper's mark of a value; it tells only whether two values are the same.
 */
#include <stdio.h>

#include "supervisor/control/call.h"

#define MARK_TEXT (2 * MESSAGE_CREDENTIAL_MARK_BYTES + 1)

static void put_mark(struct json *j, struct slice mark)
{
	char text[MARK_TEXT];

	for (size_t i = 0; i < mark.n; i++)
		snprintf(text + 2 * i, 3, "%02x", (uint8_t)mark.p[i]);
	if (mark.n)
		json_put_literal(j, "fingerprint", text);
	else
		json_put_null(j, "fingerprint");
}

/* Writes the destinations of the rules that attach the credential. */
static void put_destinations(struct json *j, const struct policy *policy, uint32_t credential)
{
	json_put_array(j, "to");
	for (uint32_t i = 0; i < policy_rule_count(policy); i++)
		if (policy_rule_credential(policy, i) == credential)
			json_put_string(j, NULL, policy_rule_to(policy, i), 0);
	json_put_end_array(j);
}

static const char *state_of(const struct attach_credentials *c, uint32_t i)
{
	const struct message_keeper_credentials *k = c->keeper;

	if (i >= k->count)
		return "unknown";
	if (k->credentials[i].revoked)
		return "revoked";
	if (k->credentials[i].held)
		return "held";
	if (k->credentials[i].fetching)
		return "fetching";
	return k->credentials[i].failed_ms ? "failed" : "empty";
}

static void put_uses(struct json *j, const struct attach_credentials *c, uint32_t i)
{
	const struct message_worker_credentials *w = c->worker;

	if (w && i < w->count)
		json_put_uint(j, "uses", w->credentials[i].uses);
	else
		json_put_null(j, "uses");
	control_put_time(
	        j, "last_used", w && i < w->count ? (int64_t)w->credentials[i].last_used_ms : 0);
}

static void put_life(struct json *j, const struct attach_credentials *c, uint32_t i)
{
	static const struct message_keeper_credentials none;
	const struct message_keeper_credentials *k = i < c->keeper->count ? c->keeper : &none;

	control_put_time(j, "fetched", (int64_t)k->credentials[i].fetched_ms);
	control_put_time(j, "ends", (int64_t)k->credentials[i].ends_ms);
	put_mark(j, k->credentials[i].mark);
	put_uses(j, c, i);
	json_put_uint(j, "fetches", k->credentials[i].fetches);
	json_put_uint(j, "failures", k->credentials[i].failures);
	if (k->credentials[i].failed_ms)
		json_put_string(j, "error", k->credentials[i].error, 0);
	else
		json_put_null(j, "error");
	control_put_time(j, "failed", (int64_t)k->credentials[i].failed_ms);
}

static void put_credential(
        struct json *j, const char *key, const struct attach_credentials *c, uint32_t i)
{
	char source[POLICY_SOURCE_TEXT_MAX], sent[POLICY_INJECT_TEXT_MAX];
	struct policy_credential credential;

	policy_credential(c->policy, i, &credential);
	json_put_object(j, key);
	json_put_string(j, "name", credential.name, 0);
	json_put_string(j, "source", slice_from_string(policy_source_text(&credential, source)), 0);
	json_put_string(j, "sent_as", slice_from_string(policy_inject_text(&credential, sent)), 0);
	put_destinations(j, c->policy, i);
	json_put_literal(j, "state", state_of(c, i));
	put_life(j, c, i);
	json_put_end_object(j);
}

static void on_list(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	const struct attach_credentials *c = result->credentials;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, c) || !c)
		return;
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_string(&j, "name", slice_from_string(call->name), 0);
	json_put_array(&j, "credentials");
	for (uint32_t i = 0; i < policy_credential_count(c->policy); i++)
		put_credential(&j, NULL, c, i);
	json_put_end_array(&j);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

/* Writes what CHECK or ROTATE has fetched, and whether it is the value in use. */
static void put_fetched(struct json *j, const struct attach_credentials *c)
{
	const struct message_keeper_credentials *k = c->keeper;

	if (k->mark.n == 0) {
		json_put_null(j, "fetched");
		return;
	}
	json_put_object(j, "fetched");
	put_mark(j, k->mark);
	if (k->ttl_s)
		json_put_uint(j, "ttl_s", k->ttl_s);
	else
		json_put_null(j, "ttl_s");
	json_put_bool(j, "in_use",
	        c->credential < k->count &&
	                slice_equals(k->mark, k->credentials[c->credential].mark));
	json_put_end_object(j);
}

static void on_done(void *context, const struct attach_result *result)
{
	struct control_call *call = context;
	const struct attach_credentials *c = result->credentials;
	struct attachment_view view;
	struct buf out;
	struct json j;

	if (!control_succeeded(call, result, c && result->attachment) || !c)
		return;
	control_view_for(call, result->attachment, &view);
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_string(&j, "name", slice_from_string(call->name), 0);
	put_credential(&j, "credential", c, c->credential);
	put_fetched(&j, c);
	json_put_uint(&j, "ended", c->ended);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

static void run(
        struct control *control, struct control_call *call, enum message_credential_what what)
{
	char fault[CONTROL_FAULT_MAX];
	const char *credential;

	if (!control_body_credential(call->body, &credential, fault))
		control_refuse(call, 422, fault);
	else
		attachments_credentials(
		        control_attachments(control), call->name, what, credential, on_done, call);
}

void control_run_credentials(struct control *control, struct control_call *call)
{
	attachments_credentials(control_attachments(control), call->name, MESSAGE_CREDENTIAL_LOOK,
	        NULL, on_list, call);
}

void control_run_credential_check(struct control *control, struct control_call *call)
{
	run(control, call, MESSAGE_CREDENTIAL_CHECK);
}

void control_run_credential_rotate(struct control *control, struct control_call *call)
{
	run(control, call, MESSAGE_CREDENTIAL_ROTATE);
}

void control_run_credential_revoke(struct control *control, struct control_call *call)
{
	run(control, call, MESSAGE_CREDENTIAL_REVOKE);
}
