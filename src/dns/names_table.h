/* SPDX-License-Identifier: Apache-2.0 */
/* names_table: what names.c and names_shared.c share. */
#ifndef VETHGUARD_SRC_DNS_NAMES_TABLE_H
#define VETHGUARD_SRC_DNS_NAMES_TABLE_H

#include "vethguard/base/table.h"
#include "vethguard/dns/responder.h"
#include "vethguard/ipc/shared_names.h"

struct name {
	/* In the table, unless the host is unknown, or two workers found an address for it. */
	UT_hash_handle hh;
	struct name *prev, *next; /* in names->idle, if holds is 0 */
	int64_t asked_ms;
	uint32_t index;
	uint32_t holds;
	uint32_t version; /* of the entry that was read */
	uint8_t host_n;   /* 0: unknown what the index stands for */
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
	int64_t now_ms;             /* of the latest names_assign(), or names_keep_held() */
	struct shared_names shared; /* memory is NULL if not shared */
	bool follows;               /* another worker gives out the addresses (names_follow()) */
};
_Static_assert(SHARED_NAME_MAX == POLICY_HOST_MAX, "every name can be shared");

/* Makes room for one more index. Returns 0 or -ENOMEM. */
int names_make_slot(struct names *names);
/* Makes a name without an index. It is not put into the table if another name with this host is in
 * there. Returns NULL if there is no memory. */
struct name *names_make(struct names *names, struct slice host, unsigned hash);
/* Removes an idle name, and frees it. */
void names_remove(struct names *names, struct name *name);
/* Gives an index its name, which is idle. */
void names_place(struct names *names, uint32_t index, struct name *name, int64_t asked_ms);
unsigned names_hash_of(const struct names *names, struct slice host);

/* names_shared.c: how many indices the memory has names for, within the limit. */
uint32_t names_shared_count(const struct names *names);
/* Takes over all indices below end. Returns 0 or -ENOMEM. */
int names_import(struct names *names, uint32_t end);
/* Follower: returns the name that the index has now; a name that a connection holds stays. Returns
 * NULL if there is no memory. */
struct name *names_read_again(struct names *names, struct name *name);

#endif
