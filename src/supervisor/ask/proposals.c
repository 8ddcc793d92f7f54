/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one bounded array holds the proposals of a sandbox, also decided ones, which
 * the sandbox may ask about. An approval changes the item first and reloads the policy then,
 * because the load takes the rules from here. If the reload fails, the item waits again. When an
 * approval ends, the policy is reloaded without it, again and again until that succeeds: first
 * after a second, then after twice as long each time.
 */
#include "supervisor/ask/proposals_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/ask/hooks.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/sandbox/asks.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define MS_PER_S 1000
#define AGAIN_MS 1000 /* until a reload that has failed is tried again; then twice as long */
#define AGAIN_MAX_MS 64000
#define LOOK_MS 60000 /* between looks at the time: timers do not count while the host sleeps */

static const char *const state_names[] = {
        [MESSAGE_PROPOSAL_WAITS] = "WAITS",
        [MESSAGE_PROPOSAL_APPROVED] = "APPROVED",
        [MESSAGE_PROPOSAL_REFUSED] = "REFUSED",
        [MESSAGE_PROPOSAL_ENDED] = "ENDED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == MESSAGE_PROPOSAL_KINDS, "a name per state");

/* Changes the state of a proposal; nothing else does. */
static void enter(struct proposals_item *item, enum message_proposal_state state)
{
	log_debug("proposal %016llx: %s -> %s", (unsigned long long)item->id,
	        state_names[item->state], state_names[state]);
	item->state = state;
}

static bool is_open(const struct proposals_item *item)
{
	return item->state == MESSAGE_PROPOSAL_WAITS || item->state == MESSAGE_PROPOSAL_APPROVED;
}

struct proposals_item *proposals_item_of(struct proposals *p, uint64_t id)
{
	for (size_t i = 0; p && i < p->count; i++)
		if (p->items[i].id == id)
			return &p->items[i];
	return NULL;
}

static struct message_worker_proposed told_of(const struct proposals_item *item)
{
	return (struct message_worker_proposed){(uint8_t)item->state,
	        slice_from_string(item->rule.to), slice_from_string(item->text)};
}

static void tell_all(struct attachment *a, const struct proposals_item *item)
{
	const struct message_worker_proposed m = told_of(item);

	if (a->sandbox)
		sandbox_tell_proposed(a->sandbox, item->id, &m);
}

/* --- the end of approvals --- */

static void set_timer(struct proposals *p)
{
	int64_t now_ms = clock_boot_ms(), wait_ms = LOOK_MS;
	bool needed = p->behind;

	if (p->behind)
		wait_ms = p->again_ms - loop_now_ms(p->attachment->all->supervisor->loop);
	if (wait_ms < 0)
		wait_ms = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct proposals_item *item = &p->items[i];

		if (item->state != MESSAGE_PROPOSAL_APPROVED || !item->until_ms)
			continue;
		needed = true;
		if (item->until_ms - now_ms < wait_ms)
			wait_ms = item->until_ms > now_ms ? item->until_ms - now_ms : 1;
	}
	if (needed)
		loop_timer_set(&p->timer, wait_ms);
	else
		loop_timer_cancel(&p->timer);
}

static void end(struct proposals *p, struct proposals_item *item, const char *text)
{
	enter(item, MESSAGE_PROPOSAL_ENDED);
	snprintf(item->text, sizeof(item->text), "%s", text);
	p->behind = true;
	p->again_ms = 0;
	p->ended++;
	tell_all(p->attachment, item);
}

/* Returns how long to wait before the next reload after so many that have failed. */
static int64_t delay_after(unsigned failed)
{
	int64_t ms = AGAIN_MS;

	for (unsigned i = 1; i < failed && ms < AGAIN_MAX_MS; i++)
		ms *= 2;
	return ms;
}

static void on_reloaded_without(void *context, const struct attach_result *result)
{
	struct attachment *a = result->attachment;
	struct proposals *p = a ? a->proposals : NULL;
	int64_t delay_ms;

	if (!p)
		return;
	/* Another approval may have ended since that load. */
	p->behind = result->status != ATTACH_OK || p->ended != (unsigned)(uintptr_t)context;
	p->failed =
	        result->status == ATTACH_OK || result->status == ATTACH_BUSY ? 0 : p->failed + 1;
	delay_ms = delay_after(p->failed);
	p->again_ms = loop_now_ms(a->all->supervisor->loop) + delay_ms;
	if (p->failed)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name,
		        "the rule of an ended proposal is still in force: %s; tried again in %d s",
		        result->text, (int)(delay_ms / MS_PER_S));
	set_timer(p);
}

