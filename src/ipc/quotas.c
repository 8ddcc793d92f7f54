/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what is left of a lease is one word, from which workers subtract by
 * compare-and-exchange. So vethguard-quota can take it away at any time: what it gets, no worker
 * has. Everything else of a quota has one writer: workers count what they want, took and owe;
 * vethguard-quota writes lease, state and claims.
 *
 * The end of a lease is checked beside that word. A worker that is stopped between the two could
 * take from a lease that has just ended. That is why the server counts each part for one part
 * longer than a lease may last (quota/script.c).
 */
#include "vethguard/ipc/quotas.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ipc/boot_file.h"
#include "ipc/private.h"

#define LAYOUT 0x76677131u /* of head and entries: changes with them */
#define WAIT_LEAST_MS 1000

struct claim {
	_Atomic int64_t part;
	_Atomic uint64_t amount;
};

struct quota {
	uint8_t key[QUOTAS_KEY];
	_Atomic uint64_t period_ms; /* 0: free */
	_Atomic uint64_t amount;
	/* of workers */
	_Atomic uint64_t left, taken, wanted, owed;
	/* of vethguard-quota */
	_Atomic uint64_t low, used_by_all;
	_Atomic int64_t part, since_ms, until_ms, retry_at_ms;
	_Atomic uint32_t state;
	struct claim claims[QUOTAS_CLAIMS];
};

struct quotas_memory {
	struct boot_head head; /* of a file; in a memfd all zeros */
	uint8_t id[QUOTAS_ID];
	_Atomic uint32_t hosts;
	_Atomic uint32_t rung;
	_Atomic int64_t beat_ms;
	_Alignas(64) struct quota quotas[QUOTAS_MAX];
};

/* --- the memory --- */

int quotas_create(void)
{
	return ipc_memory_new("vethguard-quotas", sizeof(struct quotas_memory));
}

int quotas_create_at(int directory, const char *name)
{
	return boot_file_create(directory, name, LAYOUT, sizeof(struct quotas_memory));
}

static int look_at_file(int fd, off_t size)
{
	return boot_file_check(fd, size, LAYOUT, sizeof(struct quotas_memory));
}

int quotas_open_at(int directory, const char *name)
{
	return ipc_memory_open_own(directory, name, look_at_file);
}

int quotas_open(struct quotas *quotas, int fd, int bell)
{
	int rc;

	quotas->memory = ipc_memory_map(fd, sizeof(struct quotas_memory), &rc);
	quotas->bell = bell;
	if (quotas->memory)
		ipc_memory_spare(quotas->memory);
	close(fd);
	if (rc)
		quotas_close(quotas);
	return rc;
}

void quotas_close(struct quotas *quotas)
{
	if (quotas->memory)
		ipc_memory_unmap(quotas->memory, sizeof(struct quotas_memory));
	quotas->memory = NULL;
	if (quotas->bell >= 0)
		close(quotas->bell);
	quotas->bell = -1;
}

bool quotas_are_lost(const struct quotas *quotas)
{
	return !quotas->memory || ipc_memory_lost(quotas->memory);
}

static struct quota *at(const struct quotas *quotas, uint32_t index)
{
	return &quotas->memory->quotas[index];
}

static uint64_t bounded(uint64_t amount)
{
	return amount < QUOTAS_AMOUNT_MAX ? amount : QUOTAS_AMOUNT_MAX;
}

/* Subtracts the amount, or as much as there is. */
static void subtract(_Atomic uint64_t *from, uint64_t amount)
{
	uint64_t old = atomic_load_explicit(from, memory_order_relaxed);

	while (!atomic_compare_exchange_weak(from, &old, old > amount ? old - amount : 0))
		;
}

static void add(_Atomic uint64_t *to, uint64_t amount)
{
	uint64_t old = atomic_load_explicit(to, memory_order_relaxed);

	while (!atomic_compare_exchange_weak(to, &old, bounded(bounded(old) + amount)))
		;
}

/* --- for the supervisor --- */

int quotas_prepare(struct quotas *quotas, uint32_t hosts)
{
	static const uint8_t none[QUOTAS_ID];

	atomic_store(&quotas->memory->hosts, hosts);
	if (memcmp(quotas->memory->id, none, QUOTAS_ID) != 0)
		return 0;
	return getrandom(quotas->memory->id, QUOTAS_ID, 0) == QUOTAS_ID ? 0 : -EIO;
}

