/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the limits that count for a request are two runs of items, those of the
 * policy and those of the request's rule. If several of them are of one kind (a limit and a budget,
 * the policy's and the rule's), an amount is added to all of them or to none.
 */
#include "proxy/limit/limit.h"

#include <stdio.h>
#include <stdlib.h>

#include "proxy/limit/quota.h"
#include "proxy/private.h"
#include "vethguard/base/clock.h"
#include "vethguard/ipc/team.h"

#define MS_PER_S 1000
_Static_assert(POLICY_LIMITS_MAX <= TEAM_GAUGES, "each limit can be counted with other workers");

/* --- the policy's limits --- */

static const struct counters *memory_for(const struct proxy *p, const struct policy_limit *limit)
{
	const struct proxy_counters *all = p->config.counters;

	for (size_t i = 0; all && i < all->count; i++)
		if (slice_equals(slice_from_string(all->of[i].shared), limit->shared))
			return &all->of[i].memory;
	return NULL;
}

/* Finds the gauge of that key, or a free one. Returns LIMIT_GAUGES_MAX if there is none. */
static uint32_t gauge_for(struct limits *l, const uint8_t key[POLICY_LIMIT_KEY])
{
	uint32_t free_one = LIMIT_GAUGES_MAX;

	for (uint32_t i = 0; i < LIMIT_GAUGES_MAX; i++) {
		struct limit_gauge *g = &l->gauges[i];
		bool used = g->named || g->open;

		if (used && memcmp(g->key, key, sizeof(g->key)) == 0)
			return i;
		if (!used && free_one == LIMIT_GAUGES_MAX)
			free_one = i;
	}
	if (free_one < LIMIT_GAUGES_MAX)
		memcpy(l->gauges[free_one].key, key, POLICY_LIMIT_KEY);
	return free_one;
}

/* The workers of a team begin under the same policy, in which each has the same items. Under a
 * later policy only workers that retire together are left, and each counts by itself. */
static void name_gauge(struct proxy *p, struct limit_gauge *g, uint32_t item)
{
	if (!g->named && !g->open)
		g->shared = p->config.team && p->limits.policies == 0 ? item : TEAM_GAUGES;
	g->named = true;
}

static void open_limit(struct proxy *p, struct limit *limit)
{
	struct limits *l = &p->limits;
	uint8_t key[POLICY_LIMIT_KEY];

	policy_limit_key(p->config.policy, &limit->spec, key);
	limit->counter = COUNTERS_NONE;
	limit->gauge = LIMIT_GAUGES_MAX;
	if (limit->spec.kind == POLICY_LIMIT_BODY)
		return;
	if (!policy_limit_has_period(limit->spec.kind)) {
		limit->gauge = l->gauges ? gauge_for(l, key) : LIMIT_GAUGES_MAX;
		if (limit->gauge < LIMIT_GAUGES_MAX)
			name_gauge(p, &l->gauges[limit->gauge], (uint32_t)(limit - l->items));
		return;
	}
	limit->memory = memory_for(p, &limit->spec);
	if (limit->memory && !counters_are_lost(limit->memory))
		limit->counter = counters_find(
		        limit->memory, key, (uint64_t)limit->spec.period_s * MS_PER_S);
	quota_find(p, limit, key);
}

static void read_limits(struct proxy *p)
{
	struct limits *l = &p->limits;

	l->items = calloc(l->count, sizeof(*l->items));
	if (!l->gauges)
		l->gauges = calloc(LIMIT_GAUGES_MAX, sizeof(*l->gauges));
	for (uint32_t i = 0; l->gauges && i < LIMIT_GAUGES_MAX; i++)
		l->gauges[i].named = false;
	for (uint32_t i = 0; l->items && i < l->count; i++) {
		policy_limit(p->config.policy, i, &l->items[i].spec);
		open_limit(p, &l->items[i]);
	}
}

