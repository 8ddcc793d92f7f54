/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on an attachment besides attaching, and its visible state. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/sandbox/limits.h"

struct attachment *attachments_find(const struct attachments *all, const char *name)
{
	struct attachment *a;

	HASH_FIND_STR(all->by_name, name, a);
	return a;
}

size_t attachments_count(const struct attachments *all)
{
	return HASH_COUNT(all->by_name);
}

void attachments_for_each(
        struct attachments *all, bool (*what)(void *context, struct attachment *a), void *context)
{
	struct attachment *a, *next;

	HASH_ITER(hh, all->by_name, a, next)
	{
		if (!what(context, a))
			return;
	}
}

/* Answers that there is none, and returns NULL. */
static struct attachment *find(
        struct attachments *all, const char *name, attach_done done, void *context)
{
	struct attachment *a = attachments_find(all, name);

	if (!a)
		attach_refuse(done, context, ATTACH_NOT_FOUND, "there is no sandbox %.64s", name);
	return a;
}

struct attachment *attachments_find_served(
        struct attachments *all, const char *name, attach_done done, void *context)
{
	struct attachment *a = find(all, name, done, context);

	if (!a)
		return NULL;
	if (!attachment_is_left(a) && a->sandbox && !a->detaching &&
	        a->sandbox->state != SANDBOX_STARTING)
		return a;
	if (attachment_is_left(a))
		attach_refuse(done, context, ATTACH_BUSY, ATTACH_RECOVERING);
	else if (a->record.prepared && !a->detaching)
		attach_refuse(done, context, ATTACH_CONFLICT, ATTACH_UNCLAIMED, name);
	else if (a->trouble[0])
		attach_refuse(done, context, attachment_trouble(a), "%s", a->trouble);
	else
		attach_refuse(done, context, ATTACH_BUSY, "%s is being %s", name,
		        a->detaching ? "detached" : "attached");
	return NULL;
}

static void answer_ok(struct attachment *a, attach_done done, void *context)
{
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};

	done(context, &result);
}

void attachments_detach(struct attachments *all, const char *name, attach_done done, void *context)
{
	struct attachment *a = find(all, name, done, context);

	if (a && attachment_is_left(a))
		attach_refuse(done, context, ATTACH_BUSY, ATTACH_RECOVERING);
	else if (a && attachment_wait(a, OPERATION_DETACH, 0, done, context))
		attachment_detach(a, false);
}

/* A sandbox that this daemon cannot serve may be served by the next one: its record can be
 * paused. */
static bool is_kept(const struct attachment *a)
{
	return !a->sandbox && !attachment_is_left(a) && !a->detaching && a->trouble[0] &&
	       a->record.policy && !a->record.undoing && !attachment_is_over(a);
}

/* A pause outlives workers and the daemon. It takes effect first, and is answered when nothing from
 * before lives any more. */
static void set_pause(struct attachment *a, const char *reason, attach_done done, void *context)
{
	int rc;

	a->record.paused = reason != NULL;
	snprintf(a->record.reason, sizeof(a->record.reason), "%s", reason ? reason : "");
	if (a->sandbox)
		sandbox_pause(a->sandbox, reason);
	rc = state_save(a->all->state, &a->record, a->sandbox ? &a->sandbox->gate : &a->gate);
	if (rc)
		attach_refuse(done, context, ATTACH_FAILED,
		        "it is done, but a restart of the daemon would forget it, because it "
		        "cannot be saved: %s",
		        strerror(-rc));
	else if (reason && a->sandbox && a->sandbox->quiescing)
		attachment_wait(a, OPERATION_PAUSE, 0, done, context);
	else
		answer_ok(a, done, context);
}

void attachments_pause(struct attachments *all, const char *name, const char *reason,
        attach_done done, void *context)
{
	struct attachment *a = attachments_find(all, name);

	if (!a || !is_kept(a))
		a = attachments_find_served(all, name, done, context);
	if (!a)
		return;
	if (reason && strlen(reason) > ATTACH_REASON_MAX) {
		attach_refuse(done, context, ATTACH_INVALID, "a reason has at most %d bytes",
		        ATTACH_REASON_MAX);
		return;
	}
	set_pause(a, reason && reason[0] ? reason : "The operator has paused this sandbox.", done,
	        context);
}

void attachments_resume(struct attachments *all, const char *name, attach_done done, void *context)
{
	struct attachment *a = attachments_find_served(all, name, done, context);

	if (!a)
		return;
	if (a->sandbox->state == SANDBOX_CLOSED) /* it stays failed: nothing would serve it */
		attach_refuse(done, context, ATTACH_CONFLICT,
		        "%s has failed, and only a reload starts a worker again: %s", name,
		        a->sandbox->failure);
	else
		set_pause(a, NULL, done, context);
}