/* Reloads the policy without the approvals that have ended. */
static void reload_without(struct proposals *p)
{
	p->again_ms = loop_now_ms(p->attachment->all->supervisor->loop) + AGAIN_MS;
	attachments_reload(p->attachment->all, p->attachment->record.name, NULL, NULL,
	        on_reloaded_without, (void *)(uintptr_t)p->ended);
}

static void on_time(struct loop_timer *timer)
{
	struct proposals *p = container_of(timer, struct proposals, timer);
	int64_t now_ms = clock_boot_ms();

	for (size_t i = 0; i < p->count; i++) {
		struct proposals_item *item = &p->items[i];

		if (item->state == MESSAGE_PROPOSAL_APPROVED && item->until_ms &&
		        item->until_ms <= now_ms)
			end(p, item, "its time is over");
	}
	if (p->behind && loop_now_ms(p->attachment->all->supervisor->loop) >= p->again_ms)
		reload_without(p);
	set_timer(p);
}

/* --- the sandbox proposes --- */

static struct proposals *proposals_of(struct attachment *a)
{
	struct proposals *p = a->proposals;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (p && loop_timer_open(a->all->supervisor->loop, &p->timer, on_time) < 0) {
		free(p);
		return NULL;
	}
	if (p)
		p->attachment = a;
	a->proposals = p;
	return p;
}

/* Returns room for another proposal; NULL: none. The oldest that was refused or has ended gives up
 * its place. */
static struct proposals_item *make_room(struct proposals *p)
{
	size_t waiting = 0, victim = p->count;

	for (size_t i = 0; i < p->count; i++) {
		waiting += p->items[i].state == MESSAGE_PROPOSAL_WAITS;
		if (!is_open(&p->items[i]) && victim == p->count)
			victim = i;
	}
	if (waiting >= PROPOSALS_WAITING_MAX)
		return NULL;
	if (p->count < MESSAGE_PROPOSALS_MAX)
		return &p->items[p->count++];
	if (victim == p->count)
		return NULL;
	memmove(&p->items[victim], &p->items[victim + 1],
	        (p->count - 1 - victim) * sizeof(p->items[0]));
	return &p->items[p->count - 1];
}

static const char *add(struct attachment *a, uint64_t id, const struct message_worker_proposal *m)
{
	struct proposals *p = proposals_of(a);
	struct proposals_item *item;

	if (!p)
		return "there is no memory for it";
	if (proposals_item_of(p, id))
		return "there is one with this id";
	item = make_room(p);
	if (!item)
		return "too many proposals of this sandbox wait or are in force";
	*item = (struct proposals_item){.id = id, .since_ms = clock_real_ms()};
	if (!policy_proposal_take(&item->rule, m->to, m->methods, m->paths, m->reason)) {
		p->count = (size_t)(item - p->items);
		return "it is malformed";
	}
	log_sandbox(LOG_LEVEL_INFO, a->record.name, "%016llx: the sandbox proposes a rule for %s",
	        (unsigned long long)id, item->rule.to);
	return NULL;
}

void proposals_take(struct attachment *a, struct instance *i, uint64_t id,
        const struct message_worker_proposal *m)
{
	const char *why = add(a, id, m);
	const struct message_worker_proposed refused = {
	        MESSAGE_PROPOSAL_REFUSED, m->to, slice_from_string(why ? why : "")};

	if (why)
		instance_tell_proposed(i, id, &refused);
	else
		hooks_tell_proposal(a, id, &proposals_item_of(a->proposals, id)->rule);
}

void proposals_tell(struct attachment *a, struct instance *i)
{
	struct message_worker_proposed m;

	for (size_t k = 0; a->proposals && k < a->proposals->count; k++) {
		m = told_of(&a->proposals->items[k]);
		instance_tell_proposed(i, a->proposals->items[k].id, &m);
	}
}

void proposals_free(struct attachment *a)
{
	if (a->proposals)
		loop_timer_close(&a->proposals->timer);
	free(a->proposals);
	a->proposals = NULL;
}

/* --- the operator looks and decides --- */

