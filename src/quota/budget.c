/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what this host has of a budget are its claims, each for the part of the
 * period in which it was got. A grant is added to the claim of its part first, and then to the
 * lease; what comes back is taken from the lease first, and then from the claim. So whenever this
 * process dies, the claims are never less than what workers may have taken.
 *
 * All of a lease is of one part. A grant in a later part replaces the lease; what was left of it
 * goes back with the next question. A lease ends with the part after its own.
 */
#include "quota/budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS_PER_S 1000
#define LEASE_PARTS 2 /* its own and the next one */
#define CLOCK_DRIFT \
	1000 /* clocks of two hosts differ by less than a thousandth in a lease's time */
#define LEASE_MARGIN_MS 2 /* what rounding may have added */

void budget_init(struct budget *b, const struct quotas *quotas,
        const struct message_quota_budget *message, int64_t now_ms)
{
	uint8_t id[QUOTAS_ID];
	char *host = b->host;

	memset(b, 0, sizeof(*b));
	b->quotas = quotas;
	b->index = message->index;
	b->amount = message->amount;
	b->part_ms = (int64_t)message->period_s * MS_PER_S / QUOTAS_PARTS;
	b->changed = true;
	b->taken = quotas_taken(quotas, b->index);
	b->looked_ms = b->active_ms = now_ms;
	snprintf(b->name, sizeof(b->name), "%.*s", SLICE_ARG(message->name));
	quotas_id(quotas, id);
	for (size_t i = 0; i < QUOTAS_ID; i++)
		host += snprintf(host, 3, "%02x", id[i]);
	snprintf(host, 8, ".%" PRIu32, b->index);
}
_Static_assert(2 * QUOTAS_ID + 8 <= SCRIPT_HOST_MAX + 1, "a host's name has room");

/* --- looking --- */

static int64_t part_at(const struct budget *b, const struct server_clock *clock, int64_t now_ms)
{
	return (now_ms + clock->offset_ms) / b->part_ms;
}

static void measure(struct budget *b, int64_t now_ms)
{
	const uint64_t taken = quotas_taken(b->quotas, b->index);
	const uint64_t wanted = quotas_take_wanted(b->quotas, b->index);
	const int64_t since_ms = now_ms - b->looked_ms;

	b->wanted = wanted > b->wanted ? wanted : b->wanted;
	b->burst = b->wanted > b->burst ? b->wanted : b->burst;
	if (taken != b->taken || b->wanted)
		b->active_ms = now_ms;
	if (since_ms < MS_PER_S)
		return;
	b->rate = (taken - b->taken) * MS_PER_S / (uint64_t)since_ms;
	b->rate = b->rate < b->amount ? b->rate : b->amount;
	b->taken = taken;
	b->looked_ms = now_ms;
}

/* Takes the lease away from the workers. The server is told with the next question. */
static void give_back(struct budget *b)
{
	struct quota_lease lease;
	uint64_t rest;

	quotas_lease(b->quotas, b->index, &lease);
	rest = quotas_withdraw(b->quotas, b->index, 0);
	quotas_claim_sub(b->quotas, b->index, lease.part, rest);
	b->changed |= rest > 0;
}

void budget_end(struct budget *b)
{
	b->ending = true;
	give_back(b);
}

/* What passed while the server was away is claimed now. */
static void claim_owed(struct budget *b, int64_t part)
{
	const uint64_t owed = quotas_owed(b->quotas, b->index);

	if (!owed)
		return;
	quotas_claim_add(b->quotas, b->index, part, owed);
	quotas_owed_sub(b->quotas, b->index, owed);
	b->changed = true;
}

