/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every name owns one index, and index i stands for the address 256 + i of both pools, so that an
 * address leads to its name by subtraction and no second table. Indices are given out in order
 * until the limit; after that the name asked longest ago gives up its own. Names that a connection
 * holds are not in the list of those that may go; when the last connection lets go, the name joins
 * its end as if it had been asked just then. The list is therefore in order of time and its first
 * member alone tells whether anything may be given away.
 */
#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = true)
#include <uthash.h>
#include <utlist.h>

#include "vethguard/dns/responder.h"

#define LINK_ADDRESSES 256 /* at the start of each pool */
#define KEEP_MS ((int64_t)2 * RESPONDER_TTL_S * 1000)
#define FIRST_SLOTS 64

struct name {
	UT_hash_handle hh;
	struct name *prev, *next; /* in names->idle, where holds is 0 */
	int64_t asked_ms;
	uint32_t index;
	uint32_t holds;
	bool lost; /* the table had no memory for it */
	uint8_t host_n;
	char host[];
};
_Static_assert(POLICY_HOST_MAX <= UINT8_MAX, "a host's length fits its field");

struct names {
	struct hash_key key;
	struct ip_prefix pool4, pool6;
	uint32_t limit;      /* indices there may be */
	struct name *table;  /* by host */
	struct name **slots; /* by index */
	uint32_t slots_cap;
	uint32_t count;    /* indices given out so far */
	struct name *idle; /* not held, the longest idle first */
	int64_t now_ms;    /* of the latest names_assign */
};

/* Addresses of a pool that names may have; the last one of an IPv4 pool is its broadcast address.
 */
static uint32_t pool_room(const struct ip_prefix *pool)
{
	unsigned host_bits = (pool->base.family == 4 ? 32u : 128u) - pool->bits;

	if (host_bits >= 32)
		return UINT32_MAX - LINK_ADDRESSES;
	return (1u << host_bits) > LINK_ADDRESSES + 1 ? (1u << host_bits) - LINK_ADDRESSES - 1 : 0;
}

struct names *names_new(
        const struct ip_prefix *pool4, const struct ip_prefix *pool6, uint32_t limit)
{
	struct names *names = calloc(1, sizeof(*names));
	uint32_t room4 = pool_room(pool4), room6 = pool_room(pool6);

	if (!names)
		return NULL;
	names->key = hash_random_key();
	names->pool4 = *pool4;
	names->pool6 = *pool6;
	names->limit = limit < room4 ? limit : room4;
	if (names->limit > room6)
		names->limit = room6;
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	HASH_CLEAR(hh, names->table);
	for (uint32_t i = 0; i < names->count; i++)
		free(names->slots[i]);
	free(names->slots);
	free(names);
}

/* Base plus offset, over the last four bytes; a pool's host bits are zero and wide enough for it.
 */
static struct ip address_at(const struct ip_prefix *pool, uint32_t index)
{
	struct ip ip = pool->base;
	uint32_t offset = index + LINK_ADDRESSES;
	uint8_t *last = ip.bytes + (ip.family == 4 ? 0 : 12);

	for (int i = 3; i >= 0; i--, offset >>= 8)
		last[i] = (uint8_t)(last[i] | (offset & 0xff));
	return ip;
}

/* Where an address stands in its pool, counted from the first that a name may have. False: not in
 * there. */
static bool index_of(const struct names *names, const struct ip *address, uint32_t *index)
{
	const struct ip_prefix *pool = address->family == 4 ? &names->pool4 : &names->pool6;
	size_t bytes = address->family == 4 ? 4 : 16;
	uint64_t offset = 0;

	if (!ip_in_prefix(address, pool))
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (offset >> 32) /* beyond every index */
			offset = UINT32_MAX;
		offset = offset << 8 | (uint8_t)(address->bytes[i] ^ pool->base.bytes[i]);
	}
	if (offset < LINK_ADDRESSES)
		return false;
	offset -= LINK_ADDRESSES;
	*index = offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset;
	return true;
}

static struct name *find_address(const struct names *names, const struct ip *address)
{
	uint32_t index;

	return index_of(names, address, &index) && index < names->count ? names->slots[index]
	                                                                : NULL;
}

bool names_is_synthetic(const struct names *names, const struct ip *address)
{
	uint32_t index;

	return index_of(names, address, &index);
}

bool names_lookup(struct names *names, const struct ip *address, struct slice *host)
{
	const struct name *name = find_address(names, address);

	if (!name)
		return false;
	*host = slice_of(name->host, name->host_n);
	return true;
}

static int make_slot(struct names *names)
{
	uint32_t cap = names->slots_cap ? names->slots_cap * 2 : FIRST_SLOTS;
	struct name **slots;

	if (names->count < names->slots_cap)
		return 0;
	if (cap > names->limit || cap < names->slots_cap)
		cap = names->limit;
	slots = realloc(names->slots, cap * sizeof(struct name *));
	if (!slots)
		return -ENOMEM;
	names->slots = slots;
	names->slots_cap = cap;
	return 0;
}

/* The idle name that may go now, or NULL. */
static struct name *pick_victim(const struct names *names)
{
	struct name *oldest = names->idle;

	return oldest && names->now_ms - oldest->asked_ms >= KEEP_MS ? oldest : NULL;
}

static int add_name(struct names *names, struct slice host, unsigned hash, struct name **out)
{
	struct name *victim = NULL;
	struct name *name;
	int err = 0;

	if (names->count < names->limit)
		err = make_slot(names);
	else if (!(victim = pick_victim(names)))
		err = -ENOSPC;
	if (err)
		return err;
	name = calloc(1, sizeof(*name) + host.n);
	if (!name)
		return -ENOMEM;
	memcpy(name->host, host.p, host.n);
	name->host_n = (uint8_t)host.n;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, names->table, name->host, host.n, hash, name);
	if (name->lost) {
		free(name);
		return -ENOMEM;
	}
	name->index = victim ? victim->index : names->count++;
	if (victim) {
		HASH_DEL(names->table, victim);
		DL_DELETE(names->idle, victim);
		free(victim);
	}
	names->slots[name->index] = name;
	DL_APPEND(names->idle, name);
	*out = name;
	return 0;
}

int names_assign(
        struct names *names, struct slice host, int64_t now_ms, struct ip *v4, struct ip *v6)
{
	unsigned hash = (unsigned)hash_bytes(&names->key, host.p, host.n);
	struct name *name;

	if (host.n == 0 || host.n > POLICY_HOST_MAX)
		return -EINVAL;
	names->now_ms = now_ms;
	HASH_FIND_BYHASHVALUE(hh, names->table, host.p, host.n, hash, name);
	if (!name) {
		int err = add_name(names, host, hash, &name);

		if (err)
			return err;
	} else if (name->holds == 0) {
		DL_DELETE(names->idle, name);
		DL_APPEND(names->idle, name);
	}
	name->asked_ms = now_ms;
	*v4 = address_at(&names->pool4, name->index);
	*v6 = address_at(&names->pool6, name->index);
	return 0;
}

void names_hold(struct names *names, const struct ip *address)
{
	struct name *name = find_address(names, address);

	if (name && name->holds++ == 0)
		DL_DELETE(names->idle, name);
}

void names_release(struct names *names, const struct ip *address)
{
	struct name *name = find_address(names, address);

	if (!name || name->holds == 0 || --name->holds > 0)
		return;
	name->asked_ms = names->now_ms;
	DL_APPEND(names->idle, name);
}
