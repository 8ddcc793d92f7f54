/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a period is cut into 60 parts. A counter has a slot for each part of the
 * last period, the running one, and three to spare, in a ring. A slot is one word: the number of
 * its part (24 bits) and the amount (40 bits), changed by compare-and-exchange. A slot whose number
 * is too old counts as empty; so nothing has to run when time passes. An adder adds first and then
 * compares the sum with the maximum: of two adders at the same time both may be refused, but they
 * never both pass beyond the maximum.
 *
 * The number of a part comes around after 2^24 parts (at least three days, for a period of a
 * second): a slot that nobody has touched for exactly so long counts once more for a period. That
 * refuses too much, never too little.
 */
#include "vethguard/ipc/counters.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "ipc/boot_file.h"
#include "ipc/private.h"

#define LAYOUT 0x76676331u /* of head and entries: changes with them */
#define PARTS 60           /* of a period */
#define SLOTS 64           /* of a counter: PARTS, the running one, and some to spare */
#define PART_BITS 24
#define PART_MASK ((UINT64_C(1) << PART_BITS) - 1)
#define AMOUNT_BITS 40
_Static_assert(SLOTS > PARTS + 1 && PART_BITS + AMOUNT_BITS == 64, "slots and bits suffice");

struct counter {
	uint8_t key[COUNTERS_KEY];
	_Atomic uint64_t period_ms; /* 0: free */
	_Atomic uint64_t slots[SLOTS];
};

struct counters_memory {
	struct boot_head head; /* of a file; in a memfd all zeros */
	_Alignas(64) struct counter counters[COUNTERS_MAX];
};

/* --- the memory --- */

int counters_create(void)
{
	return ipc_memory_new("vethguard-counters", sizeof(struct counters_memory));
}

int counters_create_at(int directory, const char *name)
{
	return boot_file_create(directory, name, LAYOUT, sizeof(struct counters_memory));
}

static int look_at_file(int fd, off_t size)
{
	return boot_file_check(fd, size, LAYOUT, sizeof(struct counters_memory));
}

int counters_open_at(int directory, const char *name)
{
	return ipc_memory_open_own(directory, name, look_at_file);
}

int counters_open(struct counters *counters, int fd)
{
	int rc;

	counters->memory = ipc_memory_map(fd, sizeof(struct counters_memory), &rc);
	if (counters->memory)
		ipc_memory_spare(counters->memory);
	close(fd);
	return rc;
}

void counters_close(struct counters *counters)
{
	if (counters->memory)
		ipc_memory_unmap(counters->memory, sizeof(struct counters_memory));
	counters->memory = NULL;
}

bool counters_are_lost(const struct counters *counters)
{
	return !counters->memory || ipc_memory_lost(counters->memory);
}

/* --- one counter --- */

/* Returns the number of the part at that time. A part has at least a millisecond, even if a hostile
 * writer has made the period tiny or zero. */
static uint64_t part_at(const struct counter *c, int64_t now_ms, uint64_t *part_ms)
{
	uint64_t period = atomic_load_explicit(&c->period_ms, memory_order_relaxed);

	*part_ms = period / PARTS + (period % PARTS != 0);
	if (*part_ms == 0)
		*part_ms = 1;
	return (uint64_t)now_ms / *part_ms;
}

static uint64_t amount_of(uint64_t slot)
{
	return slot & COUNTERS_AMOUNT_MAX;
}

/* How many parts ago the slot's part was. */
static uint64_t age_of(uint64_t slot, uint64_t part)
{
	return ((part & PART_MASK) - (slot >> AMOUNT_BITS)) & PART_MASK;
}

static uint64_t sum(const struct counter *c, uint64_t part)
{
	uint64_t all = 0;

	for (size_t i = 0; i < SLOTS; i++) {
		uint64_t slot = atomic_load_explicit(&c->slots[i], memory_order_acquire);

		if (age_of(slot, part) <= PARTS)
			all += amount_of(slot);
	}
	return all;
}

uint64_t counters_used(const struct counters *counters, uint32_t index, int64_t now_ms)
{
	const struct counter *c = &counters->memory->counters[index];
	uint64_t part_ms, part = part_at(c, now_ms, &part_ms);

	return sum(c, part);
}

/* Adds to the running part's slot. What does not fit in the slot is refused. */
static bool add(struct counter *c, uint64_t part, uint64_t amount)
{
	_Atomic uint64_t *slot = &c->slots[part % SLOTS];
	uint64_t old = atomic_load_explicit(slot, memory_order_relaxed), before;

	do {
		before = age_of(old, part) == 0 ? amount_of(old) : 0;
		if (amount > COUNTERS_AMOUNT_MAX - before)
			return false;
	} while (!atomic_compare_exchange_weak(
	        slot, &old, (part & PART_MASK) << AMOUNT_BITS | (before + amount)));
	return true;
}

static void subtract(struct counter *c, uint64_t part, uint64_t amount)
{
	_Atomic uint64_t *slot = &c->slots[part % SLOTS];
	uint64_t old = atomic_load_explicit(slot, memory_order_relaxed), before;

	do {
		if (age_of(old, part) != 0) /* its time is over */
			return;
		before = amount_of(old);
	} while (!atomic_compare_exchange_weak(slot, &old,
	        (part & PART_MASK) << AMOUNT_BITS | (before > amount ? before - amount : 0)));
}

bool counters_add(const struct counters *counters, uint32_t index, int64_t now_ms, uint64_t amount,
        uint64_t max)
{
	struct counter *c = &counters->memory->counters[index];
	uint64_t part_ms, part = part_at(c, now_ms, &part_ms);

	if (amount == 0)
		return sum(c, part) < max;
	if (!add(c, part, amount))
		return false;
	if (sum(c, part) <= max)
		return true;
	subtract(c, part, amount);
	return false;
}