void attachments_env(struct attachments *all, const char *name, attach_done done, void *context)
{
	struct attachment *a = attachments_find_served(all, name, done, context);
	static struct attach_env env;
	struct policy_credential c;

	if (!a)
		return;
	struct sandbox *s = a->sandbox;
	const struct generation *g = s->generation;
	if (s->state == SANDBOX_ASLEEP)
		(void)sandbox_know_root(s); /* no worker is told of other CAs */
	env = (struct attach_env){.root_pem = s->root_pem,
	        .gate4 = s->gate.gate4,
	        .gate6 = s->gate.gate6,
	        .proxy_port = s->gate.tcp_port,
	        .gateway = s->session ? &all->supervisor->gateway.config : NULL};
	for (uint32_t i = 0; i < policy_credential_count(&g->settings->policy); i++) {
		policy_credential(&g->settings->policy, i, &c);
		if (c.env.n == 0)
			continue;
		env.items[env.count].name = c.env;
		env.items[env.count++].value = slice_from_string(g->placeholders[i]);
	}
	const struct attach_result result = {
	        .status = ATTACH_OK, .text = "", .attachment = a, .env = &env};
	done(context, &result);
}

/* Lists the limits over a period. The list is borrowed until the next call. */
static const struct attach_limit *list_limits(const struct sandbox *s, size_t *count)
{
	static struct attach_limit limits[POLICY_LIMITS_MAX];
	const struct policy *policy = &s->generation->settings->policy;

	*count = 0;
	for (uint32_t i = 0; i < policy_limit_count(policy); i++) {
		struct attach_limit *l = &limits[*count];

		policy_limit(policy, i, &l->limit);
		if (!l->limit.period_s)
			continue;
		l->rule = policy_rule_name(policy, l->limit.rule);
		l->used = limits_used(s, &l->limit);
		++*count;
	}
	return limits;
}

static void fill_stats(const struct attachment *a, struct attach_stats *out)
{
	const struct sandbox *s = a->sandbox;

	*out = (struct attach_stats){.dropped = gate_dropped(&s->gate),
	        .limits = s->generation->settings->config.limits,
	        .restarts = s->restarts,
	        .mended = s->mended,
	        .retired = (unsigned)sandbox_retired(s)};
	out->policy_limits = list_limits(s, &out->policy_limit_count);
	if (s->current && s->current->state == INSTANCE_SERVING)
		out->serving_ms = loop_now_ms(s->supervisor->loop) - s->current->serving_since_ms;
}

void attachment_tell_stats(
        struct attachment *a, uint64_t id, const struct message_worker_stats *worker)
{
	struct message_worker_stats sum;
	struct attach_stats stats;
	const struct attach_result result = {
	        .status = ATTACH_OK, .text = "", .attachment = a, .stats = &stats};

	fill_stats(a, &stats);
	if (a->sandbox->session) {
		sum = worker ? *worker : (struct message_worker_stats){0};
		sum.generation = a->sandbox->generation->number;
		sandbox_add_past(a->sandbox, &sum);
		worker = &sum;
	}
	stats.worker = worker;
	attachment_answer(a, OPERATION_STATS, id, &result);
}

void attachments_stats(struct attachments *all, const char *name, attach_done done, void *context)
{
	struct attachment *a = attachments_find_served(all, name, done, context);
	struct sandbox *s = a ? a->sandbox : NULL;
	uint64_t id;

	if (!a)
		return;
	id = supervisor_next_id(all->supervisor);
	if (!attachment_wait(a, OPERATION_STATS, id, done, context))
		return;
	if (!s->current || s->current->state != INSTANCE_SERVING ||
	        instance_ask_stats(s->current, id) != 0)
		attachment_tell_stats(a, id, NULL);
}

/* The visible state. */

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
	        .generation = all->generation};
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

/* The end of all attachments, with the daemon. */

void attachments_stop(struct attachments *all)
{
	struct attachment *a, *next;

	if (all->stopping)
		return;
	all->stopping = true;
	attachments_refuse_deferred(all, true);
	if (!all->by_name) {
		all->on_empty(all);
		return;
	}
	HASH_ITER(hh, all->by_name, a, next)
	{
		if (a->sandbox)
			sandbox_event(a->sandbox, SANDBOX_END);
		else if (a->unlinking)
			attachment_detach_now(a);
		else
			attachment_free(a);
	}
}

void attachments_close(struct attachments *all)
{
	struct attachment *a, *next;

	all->on_empty = NULL;
	attachments_refuse_deferred(all, false);
	loop_timer_close(&all->recovery);
	HASH_ITER(hh, all->by_name, a, next)
	attachment_free(a);
	policy_watch_free(all->policy_watch);
	revocations_free(&all->revocations);
	close(all->state);
}