void limits_renew(struct proxy *p)
{
	struct limits *l = &p->limits;

	free(l->items);
	l->items = NULL;
	l->count = policy_limit_count(p->config.policy);
	if (l->count > 0)
		read_limits(p);
	l->policies++;
}

void limits_close(struct proxy *p)
{
	free(p->limits.items);
	free(p->limits.gauges);
	p->limits = (struct limits){0};
}

/* --- the limits of one request --- */

/* Walks the limits of one kind, first of the policy, then of the rule. */
struct walk {
	struct proxy *proxy;
	enum policy_limit_kind kind;
	uint32_t rule, at, left;
	bool of_rule;
	bool is_infrastructures; /* the rule: only its own limits and the floor's count */
};

static struct walk walk_begin(struct proxy *p, uint32_t rule, enum policy_limit_kind kind)
{
	struct walk w = {.proxy = p, .kind = kind, .rule = rule, .of_rule = rule == POLICY_NONE};

	w.is_infrastructures =
	        policy_rule_layer(p->config.policy, rule) == POLICY_LAYER_INFRASTRUCTURE;
	policy_limits_of(p->config.policy, POLICY_NONE, &w.at, &w.left);
	return w;
}

static struct limit *walk_next(struct walk *w)
{
	for (;;) {
		for (; w->left; w->at++, w->left--)
			if (w->proxy->limits.items[w->at].spec.kind == w->kind &&
			        !(w->is_infrastructures && !w->of_rule &&
			                !w->proxy->limits.items[w->at].spec.floor)) {
				w->left--;
				return &w->proxy->limits.items[w->at++];
			}
		if (w->of_rule)
			return NULL;
		w->of_rule = true;
		policy_limits_of(w->proxy->config.policy, w->rule, &w->at, &w->left);
	}
}

static bool is_counted(const struct limit *limit)
{
	return limit->counter != COUNTERS_NONE && !counters_are_lost(limit->memory);
}

static bool meet(
        struct proxy *p, const struct policy_limit *limit, int64_t wait_ms, struct limit_hit *hit)
{
	p->limits.refused++;
	if (hit)
		*hit = (struct limit_hit){.limit = *limit, .wait_ms = wait_ms};
	return false;
}

/* Hosts share the limit, and there is nothing left for this one. */
static bool meet_quota(
        struct proxy *p, const struct limit *limit, int64_t now_ms, struct limit_hit *hit)
{
	bool away;
	int64_t wait_ms = quota_wait_ms(limit, now_ms, &away);

	meet(p, &limit->spec, wait_ms, hit);
	if (hit)
		hit->away = away;
	return false;
}

/* Adds n to the counter, and takes it from the lease. Returns false, with nothing added and *hit
 * set, if either has no room. */
static bool add_to(struct proxy *p, const struct limit *limit, int64_t now_ms, uint64_t n,
        struct limit_hit *hit)
{
	if (!counters_add(limit->memory, limit->counter, now_ms, n, limit->spec.amount))
		return meet(p, &limit->spec,
		        counters_wait_ms(
		                limit->memory, limit->counter, now_ms, n, limit->spec.amount),
		        hit);
	if (quota_take(p, limit, now_ms, n))
		return true;
	counters_take_back(limit->memory, limit->counter, now_ms, n);
	return meet_quota(p, limit, now_ms, hit);
}

/* True if there was no memory for the limits themselves: nothing may pass, and *hit is set. */
static bool are_missing(struct proxy *p, struct limit_hit *hit)
{
	const struct policy_limit none = {.rule = POLICY_NONE, .kind = POLICY_LIMIT_REQUESTS};

	return !p->limits.items && !meet(p, &none, MS_PER_S, hit);
}

static void take_back_before(struct walk w, const struct limit *end, int64_t now_ms, uint64_t n)
{
	struct limit *limit;

	while ((limit = walk_next(&w)) && limit != end) {
		if (!is_counted(limit))
			continue;
		counters_take_back(limit->memory, limit->counter, now_ms, n);
		quota_give_back(limit, now_ms, n);
	}
}

