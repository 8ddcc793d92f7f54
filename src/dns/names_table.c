/* SPDX-License-Identifier: Apache-2.0 */
/* The table of names and the slots of indices, for names.c and names_shared.c. */
#include "dns/names_table.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#define FIRST_SLOTS 64

/* Makes room for one more index. */
int names_make_slot(struct names *names)
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
struct name *names_make(struct names *names, struct slice host, unsigned hash)
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

void names_remove(struct names *names, struct name *name)
{
	if (name->hh.tbl)
		HASH_DEL(names->table, name);
	DL_DELETE(names->idle, name);
	free(name);
}

/* Gives an index its name, which is idle. */
void names_place(struct names *names, uint32_t index, struct name *name, int64_t asked_ms)
{
	name->index = index;
	name->asked_ms = asked_ms;
	names->slots[index] = name;
	DL_APPEND(names->idle, name);
}

unsigned names_hash_of(const struct names *names, struct slice host)
{
	return (unsigned)hash_bytes(&names->key, host.p, host.n);
}