uint32_t quotas_find(const struct quotas *quotas, const uint8_t key[QUOTAS_KEY], uint64_t period_ms,
        uint64_t amount)
{
	for (uint32_t i = 0; i < QUOTAS_MAX; i++) {
		const struct quota *q = at(quotas, i);

		if (atomic_load_explicit(&q->period_ms, memory_order_acquire) == period_ms &&
		        atomic_load_explicit(&q->amount, memory_order_relaxed) == amount &&
		        memcmp(q->key, key, QUOTAS_KEY) == 0)
			return i;
	}
	return QUOTAS_NONE;
}

/* All are kept: workers of other sandboxes may know them by their index. */
static uint32_t find_room(const struct quotas *quotas)
{
	for (uint32_t i = 0; i < QUOTAS_MAX; i++)
		if (atomic_load(&at(quotas, i)->period_ms) == 0)
			return i;
	return QUOTAS_NONE;
}

uint32_t quotas_place(
        struct quotas *quotas, const uint8_t key[QUOTAS_KEY], uint64_t period_ms, uint64_t amount)
{
	uint32_t index = quotas_find(quotas, key, period_ms, amount);
	struct quota *q;

	if (index != QUOTAS_NONE)
		return index;
	index = find_room(quotas);
	if (index == QUOTAS_NONE)
		return index;
	q = at(quotas, index);
	atomic_store(&q->period_ms, 0);
	memset(q, 0, sizeof(*q));
	memcpy(q->key, key, QUOTAS_KEY);
	atomic_store(&q->amount, amount);
	atomic_store(&q->period_ms, period_ms);
	return index;
}

uint64_t quotas_used_by_all(const struct quotas *quotas, uint32_t index)
{
	return bounded(atomic_load(&at(quotas, index)->used_by_all));
}

enum quota_state quotas_state(const struct quotas *quotas, uint32_t index)
{
	uint32_t state = atomic_load(&at(quotas, index)->state);

	return state < QUOTA_STATE_COUNT ? (enum quota_state)state : QUOTA_AWAY;
}

/* --- for workers --- */

/* One that cannot be rung does no harm: vethguard-quota also looks without it, a little later. */
static void ring(const struct quotas *quotas)
{
	const uint64_t one = 1;

	if (quotas->bell >= 0 && atomic_exchange(&quotas->memory->rung, 1) == 0 &&
	        write(quotas->bell, &one, sizeof(one)) < 0)
		atomic_store(&quotas->memory->rung, 0);
}

void quotas_want(const struct quotas *quotas, uint32_t index, uint64_t amount)
{
	struct quota *q = at(quotas, index);
	uint64_t old = atomic_load_explicit(&q->wanted, memory_order_relaxed);

	while (old < amount && !atomic_compare_exchange_weak(&q->wanted, &old, amount))
		;
	ring(quotas);
}

static bool is_valid(const struct quota *q, int64_t now_ms)
{
	return now_ms < atomic_load(&q->until_ms);
}

bool quotas_take(const struct quotas *quotas, uint32_t index, int64_t now_ms, uint64_t amount)
{
	struct quota *q = at(quotas, index);
	uint64_t left = is_valid(q, now_ms) ? atomic_load(&q->left) : 0;

	do {
		if (left < amount || left == 0) {
			quotas_want(quotas, index, amount ? amount : 1);
			return false;
		}
		if (!amount)
			return true;
	} while (!atomic_compare_exchange_weak(&q->left, &left, left - amount));
	atomic_fetch_add(&q->taken, amount);
	if (left - amount < atomic_load_explicit(&q->low, memory_order_relaxed))
		ring(quotas);
	return true;
}

uint64_t quotas_left(const struct quotas *quotas, uint32_t index, int64_t now_ms)
{
	const struct quota *q = at(quotas, index);

	return is_valid(q, now_ms) ? bounded(atomic_load(&q->left)) : 0;
}

bool quotas_are_away(const struct quotas *quotas, uint32_t index, int64_t now_ms)
{
	int64_t beat_ms = atomic_load(&quotas->memory->beat_ms);

	return quotas_state(quotas, index) == QUOTA_AWAY || beat_ms > now_ms ||
	       now_ms - beat_ms > QUOTAS_BEAT_MS;
}

void quotas_owe(const struct quotas *quotas, uint32_t index, uint64_t amount)
{
	struct quota *q = at(quotas, index);

	add(&q->owed, amount);
	atomic_fetch_add(&q->taken, amount);
}

void quotas_give_back(
        const struct quotas *quotas, uint32_t index, int64_t taken_ms, uint64_t amount)
{
	struct quota *q = at(quotas, index);

	if (taken_ms >= atomic_load(&q->since_ms))
		add(&q->left, amount);
}

