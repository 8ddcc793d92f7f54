/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on an attachment besides attaching. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/ask/hooks.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/sandbox/limits.h"
#include "supervisor/sandbox/quotas.h"

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

	char why[SIGNED_BUNDLE_WHY_MAX];

	if (!a)
		return;
	if (bundles_object_to_missing(all, a->record.policy, why))
		attach_refuse(done, context, ATTACH_CONFLICT, "%s stays paused: %s", name, why);
	else if (a->sandbox->state == SANDBOX_CLOSED) /* it stays failed: nothing would serve it */
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
		(void)sandbox_know_root(s); /* without a worker nobody has told it of other CAs */
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
		l->rule = l->limit.floor ? slice_from_string(policy_layer_name(POLICY_LAYER_FLOOR))
		                         : policy_rule_name(policy, l->limit.rule);
		l->used = limits_used(s, &l->limit);
		l->quota_known = quotas_used(s, &l->limit, &l->used_by_hosts, &l->quota);
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
	if (!s->current || s->current->state != INSTANCE_SERVING || sandbox_ask_stats(s, id) != 0)
		attachment_tell_stats(a, id, NULL);
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
	hooks_free(all);
	revocations_free(&all->revocations);
	bundles_close(all);
	close(all->state);
}