bool proposals_at(struct attachment *a, size_t index, struct attach_ask *out)
{
	struct proposals *p = a->proposals;

	for (size_t i = 0; p && i < p->count; i++) {
		const struct proposals_item *item = &p->items[i];
		int64_t left_ms = item->until_ms - clock_boot_ms();

		if (!is_open(item) || index--)
			continue;
		*out = (struct attach_ask){.id = item->id,
		        .sandbox = a->record.name,
		        .granted = item->state == MESSAGE_PROPOSAL_APPROVED,
		        .by = item->by,
		        .since_ms = item->since_ms,
		        .ends = item->until_ms != 0,
		        .left_s = left_ms > 0 ? (uint64_t)left_ms / MS_PER_S : 0,
		        .proposal = &item->rule};
		return true;
	}
	return false;
}

struct attachment *proposals_find(struct attachments *all, uint64_t id)
{
	struct attachment *a, *next;

	HASH_ITER(hh, all->by_name, a, next)
	{
		const struct proposals_item *item = proposals_item_of(a->proposals, id);

		if (item && is_open(item))
			return a;
	}
	return NULL;
}

/* A decision whose reload is under way. */
struct deciding {
	struct attachments *all;
	uint64_t id;
	attach_done done;
	void *context;
};

static void on_reloaded_with(void *context, const struct attach_result *result)
{
	struct deciding *d = context;
	struct deciding was = *d;
	struct attachment *a = proposals_find(d->all, d->id);
	struct proposals_item *item = a ? proposals_item_of(a->proposals, d->id) : NULL;

	free(d);
	if (item && result->status == ATTACH_OK) {
		tell_all(a, item);
		set_timer(a->proposals);
	} else if (item) {
		enter(item, MESSAGE_PROPOSAL_WAITS);
		item->until_ms = 0;
		item->text[0] = item->by[0] = 0;
	}
	was.done(was.context, result);
}

static void approve(struct attachment *a, struct proposals_item *item,
        const struct attach_decision *d, attach_done done, void *context)
{
	struct deciding *deciding = malloc(sizeof(*deciding));

	if (!deciding) {
		attach_refuse(done, context, ATTACH_FAILED, "no memory");
		return;
	}
	*deciding = (struct deciding){a->all, d->id, done, context};
	enter(item, MESSAGE_PROPOSAL_APPROVED);
	item->until_ms = d->for_s ? clock_boot_ms() + (int64_t)d->for_s * MS_PER_S : 0;
	snprintf(item->by, sizeof(item->by), "%s", d->by);
	if (d->for_s)
		snprintf(item->text, sizeof(item->text), "approved by %s for %u s", d->by,
		        (unsigned)d->for_s);
	else
		snprintf(item->text, sizeof(item->text), "approved by %s", d->by);
	attachments_reload(a->all, a->record.name, NULL, NULL, on_reloaded_with, deciding);
}

static void refuse(struct attachment *a, struct proposals_item *item,
        const struct attach_decision *d, attach_done done, void *context)
{
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};
	char text[MESSAGE_ASK_TEXT_MAX];

	snprintf(text, sizeof(text), "%s by %s%s%s",
	        item->state == MESSAGE_PROPOSAL_WAITS ? "refused" : "ended", d->by,
	        d->reason && *d->reason ? ": " : "", d->reason ? d->reason : "");
	if (item->state == MESSAGE_PROPOSAL_APPROVED) {
		end(a->proposals, item, text);
		reload_without(a->proposals);
		set_timer(a->proposals);
	} else {
		enter(item, MESSAGE_PROPOSAL_REFUSED);
		snprintf(item->text, sizeof(item->text), "%s", text);
		tell_all(a, item);
	}
	done(context, &result);
}

void proposals_decide(
        struct attachment *a, const struct attach_decision *d, attach_done done, void *context)
{
	struct proposals_item *item = proposals_item_of(a->proposals, d->id);

	if (!d->approved)
		refuse(a, item, d, done, context);
	else if (item->state == MESSAGE_PROPOSAL_APPROVED)
		attach_refuse(done, context, ATTACH_CONFLICT,
		        "%016llx is already in force: 'vethguard refuse' ends it",
		        (unsigned long long)d->id);
	else if (!d->lasts || d->whole)
		attach_refuse(done, context, ATTACH_INVALID,
		        "%016llx is a proposal: approve it for a time or always, without "
		        "whole_rule",
		        (unsigned long long)d->id);
	else
		approve(a, item, d, done, context);
}
