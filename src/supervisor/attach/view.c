/* SPDX-License-Identifier: Apache-2.0 */
/* What callers see of an attachment and of all together. */
#include <unistd.h>

#include "supervisor/attach/attachment.h"

const char *attach_state_name(enum attach_state state)
{
	static const char *const names[] = {[ATTACH_PREPARED] = "prepared",
	        [ATTACH_STARTING] = "starting",
	        [ATTACH_SERVING] = "serving",
	        [ATTACH_AWAY] = "away",
	        [ATTACH_PAUSED] = "paused",
	        [ATTACH_RESTARTING] = "restarting",
	        [ATTACH_FAILED_CLOSED] = "failed",
	        [ATTACH_DETACHING] = "detaching"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == ATTACH_STATE_COUNT, "a name per state");

	return names[state];
}

/* For one with left set: its state is known before its turn. */
static bool is_known(const struct attachment *a)
{
	return a->sandbox ? a->sandbox->state != SANDBOX_HANDED_OFF : a->trouble[0] != 0;
}

static enum attach_state state_of(const struct attachment *a)
{
	static const enum attach_state states[SANDBOX_STATE_COUNT] = {
	        [SANDBOX_NEW] = ATTACH_STARTING,
	        [SANDBOX_VARIABLES] = ATTACH_STARTING,
	        [SANDBOX_STARTING] = ATTACH_STARTING,
	        [SANDBOX_SERVING] = ATTACH_SERVING,
	        [SANDBOX_ASLEEP] = ATTACH_SERVING,
	        [SANDBOX_RESTARTING] = ATTACH_RESTARTING,
	        [SANDBOX_CLOSED] = ATTACH_FAILED_CLOSED,
	        [SANDBOX_HANDED_OFF] = ATTACH_SERVING,
	        [SANDBOX_STOPPING] = ATTACH_DETACHING,
	        [SANDBOX_SUMMING] = ATTACH_DETACHING,
	        [SANDBOX_ENDED] = ATTACH_DETACHING,
	};

	if (a->detaching)
		return ATTACH_DETACHING;
	if (attachment_is_left(a) && !is_known(a))
		return ATTACH_RESTARTING;
	if (!a->sandbox)
		return a->record.prepared && !a->trouble[0] ? ATTACH_PREPARED
		                                            : ATTACH_FAILED_CLOSED;
	if (a->sandbox->state == SANDBOX_RESTARTING && a->sandbox->claimed)
		return ATTACH_STARTING;
	if (a->sandbox->paused &&
	        (a->sandbox->state == SANDBOX_SERVING || a->sandbox->state == SANDBOX_ASLEEP ||
	                a->sandbox->state == SANDBOX_RESTARTING))
		return ATTACH_PAUSED;
	if (a->sandbox->state == SANDBOX_RESTARTING && a->sandbox->sleep.waking)
		return ATTACH_SERVING;
	if (a->sandbox->state == SANDBOX_SERVING && a->sandbox->gate.away)
		return ATTACH_AWAY;
	return states[a->sandbox->state];
}

static const char *reason_of(const struct attachment *a, enum attach_state state)
{
	if (state == ATTACH_PAUSED)
		return a->sandbox->pause_reason;
	if (state == ATTACH_AWAY)
		return "its interface is not there: nothing passes until it comes back";
	if (state != ATTACH_FAILED_CLOSED)
		return "";
	return a->sandbox ? a->sandbox->failure : a->trouble;
}

static void view_gate(const struct gate *gate, struct attachment_view *out)
{
	out->gate4 = gate->gate4;
	out->gate6 = gate->gate6;
	out->sandbox4 = gate->sandbox4;
	out->sandbox6 = gate->sandbox6;
	out->proxy_port = gate->tcp_port;
	out->has_resolver = gate->has_resolver;
	out->same_addresses = gate_has_same_macs(gate);
}

static void view_sandbox(const struct sandbox *s, struct attachment_view *out)
{
	view_gate(&s->gate, out);
	out->restarts = s->restarts;
	out->mended = s->mended;
	out->retired = (unsigned)sandbox_retired(s);
	out->ca = s->ca_known ? s->ca : NULL;
	if (s->current)
		out->worker_pid = s->current->worker.pid;
	out->further_count = s->generation ? team_serving(s, out->further, TEAM_WORKERS_MAX) : 0;
	if (s->generation) {
		out->policy = &s->generation->settings->policy;
		out->policy_name = policy_name(&s->generation->settings->policy);
		out->policy_fingerprint = policy_fingerprint(&s->generation->settings->policy);
		out->observe = policy_mode(&s->generation->settings->policy) == POLICY_OBSERVE;
		out->notes = s->generation->settings->notes;
	}
}

void attachment_verify(
        const struct attachment *a, void (*tell)(void *context, const char *fault), void *context)
{
	if (a->sandbox)
		sandbox_examine_sources(a->sandbox, tell, context);
}

void attachment_view(struct attachment *a, struct attachment_view *out)
{
	const struct attach_record *r = &a->record;
	enum attach_state state = state_of(a);

	*out = (struct attachment_view){.name = r->name,
	        .id = r->id,
	        .state = state,
	        .paused = r->paused,
	        .reason = reason_of(a, state),
	        .kind = r->kind,
	        .interface = r->interface,
	        .netns = r->netns ? r->netns : "",
	        .listen = r->listen.path,
	        .session = r->kind == ATTACH_SESSION ? &r->session : NULL,
	        .pid = r->pid,
	        .pid_start_time = r->pid_start_time,
	        .container = &r->container,
	        .policy_path = r->policy ? r->policy : "",
	        .policy_name = SLICE(""),
	        .policy_fingerprint = SLICE(""),
	        .generation = r->generation,
	        .observe = r->observe,
	        .labels = r->labels,
	        .vars = r->vars,
	        .uid = r->uid,
	        .gid = r->gid,
	        .created_ms = r->created_ms,
	        .expires_ms = r->expires_ms,
	        .claimed = r->claimed};
	if (a->sandbox) {
		view_sandbox(a->sandbox, out);
		return;
	}
	if (r->prepared || r->claimed)
		view_gate(&a->gate, out);
	out->mended = a->mended;
}

void attachments_status(struct attachments *all, struct attachments_status *out)
{
	const struct supervisor *sv = all->supervisor;
	struct attachment *a, *next;

	*out = (struct attachments_status){.pid = getpid(),
	        .keeper_pid = sv->keeper.pid,
	        .recorder_pid = sv->recorder.pid,
	        .started_ms = all->started_ms,
	        .audit_path = all->audit_path,
	        .config_path = all->config_path,
	        .recording = sv->recorder_life.ready && !sv->recorder_life.stall.shown,
	        .count = attachments_count(all),
	        .spare_workers = sv->pool.count,
	        .ready = !all->recovering,
	        .generation = all->generation,
	        .quota_server = quota_is_configured(&sv->quota) ? sv->quota.config.host : NULL,
	        .quota_answers = sv->quota.answers,
	        .quota_problem = sv->quota.problem};
	HASH_ITER(hh, all->by_name, a, next)
	{
		enum attach_state state = state_of(a);

		out->prepared += a->record.prepared;
		out->count -= a->record.prepared;
		if (a->record.prepared)
			continue;
		out->serving += state == ATTACH_SERVING;
		out->restarting += state == ATTACH_RESTARTING;
		out->failed += state == ATTACH_FAILED_CLOSED;
	}
}
