/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in shared memory: what another worker of the sandbox has written. A worker that follows
 * gives out no addresses. It looks at each address's entry again: the entry's version tells whether
 * the index has another name now.
 */
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "vethguard/policy/url.h"
#include "dns/names_table.h"

/* Copies an index's name from the memory; a name of no bytes if that is not a host name. */
static struct name *read_shared(struct names *names, uint32_t index, int64_t *asked_ms)
{
	char bytes[SHARED_NAME_MAX], canonical[POLICY_HOST_MAX + 1];
	const uint32_t version = shared_names_version(&names->shared, index);
	struct slice host = {bytes, shared_names_get(&names->shared, index, bytes, asked_ms)};
	struct name *name;
	size_t n = 0;

	if (!host.n || !url_canonical_host(host, canonical, &n) ||
	        !slice_equals(host, slice_of(canonical, n)))
		host.n = 0;
	name = names_make(names, host, names_hash_of(names, host));
	if (name)
		name->version = version;
	return name;
}

/* Follower: returns the name that the index has now; a name that a connection holds stays. Returns
 * NULL if there is no memory. */
struct name *names_read_again(struct names *names, struct name *name)
{
	const uint32_t index = name->index;
	struct name *now;
	int64_t asked_ms;

	if (name->holds > 0 || name->version == shared_names_version(&names->shared, index))
		return name;
	now = read_shared(names, index, &asked_ms);
	if (!now)
		return NULL;
	names_remove(names, name);
	names_place(names, index, now, names->now_ms);
	return now;
}

/* Takes over all indices below end. Returns 0 or -ENOMEM. */
int names_import(struct names *names, uint32_t end)
{
	int64_t asked_ms;

	while (names->count < end) {
		struct name *name = NULL;

		if (names_make_slot(names) < 0 ||
		        !(name = read_shared(names, names->count, &asked_ms)))
			return -ENOMEM;
		names_place(names, names->count++, name, names->now_ms);
	}
	return 0;
}

uint32_t names_shared_count(const struct names *names)
{
	uint32_t count = shared_names_count(&names->shared);

	return count < names->limit ? count : names->limit;
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
	uint32_t count = names_shared_count(names), n = 0;
	struct found *found = calloc(count ? count : 1, sizeof(*found));

	if (!found)
		return -ENOMEM;
	for (; n < count; n++) {
		if (names->count == names->slots_cap && names_make_slot(names) < 0)
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
		names_place(names, found[i].name->index, found[i].name, now_ms);
	free(found);
	return n < count ? -ENOMEM : 0;
}

static int take_over(struct names *names, int rc, int64_t now_ms, uint32_t *dropped)
{
	*dropped = 0;
	if (rc)
		return rc;
	if (names->limit > names->shared.limit)
		names->limit = names->shared.limit;
	names->now_ms = now_ms;
	return import_first(names, now_ms, dropped);
}

int names_share(struct names *names, int fd, int64_t now_ms, uint32_t *dropped)
{
	return take_over(names, shared_names_open(&names->shared, fd), now_ms, dropped);
}

int names_follow(struct names *names, int fd, int64_t now_ms, uint32_t *dropped)
{
	names->follows = true;
	return take_over(names, shared_names_watch(&names->shared, fd), now_ms, dropped);
}

void names_keep_held(struct names *names, int64_t now_ms)
{
	names->now_ms = now_ms;
	for (uint32_t i = 0; i < names->count; i++)
		if (names->slots[i]->holds > 0)
			shared_names_asked(&names->shared, i, now_ms);
}
