/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of sandboxes. All members are always present; one without a value is null. Nothing here
 * holds a credential's value: this process knows only placeholders and where the values come from.
 */
#include <jansson.h>
#include <stdio.h>

#include "vethguard/policy/expose.h"
#include "vethguard/wire/json.h"
#include "supervisor/control/call.h"

#define BRIEF_REASON_MAX 128 /* bytes */
#define SOURCE_SHOWN_MAX 256 /* bytes of a credential's source */

static void put_reason(struct json *j, const struct attachment_view *v)
{
	if (v->reason && *v->reason)
		json_put_string(
		        j, "reason", slice_from_string(v->reason), v->brief ? BRIEF_REASON_MAX : 0);
	else
		json_put_null(j, "reason");
}

/* The keys were checked at the attach. */
static void put_pairs(struct json *j, const char *key, const struct attach_pairs *pairs)
{
	if (!pairs) {
		json_put_null(j, key);
		return;
	}
	json_put_object(j, key);
	for (size_t i = 0; i < pairs->count; i++)
		json_put_string(
		        j, pairs->items[i].key, slice_from_string(pairs->items[i].value), 0);
	json_put_end_object(j);
}

/* Writes the networks that a session may connect from; empty: anywhere; null: it is not a session.
 */
static void put_from(struct json *j, const struct session_token *session)
{
	char text[IP_TEXT_MAX], network[IP_TEXT_MAX + 8];

	if (!session) {
		json_put_null(j, "from");
		return;
	}
	json_put_array(j, "from");
	for (size_t i = 0; i < session->from_count; i++) {
		snprintf(network, sizeof(network), "%s/%u", ip_format(&session->from[i].base, text),
		        session->from[i].bits);
		json_put_literal(j, NULL, network);
	}
	json_put_end_array(j);
}

static void put_attachment(struct json *j, const struct attachment_view *v)
{
	json_put_object(j, "attachment");
	json_put_literal(j, "kind", attach_kind_name(v->kind));
	control_put_text(j, "interface", v->interface);
	control_put_text(j, "netns", v->brief ? NULL : v->netns);
	control_put_text(j, "listen", v->listen);
	put_from(j, v->session);
	control_put_pid(j, "pid", v->pid);
	if (v->container && v->container->id[0]) {
		json_put_object(j, "container");
		control_put_text(j, "engine", v->container->engine);
		control_put_text(j, "id", v->container->id);
		control_put_text(j, "name", v->container->name);
		json_put_end_object(j);
	} else {
		json_put_null(j, "container");
	}
	json_put_end_object(j);
}

/* The names of credentials and their sources. */
static void put_credentials(struct json *j, const struct policy *policy)
{
	if (!policy) {
		json_put_null(j, "credentials");
		return;
	}
	json_put_object(j, "credentials");
	for (uint32_t i = 0; i < policy_credential_count(policy); i++) {
		char name[POLICY_NAME_MAX + 1], source[POLICY_SOURCE_TEXT_MAX];
		struct policy_credential credential;

		policy_credential(policy, i, &credential);
		snprintf(name, sizeof(name), "%.*s", SLICE_ARG(credential.name));
		policy_source_text(&credential, source);
		json_put_string(j, name, slice_from_string(source), SOURCE_SHOWN_MAX);
	}
	json_put_end_object(j);
}

static void put_exposes(struct json *j, const struct policy *policy)
{
	char text[POLICY_EXPOSE_TEXT_MAX];

	if (!policy) {
		json_put_null(j, "exposes");
		return;
	}
	json_put_array(j, "exposes");
	for (uint32_t i = 0; i < policy_expose_count(policy); i++) {
		policy_expose_text(policy, i, text, sizeof(text));
		json_put_string(j, NULL, slice_from_string(text), 0);
	}
	json_put_end_array(j);
}

static void put_policy(struct json *j, const struct attachment_view *v)
{
	json_put_object(j, "policy");
	control_put_text(j, "path", v->brief ? NULL : v->policy_path);
	json_put_string(j, "name", v->policy_name, 0);
	json_put_string(j, "fingerprint", v->policy_fingerprint, 0);
	json_put_uint(j, "generation", v->generation);
	json_put_bool(j, "observe", v->observe);
	put_credentials(j, v->brief ? NULL : v->policy);
	put_exposes(j, v->brief ? NULL : v->policy);
	json_put_end_object(j);
}

static void put_addresses(struct json *j, const struct attachment_view *v)
{
	control_put_ip(j, "gate4", &v->gate4);
	control_put_ip(j, "gate6", &v->gate6);
	control_put_ip(j, "sandbox4", &v->sandbox4);
	control_put_ip(j, "sandbox6", &v->sandbox6);
}

void control_open_sandbox(struct json *j, const char *key, const struct attachment_view *v)
{
	char id[17] = "";

	for (unsigned i = 0; i < 16; i++)
		id[i] = "0123456789abcdef"[v->id >> (60 - 4 * i) & 15];
	json_put_object(j, key);
	json_put_string(j, "name", slice_from_string(v->name), 0);
	json_put_literal(j, "id", id);
	json_put_literal(j, "state", attach_state_name(v->state));
	json_put_bool(j, "paused", v->paused);
	put_reason(j, v);
	put_attachment(j, v);
	put_policy(j, v);
	put_pairs(j, "labels", v->brief ? NULL : &v->labels);
	put_pairs(j, "vars", v->brief ? NULL : &v->vars);
	control_put_time(j, "created", v->created_ms);
	control_put_time(j, "expires", v->expires_ms);
	json_put_bool(j, "claimed", v->claimed);
	json_put_object(j, "addresses");
	put_addresses(j, v);
	json_put_end_object(j);
	json_put_uint(j, "proxy_port", v->proxy_port);
	json_put_object(j, "owner");
	json_put_uint(j, "uid", v->uid);
	json_put_uint(j, "gid", v->gid);
	json_put_end_object(j);
	json_put_object(j, "worker");
	control_put_pid(j, "pid", v->worker_pid);
	json_put_array(j, "further");
	for (size_t i = 0; i < v->further_count; i++)
		control_put_pid(j, NULL, v->further[i]);
	json_put_end_array(j);
	json_put_uint(j, "restarts", v->restarts);
	json_put_uint(j, "retired", v->retired);
	json_put_end_object(j);
	json_put_object(j, "fence");
	json_put_uint(j, "mended", v->mended);
	json_put_end_object(j);
}

void control_put_prepared(struct json *j, const char *key, const struct attachment_view *v)
{
	json_put_object(j, key);
	json_put_string(j, "name", slice_from_string(v->name), 0);
	json_put_literal(j, "state", attach_state_name(v->state));
	control_put_text(j, "netns", v->netns);
	json_put_literal(j, "addresses", v->same_addresses ? "same" : "own");
	put_addresses(j, v);
	control_put_time(j, "created", v->created_ms);
	json_put_end_object(j);
}