int64_t quotas_wait_ms(const struct quotas *quotas, uint32_t index, int64_t now_ms)
{
	int64_t at_ms = atomic_load(&at(quotas, index)->retry_at_ms);

	return at_ms > now_ms + WAIT_LEAST_MS ? at_ms - now_ms : WAIT_LEAST_MS;
}

uint32_t quotas_hosts(const struct quotas *quotas)
{
	return atomic_load(&quotas->memory->hosts);
}

/* --- for vethguard-quota --- */

void quotas_beat(const struct quotas *quotas, int64_t now_ms)
{
	atomic_store(&quotas->memory->rung, 0);
	atomic_store(&quotas->memory->beat_ms, now_ms);
}

void quotas_id(const struct quotas *quotas, uint8_t out[QUOTAS_ID])
{
	memcpy(out, quotas->memory->id, QUOTAS_ID);
}

uint64_t quotas_take_wanted(const struct quotas *quotas, uint32_t index)
{
	return bounded(atomic_exchange(&at(quotas, index)->wanted, 0));
}

uint64_t quotas_taken(const struct quotas *quotas, uint32_t index)
{
	return atomic_load(&at(quotas, index)->taken);
}

void quotas_lease(const struct quotas *quotas, uint32_t index, struct quota_lease *out)
{
	const struct quota *q = at(quotas, index);

	*out = (struct quota_lease){.part = atomic_load(&q->part),
	        .since_ms = atomic_load(&q->since_ms),
	        .until_ms = atomic_load(&q->until_ms),
	        .low = atomic_load(&q->low)};
}

void quotas_set_lease(const struct quotas *quotas, uint32_t index, const struct quota_lease *lease)
{
	struct quota *q = at(quotas, index);

	atomic_store(&q->low, lease->low);
	atomic_store(&q->since_ms, lease->since_ms);
	atomic_store(&q->until_ms, lease->until_ms);
	atomic_store(&q->part, lease->part);
}

void quotas_add(const struct quotas *quotas, uint32_t index, uint64_t amount)
{
	add(&at(quotas, index)->left, amount);
}

uint64_t quotas_withdraw(const struct quotas *quotas, uint32_t index, uint64_t keep)
{
	_Atomic uint64_t *left = &at(quotas, index)->left;
	uint64_t old = atomic_load(left);

	while (!atomic_compare_exchange_weak(left, &old, old > keep ? keep : old))
		;
	return bounded(old > keep ? old - keep : 0);
}

void quotas_set_state(const struct quotas *quotas, uint32_t index, enum quota_state state,
        int64_t retry_at_ms, uint64_t used_by_all)
{
	struct quota *q = at(quotas, index);

	if (used_by_all != UINT64_MAX)
		atomic_store(&q->used_by_all, used_by_all);
	atomic_store(&q->retry_at_ms, retry_at_ms);
	atomic_store(&q->state, (uint32_t)state);
}

uint64_t quotas_owed(const struct quotas *quotas, uint32_t index)
{
	return bounded(atomic_load(&at(quotas, index)->owed));
}

void quotas_owed_sub(const struct quotas *quotas, uint32_t index, uint64_t amount)
{
	subtract(&at(quotas, index)->owed, amount);
}

static struct claim *claim_of(const struct quotas *quotas, uint32_t index, int64_t part)
{
	return &at(quotas, index)->claims[(uint64_t)part % QUOTAS_CLAIMS];
}

uint64_t quotas_claim(const struct quotas *quotas, uint32_t index, size_t slot, int64_t *part)
{
	const struct claim *claim = &at(quotas, index)->claims[slot];

	*part = atomic_load(&claim->part);
	return bounded(atomic_load(&claim->amount));
}

/* A slot that still has another part's claim begins anew: that part is too old to count. */
void quotas_claim_add(const struct quotas *quotas, uint32_t index, int64_t part, uint64_t amount)
{
	struct claim *claim = claim_of(quotas, index, part);

	if (atomic_load(&claim->part) != part) {
		atomic_store(&claim->amount, 0);
		atomic_store(&claim->part, part);
	}
	add(&claim->amount, amount);
}

void quotas_claim_sub(const struct quotas *quotas, uint32_t index, int64_t part, uint64_t amount)
{
	struct claim *claim = claim_of(quotas, index, part);

	if (atomic_load(&claim->part) == part)
		subtract(&claim->amount, amount);
}
