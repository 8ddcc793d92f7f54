/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of figures: what a sandbox has done, and how the daemon is. */
#include <jansson.h>

#include "vethguard/base/version.h"
#include "vethguard/wire/json.h"
#include "supervisor/control/call.h"

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

/* What hosts share. */
static void put_quota(struct json *j, const struct attach_limit *l)
{
	static const char *const states[] = {[QUOTA_ASKING] = "asking",
	        [QUOTA_OPEN] = "open",
	        [QUOTA_USED_UP] = "used-up",
	        [QUOTA_AWAY] = "away"};

	_Static_assert(sizeof(states) / sizeof(states[0]) == QUOTA_STATE_COUNT, "a name per state");
	control_put_text(j, "hosts", policy_hosts_word(l->limit.hosts));
	if (!l->quota_known) {
		json_put_null(j, "used_by_hosts");
		json_put_null(j, "quota");
		return;
	}
	json_put_uint(j, "used_by_hosts", l->used_by_hosts);
	json_put_literal(j, "quota", states[l->quota]);
}

static void put_policy_limits(struct json *j, const struct attach_stats *stats)
{
	json_put_array(j, "policy_limits");
	for (size_t i = 0; i < stats->policy_limit_count; i++) {
		const struct attach_limit *l = &stats->policy_limits[i];

		json_put_object(j, NULL);
		control_put_slice(j, "rule", l->rule);
		json_put_literal(j, "kind", policy_limit_kind_name(l->limit.kind));
		json_put_uint(j, "used", l->used);
		json_put_uint(j, "amount", l->limit.amount);
		json_put_uint(j, "period_s", l->limit.period_s);
		json_put_bool(j, "budget", l->limit.budget);
		control_put_slice(j, "shared", l->limit.shared);
		put_quota(j, l);
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
	control_put_text(j, "path", s->audit_path);
	json_put_bool(j, "recording", s->recording);
	control_put_text(j, "fingerprint", fingerprint);
	json_put_end_object(j);
}

static void put_server(struct json *j, const struct attachments_status *s)
{
	if (!s->quota_server) {
		json_put_null(j, "quota");
		return;
	}
	json_put_object(j, "quota");
	control_put_text(j, "server", s->quota_server);
	json_put_bool(j, "answers", s->quota_answers);
	control_put_text(j, "problem", s->quota_problem);
	json_put_end_object(j);
}

void control_put_status(struct json *j, const struct attachments_status *s)
{
	json_put_object(j, NULL);
	json_put_literal(j, "version", VERSION_TEXT);
	control_put_time(j, "started", s->started_ms);
	json_put_bool(j, "ready", s->ready);
	json_put_uint(j, "generation", s->generation);
	control_put_text(j, "config", s->config_path);
	json_put_object(j, "audit");
	control_put_text(j, "path", s->audit_path);
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
	control_put_pid(j, "supervisor", s->pid);
	control_put_pid(j, "keeper", s->keeper_pid);
	control_put_pid(j, "recorder", s->recorder_pid);
	json_put_end_object(j);
	put_server(j, s);
	json_put_end_object(j);
}
