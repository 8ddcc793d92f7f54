/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of sandboxes and of the daemon. All members are always present; one without a value is
 * null. Nothing here holds a credential's value: this process knows only placeholders and where the
 * values come from.
 */
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "vethguard/policy/expose.h"
#include "vethguard/base/version.h"
#include "vethguard/wire/json.h"
#include "supervisor/control/call.h"

#define TIME_TEXT_MAX 40
#define BRIEF_REASON_MAX 128 /* bytes */
#define SOURCE_SHOWN_MAX 256 /* bytes of a credential's source */

void control_put_time(struct json *j, const char *key, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	char date[24], text[TIME_TEXT_MAX];
	struct tm tm;

	if (ms <= 0 || !gmtime_r(&seconds, &tm) ||
	        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
		json_put_null(j, key);
		return;
	}
	snprintf(text, sizeof(text), "%s.%03uZ", date, (unsigned)(ms % 1000));
	json_put_literal(j, key, text);
}

static void put_text(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		json_put_string(j, key, slice_from_string(text), 0);
	else
		json_put_null(j, key);
}

static void put_slice(struct json *j, const char *key, struct slice text)
{
	if (text.n)
		json_put_string(j, key, text, 0);
	else
		json_put_null(j, key);
}

static void put_reason(struct json *j, const struct attachment_view *v)
{
	if (v->reason && *v->reason)
		json_put_string(
		        j, "reason", slice_from_string(v->reason), v->brief ? BRIEF_REASON_MAX : 0);
	else
		json_put_null(j, "reason");
}

static void put_ip(struct json *j, const char *key, const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	if (ip->family)
		json_put_literal(j, key, ip_format(ip, text));
	else
		json_put_null(j, key);
}