bool limit_add(struct proxy *p, uint32_t rule, enum policy_limit_kind kind, uint64_t n,
        struct limit_hit *hit)
{
	int64_t now_ms;
	struct limit *limit;
	struct walk w;

	if (!limits_exist(&p->limits))
		return true;
	if (are_missing(p, hit))
		return false;
	now_ms = p->limits.added_ms = clock_boot_ms();
	w = walk_begin(p, rule, kind);
	while ((limit = walk_next(&w))) {
		if (!is_counted(limit)) {
			take_back_before(walk_begin(p, rule, kind), limit, now_ms, n);
			return meet(p, &limit->spec, MS_PER_S, hit);
		}
		if (add_to(p, limit, now_ms, n, hit))
			continue;
		take_back_before(walk_begin(p, rule, kind), limit, now_ms, n);
		return false;
	}
	return true;
}

/* Adds n, or as much as the counter can hold. Tries again if others have added in between. */
static void charge(const struct limit *limit, int64_t now_ms, uint64_t n)
{
	uint64_t room;

	do {
		room = COUNTERS_AMOUNT_MAX - counters_used(limit->memory, limit->counter, now_ms);
		n = n < room ? n : room;
	} while (n && !counters_add(limit->memory, limit->counter, now_ms, n, COUNTERS_AMOUNT_MAX));
}