void counters_take_back(
        const struct counters *counters, uint32_t index, int64_t added_ms, uint64_t amount)
{
	struct counter *c = &counters->memory->counters[index];
	uint64_t part_ms, part = part_at(c, added_ms, &part_ms);

	subtract(c, part, amount);
}

/* Finds the first part in which enough of what counts now will be too old. */
int64_t counters_wait_ms(const struct counters *counters, uint32_t index, int64_t now_ms,
        uint64_t amount, uint64_t max)
{
	const struct counter *c = &counters->memory->counters[index];
	uint64_t part_ms, part = part_at(c, now_ms, &part_ms), wanted = amount ? amount : 1;

	if (wanted > max)
		return -1;
	for (uint64_t later = 0; later <= PARTS + 1; later++) {
		uint64_t left = 0;

		for (size_t i = 0; i < SLOTS; i++) {
			uint64_t slot = atomic_load_explicit(&c->slots[i], memory_order_acquire);
			uint64_t age = age_of(slot, part);

			if (age <= PARTS && age + later <= PARTS)
				left += amount_of(slot);
		}
		if (left <= max - wanted)
			return later ? (int64_t)((part + later) * part_ms) - now_ms : 0;
	}
	return -1;
}

/* --- places --- */

uint32_t counters_find(
        const struct counters *counters, const uint8_t key[COUNTERS_KEY], uint64_t period_ms)
{
	for (uint32_t i = 0; i < COUNTERS_MAX; i++) {
		const struct counter *c = &counters->memory->counters[i];

		if (atomic_load_explicit(&c->period_ms, memory_order_acquire) == period_ms &&
		        memcmp(c->key, key, COUNTERS_KEY) == 0)
			return i;
	}
	return COUNTERS_NONE;
}

/* What was added within the last span_ms, which may be less than the counter's own period. */
static uint64_t used_within(const struct counter *c, int64_t now_ms, uint64_t span_ms)
{
	uint64_t part_ms, part = part_at(c, now_ms, &part_ms), all = 0;

	for (size_t i = 0; i < SLOTS; i++) {
		uint64_t slot = atomic_load_explicit(&c->slots[i], memory_order_acquire);
		uint64_t age = age_of(slot, part);

		if (age <= PARTS && (age == 0 || (age - 1) * part_ms <= span_ms))
			all += amount_of(slot);
	}
	return all;
}

/* The most that one counter of this key has got within the period, whatever its own period is. */
static uint64_t held_by_key(
        const struct counters *counters, const uint8_t *key, uint64_t period_ms, int64_t now_ms)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < COUNTERS_MAX; i++) {
		const struct counter *c = &counters->memory->counters[i];
		uint64_t used;

		if (!atomic_load_explicit(&c->period_ms, memory_order_relaxed) ||
		        memcmp(c->key, key, COUNTERS_KEY) != 0)
			continue;
		used = used_within(c, now_ms, period_ms);
		most = used > most ? used : most;
	}
	return most < COUNTERS_AMOUNT_MAX ? most : COUNTERS_AMOUNT_MAX;
}

static bool is_free(const struct counters *counters, uint32_t i, int64_t now_ms,
        bool (*is_kept)(void *, const uint8_t *, uint64_t), void *context)
{
	const struct counter *c = &counters->memory->counters[i];
	uint64_t period_ms = atomic_load_explicit(&c->period_ms, memory_order_relaxed);

	if (!period_ms)
		return true;
	return is_kept && !is_kept(context, c->key, period_ms) &&
	       counters_used(counters, i, now_ms) == 0;
}

/* Prefers free places: a policy may again name a counter that is empty now. */
static uint32_t find_room(const struct counters *counters, int64_t now_ms,
        bool (*is_kept)(void *, const uint8_t *, uint64_t), void *context)
{
	for (uint32_t i = 0; i < COUNTERS_MAX; i++)
		if (is_free(counters, i, now_ms, NULL, NULL))
			return i;
	for (uint32_t i = 0; i < COUNTERS_MAX; i++)
		if (is_free(counters, i, now_ms, is_kept, context))
			return i;
	return COUNTERS_NONE;
}

static void begin(struct counter *c, const uint8_t *key, uint64_t period_ms)
{
	atomic_store(&c->period_ms, 0);
	for (size_t i = 0; i < SLOTS; i++)
		atomic_store(&c->slots[i], 0);
	memcpy(c->key, key, COUNTERS_KEY);
	atomic_store(&c->period_ms, period_ms);
}

uint32_t counters_place(struct counters *counters, const uint8_t key[COUNTERS_KEY],
        uint64_t period_ms, uint64_t at_least, int64_t now_ms,
        bool (*is_kept)(void *context, const uint8_t *key, uint64_t period_ms), void *context)
{
	uint32_t index = counters_find(counters, key, period_ms);
	uint64_t held = held_by_key(counters, key, period_ms, now_ms), used, part_ms;
	struct counter *c;

	if (index == COUNTERS_NONE) {
		index = find_room(counters, now_ms, is_kept, context);
		if (index == COUNTERS_NONE)
			return COUNTERS_NONE;
		begin(&counters->memory->counters[index], key, period_ms);
	}
	c = &counters->memory->counters[index];
	used = counters_used(counters, index, now_ms);
	held = held > at_least ? held : at_least;
	if (held > used)
		add(c, part_at(c, now_ms, &part_ms), held - used);
	return index;
}