static void put_pid(struct json *j, const char *key, pid_t pid)
{
	if (pid > 0)
		json_put_int(j, key, pid);
	else
		json_put_null(j, key);
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
	put_text(j, "interface", v->interface);
	put_text(j, "netns", v->brief ? NULL : v->netns);
	put_text(j, "listen", v->listen);
	put_from(j, v->session);
	put_pid(j, "pid", v->pid);
	if (v->container && v->container->id[0]) {
		json_put_object(j, "container");
		put_text(j, "engine", v->container->engine);
		put_text(j, "id", v->container->id);
		put_text(j, "name", v->container->name);
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
	put_text(j, "path", v->brief ? NULL : v->policy_path);
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
	json_put_object(j, "addresses");
	put_ip(j, "gate4", &v->gate4);
	put_ip(j, "gate6", &v->gate6);
	put_ip(j, "sandbox4", &v->sandbox4);
	put_ip(j, "sandbox6", &v->sandbox6);
	json_put_end_object(j);
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
	put_addresses(j, v);
	json_put_uint(j, "proxy_port", v->proxy_port);
	json_put_object(j, "owner");
	json_put_uint(j, "uid", v->uid);
	json_put_uint(j, "gid", v->gid);
	json_put_end_object(j);
	json_put_object(j, "worker");
	put_pid(j, "pid", v->worker_pid);
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
	put_text(j, "netns", v->netns);
	json_put_literal(j, "addresses", v->same_addresses ? "same" : "own");
	put_ip(j, "gate4", &v->gate4);
	put_ip(j, "gate6", &v->gate6);
	put_ip(j, "sandbox4", &v->sandbox4);
	put_ip(j, "sandbox6", &v->sandbox6);
	control_put_time(j, "created", v->created_ms);
	json_put_end_object(j);
}

static void put_proxy(struct json *j, const struct attach_env *env)
{
	const struct ip *gate = env->gate4.family ? &env->gate4 : &env->gate6;
	char text[IP_TEXT_MAX], url[IP_TEXT_MAX + 32];

	if (!gate->family || env->proxy_port == 0) {
		json_put_null(j, "proxy");
		return;
	}
	ip_format(gate, text);
	snprintf(url, sizeof(url), gate->family == 6 ? "http://[%s]:%u" : "http://%s:%u", text,
	        (unsigned)env->proxy_port);
	json_put_literal(j, "proxy", url);
}

/* Writes the first listener (with TLS, or without) that is reachable from other hosts, otherwise
 * one on this host's loopback. null: there is none, or it listens at every address and the
 * configuration gives no name for it. */
static void put_place(struct json *j, const char *key, const struct config_gateway *gateway,
        enum config_gateway_kind kind)
{
	const struct config_gateway_listener *found = NULL;
	char text[POLICY_HOST_MAX + IP_TEXT_MAX + 16], ip[IP_TEXT_MAX];
	bool named;

	for (size_t i = 0; i < gateway->listener_count; i++) {
		const struct config_gateway_listener *l = &gateway->listeners[i];

		if (l->kind == kind && (!found || ip_classify(&found->address) == IP_LOOPBACK))
			found = l;
	}
	named = found && gateway->name[0] && ip_classify(&found->address) != IP_LOOPBACK;
	if (named)
		snprintf(text, sizeof(text), "%s:%u", gateway->name, (unsigned)found->port);
	else if (found)
		snprintf(text, sizeof(text), found->address.family == 6 ? "[%s]:%u" : "%s:%u",
		        ip_format(&found->address, ip), (unsigned)found->port);
	if (!found || (!named && ip_classify(&found->address) == IP_UNSPECIFIED))
		json_put_null(j, key);
	else
		json_put_literal(j, key, text);
}

static void put_gateway(struct json *j, const struct config_gateway *gateway)
{
	if (!gateway) {
		json_put_null(j, "gateway");
		return;
	}
	json_put_object(j, "gateway");
	put_place(j, "tls", gateway, CONFIG_GATEWAY_TLS);
	put_place(j, "plain", gateway, CONFIG_GATEWAY_PLAIN);
	json_put_end_object(j);
}

void control_put_env(struct json *j, const char *name, const struct attach_env *env)
{
	char text[IP_TEXT_MAX];

	json_put_object(j, NULL);
	json_put_string(j, "name", slice_from_string(name), 0);
	json_put_array(j, "variables");
	for (size_t i = 0; i < env->count; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "name", env->items[i].name, 0);
		json_put_string(j, "value", env->items[i].value, 0);
		json_put_end_object(j);
	}
	json_put_end_array(j);
	json_put_string(j, "ca_pem", slice_from_string(env->root_pem), 0);
	json_put_array(j, "nameservers");
	if (env->gate4.family)
		json_put_literal(j, NULL, ip_format(&env->gate4, text));
	if (env->gate6.family)
		json_put_literal(j, NULL, ip_format(&env->gate6, text));
	json_put_end_array(j);
	put_proxy(j, env);
	put_gateway(j, env->gateway);
	json_put_end_object(j);
}

static void put_worker(struct json *j, const struct message_worker_stats *w)
{
	static const char *const kinds[] = {"requests", "tunnels", "queries", "visits"};

	_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == MESSAGE_STATS_KINDS,
	        "every kind that is counted has a name");
	if (!w) {
		json_put_null(j, "worker");
		return;
	}
	json_put_object(j, "worker");
	json_put_uint(j, "generation", w->generation);
	for (size_t i = 0; i < MESSAGE_STATS_KINDS; i++) {
		json_put_object(j, kinds[i]);
		json_put_uint(j, "allowed", w->kinds[i].allowed);
		json_put_uint(j, "denied", w->kinds[i].denied);
		json_put_uint(j, "failed", w->kinds[i].failed);
		json_put_end_object(j);
	}
	json_put_uint(j, "findings", w->findings);
	json_put_uint(j, "bytes_out", w->bytes_out);
	json_put_uint(j, "bytes_in", w->bytes_in);
	json_put_uint(j, "connections", w->connections);
	json_put_uint(j, "connections_open", w->connections_open);
	json_put_uint(j, "streams_open", w->streams_open);
	json_put_uint(j, "exchanges_open", w->exchanges_open);
	json_put_uint(j, "flows_open", w->flows_open);
	json_put_uint(j, "visits_open", w->visits_open);
	json_put_uint(j, "upstreams_open", w->upstreams_open);
	json_put_uint(j, "upstreams_idle", w->upstreams_idle);
	json_put_uint(j, "names_kept", w->names_kept);
	json_put_uint(j, "backlog_bytes", w->backlog_bytes);
	json_put_uint(j, "heap_bytes", w->heap_bytes);
	json_put_uint(j, "queries_refused", w->queries_refused);
	json_put_uint(j, "refusals_delayed", w->refusals_delayed);
	json_put_uint(j, "limits_met", w->limits_met);
	json_put_end_object(j);
}

