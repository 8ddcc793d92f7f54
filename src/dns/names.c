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
 * What is written to shared memory is for the next worker. This worker reads only two things there
 * later: whether another worker has taken over, and names that one has added, when an address of
 * theirs is looked up.
 */
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "vethguard/base/table.h"
#include "vethguard/dns/responder.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/policy/url.h"
#include "dns/pool.h"

#define KEEP_MS ((int64_t)2 * RESPONDER_TTL_S * 1000)
#define FIRST_SLOTS 64

struct name {
	/* In the table, unless the host is unknown, or two workers found an address for it. */
	UT_hash_handle hh;
	struct name *prev, *next; /* in names->idle, if holds is 0 */
	int64_t asked_ms;
	uint32_t index;
	uint32_t holds;
	uint8_t host_n; /* 0: unknown what the index stands for */
	char host[];
};
_Static_assert(POLICY_HOST_MAX <= UINT8_MAX, "a host's length fits its field");

struct names {
	struct hash_key key;
	struct ip_prefix pool4, pool6;
	uint32_t limit;      /* bound on indices */
	struct name *table;  /* by host */
	struct name **slots; /* by index */
	uint32_t slots_cap;
	uint32_t count;             /* indices given out so far */
	struct name *idle;          /* not held; the one idle longest is first */
	int64_t now_ms;             /* of the latest names_assign */
	struct shared_names shared; /* memory is NULL if not shared */
};
_Static_assert(SHARED_NAME_MAX == POLICY_HOST_MAX, "every name can be shared");

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

/* Makes room for one more index. */
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

/* Makes a name without an index. It is not put into the table if another name with this host is in
 * there. */
static struct name *name_new(struct names *names, struct slice host, unsigned hash)
{
	struct name *name = calloc(1, sizeof(*name) + host.n);
	struct name *other = NULL;

	if (!name)
		return NULL;
	memcpy(name->host, host.p, host.n);
	name->host_n = (uint8_t)host.n;
	if (host.n)
		HASH_FIND_BYHASHVALUE(hh, names->table, host.p, host.n, hash, other);
	if (!host.n || other)
		return name;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, names->table, name->host, host.n, hash, name);
	if (!name->hh.tbl) {
		free(name);
		return NULL;
	}
	return name;
}

static void name_free(struct names *names, struct name *name)
{
	if (name->hh.tbl)
		HASH_DEL(names->table, name);
	DL_DELETE(names->idle, name);
	free(name);
}

/* Gives an index its name, which is idle. */
static void place(struct names *names, uint32_t index, struct name *name, int64_t asked_ms)
{
	name->index = index;
	name->asked_ms = asked_ms;
	names->slots[index] = name;
	DL_APPEND(names->idle, name);
}

static unsigned hash_of(const struct names *names, struct slice host)
{
	return (unsigned)hash_bytes(&names->key, host.p, host.n);
}

/* --- what other workers have written --- */

/* Copies an index's name from the memory; a name of no bytes if that is not a host name. */
static struct name *read_shared(struct names *names, uint32_t index, int64_t *asked_ms)
{
	char bytes[SHARED_NAME_MAX], canonical[POLICY_HOST_MAX + 1];
	struct slice host = {bytes, shared_names_get(&names->shared, index, bytes, asked_ms)};
	size_t n = 0;

	if (!host.n || !url_canonical_host(host, canonical, &n) ||
	        !slice_equals(host, slice_of(canonical, n)))
		host.n = 0;
	return name_new(names, host, hash_of(names, host));
}

/* Takes over all indices below end. Returns 0 or -ENOMEM. */
static int import(struct names *names, uint32_t end)
{
	int64_t asked_ms;

	while (names->count < end) {
		struct name *name = NULL;

		if (make_slot(names) < 0 || !(name = read_shared(names, names->count, &asked_ms)))
			return -ENOMEM;
		place(names, names->count++, name, names->now_ms);
	}
	return 0;
}

static uint32_t shared_count(const struct names *names)
{
	uint32_t count = shared_names_count(&names->shared);

	return count < names->limit ? count : names->limit;
}

static struct name *find_address(struct names *names, const struct ip *address)
{
	struct name *name;
	uint32_t index;

	if (!index_of(names, address, &index) || index >= names->limit)
		return NULL;
	if (index >= names->count && names->shared.memory)
		import(names, shared_count(names));
	name = index < names->count ? names->slots[index] : NULL;
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

struct found {
	int64_t asked_ms;
	struct name *name;
};

static int by_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->asked_ms > y->asked_ms) - (x->asked_ms < y->asked_ms);
}

/* Takes over all that the memory has, in the order of the last queries. */
static int import_first(struct names *names, int64_t now_ms, uint32_t *dropped)
{
	uint32_t count = shared_count(names), n = 0;
	struct found *found = calloc(count ? count : 1, sizeof(*found));

	if (!found)
		return -ENOMEM;
	for (; n < count; n++) {
		if (names->count == names->slots_cap && make_slot(names) < 0)
			break;
		found[n].name = read_shared(names, n, &found[n].asked_ms);
		if (!found[n].name)
			break;
		*dropped += !found[n].name->host_n;
		found[n].name->index = names->count;
		names->slots[names->count++] = found[n].name;
	}
	qsort(found, n, sizeof(*found), by_time);
	for (uint32_t i = 0; i < n; i++)
		place(names, found[i].name->index, found[i].name, now_ms);
	free(found);
	return n < count ? -ENOMEM : 0;
}

int names_share(struct names *names, int fd, int64_t now_ms, uint32_t *dropped)
{
	int rc = shared_names_open(&names->shared, fd);

	*dropped = 0;
	if (rc)
		return rc;
	if (names->limit > names->shared.limit)
		names->limit = names->shared.limit;
	names->now_ms = now_ms;
	return import_first(names, now_ms, dropped);
}

/* --- own names --- */

/* The idle name whose index may be reused now, or NULL. */
static struct name *pick_victim(const struct names *names)
{
	struct name *oldest = names->idle;

	if (names->shared.memory && !shared_names_newest(&names->shared))
		return NULL;
	return oldest && names->now_ms - oldest->asked_ms >= KEEP_MS ? oldest : NULL;
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
			rc = import(names, *index);
	} else if (names->count >= names->limit) {
		rc = -ENOSPC;
	}
	return rc ? rc : make_slot(names);
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
	name = name_new(names, host, hash);
	if (!name)
		return -ENOMEM;
	if (victim)
		name_free(names, victim);
	else
		names->count = index + 1;
	place(names, index, name, names->now_ms);
	if (names->shared.memory)
		shared_names_put(&names->shared, index, host, names->now_ms);
	*out = name;
	return 0;
}

int names_assign(
        struct names *names, struct slice host, int64_t now_ms, struct ip *v4, struct ip *v6)
{
	unsigned hash = hash_of(names, host);
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
