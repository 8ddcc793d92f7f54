/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds what one address may do without a proof: connections at a time, and connections per second
 * that end without one. Wrong proofs are counted: after FAILURES_MANY in a minute their answers
 * wait longer, and a finding reports the address. Right proofs from the same address never wait,
 * because many sandboxes may share it.
 *
 * When the table is full, the oldest address without a connection is forgotten.
 */
#include <stdlib.h>

#include "gateway/gateway.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define FRUITLESS_PER_S 50
#define FRUITLESS_BURST_S 4
#define WRONG_SIGNATURES_PER_S 20
#define WRONG_SIGNATURES_BURST_S 5
#define WINDOW_MS 60000
#define FAILURES_MANY 10 /* wrong proofs in WINDOW_MS */
#define NETWORK6_BYTES 8 /* a client with one IPv6 address has its whole /64 */

static struct ip key_of(const struct ip *source)
{
	struct ip key = {.family = source->family};

	memcpy(key.bytes, source->bytes, source->family == 4 ? 4 : NETWORK6_BYTES);
	return key;
}

static void forget(struct gateway *g, struct address *a)
{
	HASH_DEL(g->addresses, a);
	free(a);
}

/* The table is in the order in which the addresses were first seen. */
static void make_room(struct gateway *g)
{
	struct address *a, *next;

	HASH_ITER(hh, g->addresses, a, next)
	{
		if (HASH_COUNT(g->addresses) < GATEWAY_ADDRESSES_MAX)
			return;
		if (!a->connections)
			forget(g, a);
	}
}

static struct address *add(struct gateway *g, const struct ip *key)
{
	struct address *a;

	make_room(g);
	a = HASH_COUNT(g->addresses) < GATEWAY_ADDRESSES_MAX ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return NULL;
	a->key = *key;
	rate_init(&a->fruitless, FRUITLESS_PER_S, FRUITLESS_BURST_S, clock_monotonic_ms());
	rate_init(
	        &a->checks, WRONG_SIGNATURES_PER_S, WRONG_SIGNATURES_BURST_S, clock_monotonic_ms());
	HASH_ADD(hh, g->addresses, key, sizeof(a->key), a);
	if (a->hh.tbl)
		return a;
	free(a);
	return NULL;
}

struct address *address_begin(struct gateway *g, const struct ip *source)
{
	const struct ip key = key_of(source);
	struct address *a;

	HASH_FIND(hh, g->addresses, &key, sizeof(key), a);
	if (!a)
		a = add(g, &key);
	if (!a || a->connections >= g->start.unauthenticated_per_address ||
	        !rate_has(&a->fruitless, clock_monotonic_ms()))
		return NULL;
	a->connections++;
	return a;
}

void address_end(struct gateway *g, struct address *a, bool proved)
{
	(void)g;
	a->connections--;
	if (!proved)
		rate_take(&a->fruitless, clock_monotonic_ms());
}

static void tell(struct gateway *g, struct address *a, int64_t now_ms)
{
	const struct message_gateway_guesses m = {a->key, a->untold};
	uint8_t message[64];

	if ((a->told_ms && now_ms - a->told_ms < WINDOW_MS) || !rate_take(&g->findings, now_ms))
		return;
	a->told_ms = now_ms;
	a->untold = 0;
	ipc_send(&g->supervisor, message,
	        message_gateway_guesses_encode(
	                message, sizeof(message), MESSAGE_GATEWAY_GUESSES, 0, &m),
	        NULL, 0);
}

enum gateway_wait address_failed(struct gateway *g, struct address *a)
{
	const int64_t now_ms = clock_monotonic_ms();

	if (now_ms - a->window_ms > WINDOW_MS) {
		a->window_ms = now_ms;
		a->failures = 0;
	}
	a->failures++;
	a->untold++;
	if (a->failures < FAILURES_MANY)
		return WAIT_REFUSE;
	tell(g, a, now_ms);
	return WAIT_REFUSE_LONG;
}

bool address_may_check(struct gateway *g, struct address *a)
{
	const int64_t now_ms = clock_monotonic_ms();

	return rate_has(&a->checks, now_ms) && rate_has(&g->checks, now_ms);
}

void address_check_failed(struct gateway *g, struct address *a)
{
	const int64_t now_ms = clock_monotonic_ms();

	rate_take(&a->checks, now_ms);
	rate_take(&g->checks, now_ms);
}

void addresses_free(struct gateway *g)
{
	struct address *a, *next;

	HASH_ITER(hh, g->addresses, a, next)
	forget(g, a);
}