/* The limits, and how many of the dropped packets above exceeded each. */
static void put_bounds(struct json *j, const struct attach_stats *stats)
{
	json_put_object(j, "limits");
	json_put_uint(j, "connections_per_s", stats->limits.connections_per_s);
	json_put_uint(j, "dns_queries_per_s", stats->limits.dns_queries_per_s);
	json_put_uint(j, "packet_copies_per_s", stats->limits.packet_copies_per_s);
	json_put_uint(j, "udp_datagrams_per_s", stats->limits.udp_datagrams_per_s);
	json_put_uint(j, "refusals_per_s", stats->limits.refusals_per_s);
	json_put_end_object(j);
	json_put_object(j, "beyond_limits");
	json_put_uint(j, "connections", stats->dropped.connections);
	json_put_uint(j, "queries", stats->dropped.queries);
	json_put_uint(j, "datagrams", stats->dropped.datagrams);
	json_put_end_object(j);
}

static void put_policy_limits(struct json *j, const struct attach_stats *stats)
{
	json_put_array(j, "policy_limits");
	for (size_t i = 0; i < stats->policy_limit_count; i++) {
		const struct attach_limit *l = &stats->policy_limits[i];

		json_put_object(j, NULL);
		put_slice(j, "rule", l->rule);
		json_put_literal(j, "kind", policy_limit_kind_name(l->limit.kind));
		json_put_uint(j, "used", l->used);
		json_put_uint(j, "amount", l->limit.amount);
		json_put_uint(j, "period_s", l->limit.period_s);
		json_put_bool(j, "budget", l->limit.budget);
		put_slice(j, "shared", l->limit.shared);
		json_put_end_object(j);
	}
	json_put_end_array(j);
}

void control_put_stats(
        struct json *j, const struct attachment_view *view, const struct attach_stats *stats)
{
	json_put_object(j, NULL);
	json_put_string(j, "name", slice_from_string(view->name), 0);
	json_put_literal(j, "state", attach_state_name(view->state));
	json_put_int(j, "serving_ms", stats->serving_ms);
	json_put_uint(j, "packets_dropped", stats->dropped.packets);
	put_bounds(j, stats);
	put_policy_limits(j, stats);
	json_put_uint(j, "restarts", stats->restarts);
	json_put_uint(j, "retired", stats->retired);
	json_put_uint(j, "mended", stats->mended);
	put_worker(j, stats->worker);
	json_put_end_object(j);
}

void control_put_audit(struct json *j, const struct attachments_status *s, const char *fingerprint)
{
	json_put_object(j, NULL);
	put_text(j, "path", s->audit_path);
	json_put_bool(j, "recording", s->recording);
	put_text(j, "fingerprint", fingerprint);
	json_put_end_object(j);
}

void control_put_status(struct json *j, const struct attachments_status *s)
{
	json_put_object(j, NULL);
	json_put_literal(j, "version", VERSION_TEXT);
	control_put_time(j, "started", s->started_ms);
	json_put_bool(j, "ready", s->ready);
	json_put_uint(j, "generation", s->generation);
	put_text(j, "config", s->config_path);
	json_put_object(j, "audit");
	put_text(j, "path", s->audit_path);
	json_put_bool(j, "recording", s->recording);
	json_put_end_object(j);
	json_put_object(j, "sandboxes");
	json_put_uint(j, "count", s->count);
	json_put_uint(j, "serving", s->serving);
	json_put_uint(j, "restarting", s->restarting);
	json_put_uint(j, "failed", s->failed);
	json_put_uint(j, "prepared", s->prepared);
	json_put_uint(j, "spare_workers", s->spare_workers);
	json_put_end_object(j);
	json_put_object(j, "processes");
	put_pid(j, "supervisor", s->pid);
	put_pid(j, "keeper", s->keeper_pid);
	put_pid(j, "recorder", s->recorder_pid);
	json_put_end_object(j);
	json_put_end_object(j);
}