void limit_charge(struct proxy *p, uint32_t rule, enum policy_limit_kind kind, uint64_t n)
{
	struct limit *limit;
	struct walk w;

	if (!limits_exist(&p->limits) || !p->limits.items)
		return;
	w = walk_begin(p, rule, kind);
	while ((limit = walk_next(&w)))
		if (is_counted(limit)) {
			charge(limit, clock_boot_ms(), n);
			quota_charge(limit, clock_boot_ms(), n);
		}
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t limit_add_some(struct proxy *p, uint32_t rule, enum policy_limit_kind kind, uint64_t n,
        struct limit_hit *hit)
{
	const struct limit *full = NULL;
	struct limit *limit;
	int64_t now_ms;
	struct walk w;

	if (!limits_exist(&p->limits))
		return n;
	if (are_missing(p, hit))
		return 0;
	now_ms = clock_boot_ms();
	w = walk_begin(p, rule, kind);
	while ((limit = walk_next(&w))) {
		uint64_t used = is_counted(limit)
		                        ? counters_used(limit->memory, limit->counter, now_ms)
		                        : limit->spec.amount;
		uint64_t room = used < limit->spec.amount ? limit->spec.amount - used : 0;

		if (room && n && limit->spec.hosts)
			room = smaller(room, quota_room(p, limit, now_ms, smaller(n, room), used));
		n = n < room ? n : room;
		full = n == 0 && !full ? limit : full;
	}
	if (!limit_add(p, rule, kind, n, hit))
		return 0;
	if (full) /* there was no room, and a part of its period has ended meanwhile */
		meet(p, &full->spec, 1, hit);
	return n;
}

void limit_take_back(
        struct proxy *p, uint32_t rule, enum policy_limit_kind kind, int64_t added_ms, uint64_t n)
{
	if (limits_exist(&p->limits) && p->limits.items && n)
		take_back_before(walk_begin(p, rule, kind), NULL, added_ms, n);
}

/* --- what is open at a time --- */

static bool open_one(const struct proxy *p, struct limit_gauge *g, uint64_t max)
{
	const bool room = g->shared < TEAM_GAUGES ? team_enter(p->config.team, g->shared, max)
	                                          : g->open < max;

	g->open += room;
	return room;
}

static void close_one(const struct proxy *p, struct limit_gauge *g)
{
	g->open--;
	if (g->shared < TEAM_GAUGES)
		team_leave(p->config.team, g->shared);
}

bool limit_enter(struct proxy *p, uint32_t rule, enum policy_limit_kind kind,
        struct limit_held *held, struct limit_hit *hit)
{
	uint8_t before = held->count;
	struct limit *limit;
	struct walk w;

	if (!limits_exist(&p->limits))
		return true;
	if (are_missing(p, hit))
		return false;
	w = walk_begin(p, rule, kind);
	while ((limit = walk_next(&w))) {
		struct limit_gauge *g =
		        limit->gauge < LIMIT_GAUGES_MAX ? &p->limits.gauges[limit->gauge] : NULL;

		if (!g || held->count == LIMIT_HELD_MAX || !open_one(p, g, limit->spec.amount)) {
			while (held->count > before)
				close_one(p, &p->limits.gauges[held->gauges[--held->count]]);
			return meet(p, &limit->spec, MS_PER_S, hit);
		}
		held->gauges[held->count++] = (uint16_t)limit->gauge;
	}
	return true;
}

void limit_leave(struct proxy *p, struct limit_held *held)
{
	while (held->count)
		close_one(p, &p->limits.gauges[held->gauges[--held->count]]);
}

bool limit_begin_relay(
        struct proxy *p, uint32_t rule, struct limit_held *held, struct limit_hit *hit)
{
	if (!limits_exist(&p->limits))
		return true;
	if (!limit_enter(p, rule, POLICY_LIMIT_CONNECTIONS, held, hit))
		return false;
	if (limit_add(p, rule, POLICY_LIMIT_UPLOAD, 0, hit) &&
	        limit_add(p, rule, POLICY_LIMIT_DOWNLOAD, 0, hit) &&
	        limit_add(p, rule, POLICY_LIMIT_REQUESTS, 1, hit))
		return true;
	limit_leave(p, held);
	return false;
}

uint64_t limit_body(const struct proxy *p, uint32_t rule, struct limit_hit *hit)
{
	struct walk w = walk_begin((struct proxy *)(uintptr_t)p, rule, POLICY_LIMIT_BODY);
	uint64_t least = UINT64_MAX;
	const struct limit *limit;

	if (!limits_exist(&p->limits) || !p->limits.items)
		return UINT64_MAX;
	while ((limit = walk_next(&w))) {
		if (limit->spec.amount >= least)
			continue;
		least = limit->spec.amount;
		*hit = (struct limit_hit){.limit = limit->spec, .wait_ms = -1};
	}
	return least;
}

/* --- words --- */

uint32_t limit_retry_s(const struct limit_hit *hit)
{
	if (hit->wait_ms < 0)
		return 0;
	return hit->wait_ms < MS_PER_S ? 1 : (uint32_t)((hit->wait_ms + MS_PER_S - 1) / MS_PER_S);
}

const char *limit_text(const struct proxy *p, const struct limit_hit *hit, char out[LIMIT_TEXT_MAX])
{
	const struct policy_limit *l = &hit->limit;
	struct slice rule = policy_rule_name(p->config.policy, l->rule);
	char text[POLICY_LIMIT_TEXT_MAX], of[POLICY_NAME_MAX + 16], when[64];

	if (rule.n)
		snprintf(of, sizeof(of), "rule \"%.*s\"", SLICE_ARG(rule));
	else
		snprintf(of, sizeof(of), l->floor ? "the floor" : "the policy");
	if (hit->away)
		snprintf(when, sizeof(when), "is closed while its quota server cannot be asked");
	else if (l->kind == POLICY_LIMIT_BODY || hit->wait_ms < 0)
		snprintf(when, sizeof(when), "is smaller than this request");
	else if (policy_limit_has_period(l->kind))
		snprintf(when, sizeof(when), "is used up for another %u s", limit_retry_s(hit));
	else
		snprintf(when, sizeof(when), "is reached at the moment");
	snprintf(out, LIMIT_TEXT_MAX, "the %s %s of %s %s", l->budget ? "budget" : "limit",
	        l->amount ? policy_limit_text(l, text) : "", of, when);
	return out;
}