static size_t list_claims(struct budget *b)
{
	size_t count = 0;

	for (size_t slot = 0; slot < QUOTAS_CLAIMS; slot++) {
		struct script_claim *claim = &b->claims[count];

		claim->amount = quotas_claim(b->quotas, b->index, slot, &claim->part);
		count += claim->amount > 0;
	}
	return count;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool is_idle(const struct budget *b, int64_t now_ms)
{
	return b->ending || now_ms - b->active_ms > BUDGET_IDLE_MS;
}

/* How much the lease is to have when nobody has missed anything. */
static uint64_t target_of(const struct budget *b, int64_t now_ms)
{
	const uint64_t most = larger(b->amount / BUDGET_SLICE_MOST, 1);
	uint64_t target = larger(b->amount / BUDGET_SLICE, 1);

	if (is_idle(b, now_ms))
		return 0;
	target = larger(target, larger(BUDGET_AHEAD_S * b->rate, BUDGET_BURST * b->burst));
	return target < most ? target : most;
}

bool budget_look(struct budget *b, const struct server_clock *clock, int64_t now_ms)
{
	struct quota_lease lease;
	uint64_t left, target, need, extra;
	bool is_new_part;

	measure(b, now_ms);
	quotas_lease(b->quotas, b->index, &lease);
	if (is_idle(b, now_ms))
		b->burst = 0;
	target = target_of(b, now_ms);
	if (target == 0 || now_ms >= lease.until_ms)
		give_back(b);
	left = quotas_left(b->quotas, b->index, now_ms);
	is_new_part = !clock->known || part_at(b, clock, now_ms) != lease.part;
	if (clock->known)
		claim_owed(b, part_at(b, clock, now_ms));
	/* In a new part nothing of the lease is kept. */
	need = is_new_part ? b->wanted : b->wanted > left ? b->wanted - left : 0;
	extra = is_new_part ? target : target > left ? target - left : 0;
	if (!b->changed && !(need && now_ms >= b->need_ms) &&
	        !(extra && (is_new_part || left < target / 2 || !left) && now_ms >= b->extra_ms))
		return false;
	b->question = (struct script_question){.name = b->name,
	        .host = b->host,
	        .amount = b->amount,
	        .part_ms = (uint64_t)b->part_ms,
	        .need = clock->known ? need : 0,
	        .extra = clock->known ? extra : 0,
	        .claim_count = list_claims(b),
	        .claims = b->claims};
	b->asked_ms = now_ms;
	b->changed = false;
	return true;
}

/* --- an answer --- */

/* The server's clock has gone back: what was claimed in parts that are still to come counts from
 * now on. */
static void claim_in(struct budget *b, int64_t part)
{
	for (size_t slot = 0; slot < QUOTAS_CLAIMS; slot++) {
		int64_t later;
		uint64_t amount = quotas_claim(b->quotas, b->index, slot, &later);

		if (later <= part || !amount)
			continue;
		quotas_claim_add(b->quotas, b->index, part, amount);
		quotas_claim_sub(b->quotas, b->index, later, amount);
		b->changed = true;
	}
}

/* The server's part ended no sooner than this after the question was sent. */
static int64_t lease_end_ms(const struct budget *b, const struct script_answer *answer)
{
	const int64_t lasts_ms = LEASE_PARTS * b->part_ms - answer->into_ms;

	return b->asked_ms + lasts_ms - lasts_ms / CLOCK_DRIFT - LEASE_MARGIN_MS;
}

static void take_grant(struct budget *b, const struct script_answer *answer, int64_t now_ms)
{
	struct quota_lease lease;

	quotas_lease(b->quotas, b->index, &lease);
	if (answer->part != lease.part) {
		give_back(b);
		lease.part = answer->part;
		lease.since_ms = now_ms;
	}
	lease.until_ms = lease_end_ms(b, answer);
	lease.low = target_of(b, now_ms) / 2;
	quotas_claim_add(b->quotas, b->index, answer->part, answer->granted);
	quotas_set_lease(b->quotas, b->index, &lease);
	quotas_add(b->quotas, b->index, answer->granted);
}

static int64_t again_ms(int64_t wait_ms)
{
	if (wait_ms < BUDGET_AGAIN_LEAST_MS)
		return BUDGET_AGAIN_LEAST_MS;
	return wait_ms < BUDGET_AGAIN_MS ? wait_ms : BUDGET_AGAIN_MS;
}

void budget_answered(struct budget *b, const struct script_answer *answer,
        struct server_clock *clock, int64_t now_ms)
{
	const struct script_question *q = &b->question;
	const bool is_short = answer->granted < q->need || answer->room == 0;

	clock->offset_ms = answer->part * b->part_ms + answer->into_ms - now_ms;
	clock->known = true;
	claim_in(b, answer->part);
	if (answer->granted)
		take_grant(b, answer, now_ms);
	if (q->need)
		b->wanted = 0;
	b->need_ms = is_short ? now_ms + again_ms(answer->wait_ms) : 0;
	if (answer->granted < q->need + q->extra)
		b->extra_ms = now_ms + BUDGET_AGAIN_MS;
	else
		b->extra_ms = 0;
	quotas_set_state(b->quotas, b->index, is_short ? QUOTA_USED_UP : QUOTA_OPEN,
	        is_short && answer->wait_ms > 0 ? now_ms + answer->wait_ms : 0,
	        b->amount - answer->room);
}

void budget_away(struct budget *b)
{
	b->changed = true;
	b->need_ms = b->extra_ms = 0;
	quotas_set_state(b->quotas, b->index, QUOTA_AWAY, 0, UINT64_MAX);
}
