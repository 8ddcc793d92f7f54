/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every name owns one index, and index i stands for address 256 + i of both pools, so that an
 * address leads to its name by subtraction, without a second table. Indices are given out in order
 * until the limit; after that, the name that was asked longest ago gives up its index.
 *
 * Names that a connection holds are not in the idle list. When the last connection lets go, the
 * name joins the end of that list as if it had been asked just then. So the list is in order of
 * time, and its first member alone shows whether any index can be reused.
 *
 * What is written to shared memory is for the next worker, and for workers of the same sandbox that
 * follow. This worker reads only three things there later: whether another worker has taken over;
 * names that one has added, when an address of theirs is looked up; and whether a follower uses a
 * name whose index is to be reused.
 */
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "vethguard/base/clock.h"
#include "dns/names_table.h"
#include "dns/pool.h"

#define KEEP_MS ((int64_t)2 * RESPONDER_TTL_S * 1000)
#define AHEAD_MS 1000  /* a worker that follows may have looked at the clock later than this one */
#define VICTIMS_MAX 16 /* idle names that are looked at for one new name */

struct names *names_new(
        const struct ip_prefix *pool4, const struct ip_prefix *pool6, uint32_t limit)
{
	struct names *names = calloc(1, sizeof(*names));
	uint32_t room4 = pool_size(pool4), room6 = pool_size(pool6);

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
	shared_names_close(&names->shared);
	free(names);
}

static bool index_of(const struct names *names, const struct ip *address, uint32_t *index)
{
	return pool_index(address->family == 4 ? &names->pool4 : &names->pool6, address, index);
}

bool names_is_synthetic(const struct names *names, const struct ip *address)
{
	uint32_t index;

	return index_of(names, address, &index);
}

uint32_t names_count(const struct names *names)
{
	return names->count;
}

static struct name *find_address(struct names *names, const struct ip *address)
{
	struct name *name;
	uint32_t index;

	if (!index_of(names, address, &index) || index >= names->limit)
		return NULL;
	if (index >= names->count && names->shared.memory)
		names_import(names, names_shared_count(names));
	name = index < names->count ? names->slots[index] : NULL;
	if (name && names->follows)
		name = names_read_again(names, name);
	return name && name->host_n ? name : NULL;
}

bool names_lookup(struct names *names, const struct ip *address, struct slice *host)
{
	const struct name *name = find_address(names, address);

	if (!name)
		return false;
	*host = slice_of(name->host, name->host_n);
	return true;
}

/* --- own names --- */

/* True if a worker that follows has noted its use after the last query. A time in the
 * future is ignored: a hostile worker may have written it. */
static bool is_used_elsewhere(const struct names *names, const struct name *name)
{
	int64_t asked_ms;

	if (!names->shared.memory)
		return false;
	asked_ms = shared_names_asked_ms(&names->shared, name->index);
	return asked_ms > name->asked_ms && asked_ms <= names->now_ms + AHEAD_MS;
}

/* The name joins the end of the idle list, as if it had been asked just now. */
static void put_last(struct names *names, struct name *name)
{
	DL_DELETE(names->idle, name);
	name->asked_ms = names->now_ms;
	DL_APPEND(names->idle, name);
}

/* The idle name whose index may be reused now, or NULL. */
static struct name *pick_victim(struct names *names)
{
	if (names->shared.memory && !shared_names_newest(&names->shared))
		return NULL;
	for (size_t i = 0; i < VICTIMS_MAX; i++) {
		struct name *oldest = names->idle;

		if (!oldest || names->now_ms - oldest->asked_ms < KEEP_MS)
			return NULL;
		if (!is_used_elsewhere(names, oldest))
			return oldest;
		put_last(names, oldest);
	}
	return NULL;
}

/* Takes an index that stands for nothing yet, and makes its slot. Returns 0, -ENOSPC or -ENOMEM. */
static int take_index(struct names *names, uint32_t *index)
{
	int rc = 0;

	*index = names->count;
	if (names->shared.memory) {
		/* An index below count was claimed already, whatever the memory says now. */
		do
			rc = shared_names_claim(&names->shared, index);
		while (!rc && *index < names->count);
		if (!rc && *index >= names->limit)
			rc = -ENOSPC;
		if (!rc)
			rc = names_import(names, *index);
	} else if (names->count >= names->limit) {
		rc = -ENOSPC;
	}
	return rc ? rc : names_make_slot(names);
}

static int add_name(struct names *names, struct slice host, unsigned hash, struct name **out)
{
	struct name *victim = NULL, *name;
	uint32_t index;
	int rc = take_index(names, &index);

	if (rc == -ENOSPC && (victim = pick_victim(names))) {
		index = victim->index;
		rc = 0;
	}
	if (rc)
		return rc;
	name = names_make(names, host, hash);
	if (!name)
		return -ENOMEM;
	if (victim)
		names_remove(names, victim);
	else
		names->count = index + 1;
	names_place(names, index, name, names->now_ms);
	if (names->shared.memory)
		shared_names_put(&names->shared, index, host, names->now_ms);
	*out = name;
	return 0;
}

int names_assign(
        struct names *names, struct slice host, int64_t now_ms, struct ip *v4, struct ip *v6)
{
	unsigned hash = names_hash_of(names, host);
	struct name *name;

	if (host.n == 0 || host.n > POLICY_HOST_MAX)
		return -EINVAL;
	names->now_ms = now_ms;
	HASH_FIND_BYHASHVALUE(hh, names->table, host.p, host.n, hash, name);
	if (!name) {
		int rc = add_name(names, host, hash, &name);

		if (rc)
			return rc;
	} else if (name->holds == 0) {
		DL_DELETE(names->idle, name);
		DL_APPEND(names->idle, name);
	}
	if (names->shared.memory)
		shared_names_asked(&names->shared, name->index, now_ms);
	name->asked_ms = now_ms;
	*v4 = pool_address(&names->pool4, name->index);
	*v6 = pool_address(&names->pool6, name->index);
	return 0;
}

void names_hold(struct names *names, const struct ip *address)
{
	struct name *name = find_address(names, address);

	if (!name || name->holds++ > 0)
		return;
	DL_DELETE(names->idle, name);
	if (names->follows)
		shared_names_asked(&names->shared, name->index, clock_monotonic_ms());
}

void names_release(struct names *names, const struct ip *address)
{
	struct name *name = find_address(names, address);

	if (!name || name->holds == 0 || --name->holds > 0)
		return;
	name->asked_ms = names->now_ms;
	DL_APPEND(names->idle, name);
	if (names->follows)
		shared_names_asked(&names->shared, name->index, clock_monotonic_ms());
}
