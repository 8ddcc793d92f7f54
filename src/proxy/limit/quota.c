/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: in most cases the lease has what is needed, since vethguard-quota asks
 * ahead, and taking costs one atomic operation. If the lease has too little, the worker rings, and
 * waits with its whole loop, for a bounded time (QUOTA_WAIT_MS): requests, bodies and tunnels would
 * otherwise each need a way of their own to go on later. If nothing comes, the limit counts as met.
 */
#include "proxy/limit/quota.h"

#include <time.h>

#include "proxy/private.h"
#include "vethguard/base/clock.h"

#define MS_PER_S 1000
#define STEP_NS 100000 /* between two looks at the lease */

void quota_find(struct proxy *p, struct limit *limit, const uint8_t key[POLICY_LIMIT_KEY])
{
	const struct proxy_counters *all = p->config.counters;

	limit->quotas = NULL;
	limit->quota = QUOTAS_NONE;
	if (!limit->spec.hosts)
		return;
	for (size_t i = 0; all && i < all->count; i++)
		if (slice_equals(slice_from_string(all->of[i].shared), limit->spec.shared))
			limit->quotas = &all->of[i].quotas;
	if (limit->quotas && !quotas_are_lost(limit->quotas))
		limit->quota = quotas_find(limit->quotas, key,
		        (uint64_t)limit->spec.period_s * MS_PER_S, limit->spec.amount);
}

static bool is_known(const struct limit *limit)
{
	return limit->quota != QUOTAS_NONE && !quotas_are_lost(limit->quotas);
}

/* Waits until the lease has n. Returns false if it does not come in time. */
static bool wait_for(struct proxy *p, const struct limit *limit, uint64_t n)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	const int64_t begin_ms = clock_monotonic_ms();

	if (begin_ms < p->limits.wait_again_ms)
		return false;
	do {
		enum quota_state state = quotas_state(limit->quotas, limit->quota);

		if (quotas_left(limit->quotas, limit->quota, clock_boot_ms()) >= (n ? n : 1))
			return true;
		if (state == QUOTA_USED_UP || state == QUOTA_AWAY)
			return false;
		nanosleep(&step, NULL);
	} while (clock_monotonic_ms() - begin_ms < QUOTA_WAIT_MS);
	p->limits.wait_again_ms = clock_monotonic_ms() + QUOTA_PAUSE_MS;
	return false;
}

/* What this host may let pass in a period while the server is away. */
static uint64_t local_share(const struct limit *limit)
{
	const uint32_t hosts = quotas_hosts(limit->quotas);

	return limit->spec.hosts == POLICY_HOSTS_LOCAL && hosts ? limit->spec.amount / hosts : 0;
}

/* The counter has n already. */
static bool take_local(const struct limit *limit, int64_t now_ms, uint64_t n)
{
	uint64_t used = counters_used(limit->memory, limit->counter, now_ms);
	uint64_t share = local_share(limit);

	if (n ? used > share : used >= share)
		return false;
	quotas_owe(limit->quotas, limit->quota, n);
	return true;
}

bool quota_take(struct proxy *p, const struct limit *limit, int64_t now_ms, uint64_t n)
{
	if (!limit->spec.hosts)
		return true;
	if (!is_known(limit))
		return false;
	if (quotas_take(limit->quotas, limit->quota, now_ms, n))
		return true;
	if (quotas_are_away(limit->quotas, limit->quota, now_ms))
		return take_local(limit, now_ms, n);
	return wait_for(p, limit, n) &&
	       quotas_take(limit->quotas, limit->quota, clock_boot_ms(), n);
}

void quota_give_back(const struct limit *limit, int64_t taken_ms, uint64_t n)
{
	if (limit->spec.hosts && n && is_known(limit))
		quotas_give_back(limit->quotas, limit->quota, taken_ms, n);
}

void quota_charge(const struct limit *limit, int64_t now_ms, uint64_t n)
{
	uint64_t left;

	if (!limit->spec.hosts || !is_known(limit) || !n)
		return;
	left = quotas_left(limit->quotas, limit->quota, now_ms);
	if (left > n)
		left = n;
	if (!left || !quotas_take(limit->quotas, limit->quota, now_ms, left))
		left = 0;
	if (n > left)
		quotas_owe(limit->quotas, limit->quota, n - left);
}

uint64_t quota_room(
        struct proxy *p, const struct limit *limit, int64_t now_ms, uint64_t n, uint64_t used)
{
	uint64_t left, share;

	if (!limit->spec.hosts)
		return n;
	if (!is_known(limit))
		return 0;
	left = quotas_left(limit->quotas, limit->quota, now_ms);
	if (left < n && quotas_are_away(limit->quotas, limit->quota, now_ms)) {
		share = local_share(limit);
		return used < share && share - used > left ? share - used : left;
	}
	if (left >= n)
		return left;
	quotas_want(limit->quotas, limit->quota, n);
	wait_for(p, limit, n);
	return quotas_left(limit->quotas, limit->quota, clock_boot_ms());
}

int64_t quota_wait_ms(const struct limit *limit, int64_t now_ms, bool *away)
{
	*away = !is_known(limit) || quotas_are_away(limit->quotas, limit->quota, now_ms);
	return *away ? MS_PER_S : quotas_wait_ms(limit->quotas, limit->quota, now_ms);
}
