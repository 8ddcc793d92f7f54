/* SPDX-License-Identifier: Apache-2.0 */
/* Results of this process's jail stages: written by each stage, read by jail_describe(). */
#ifndef VETHGUARD_SRC_JAIL_JAIL_STATE_H
#define VETHGUARD_SRC_JAIL_JAIL_STATE_H

#include <stdbool.h>

#include "vethguard/base/buf.h"
#include "vethguard/jail/capabilities.h"
#include "vethguard/jail/jail.h"

/* What the kernel said before it could no longer be asked. */
struct jail_facts {
	struct jail_ids ids;
	int groups; /* supplementary ones */
	struct capabilities capabilities;
	uint64_t bounding, ambient;
	int no_new_privs, dumpable;
	uint64_t core_limit; /* bytes */
	uint64_t namespaces[JAIL_NAMESPACES];
	unsigned filters;   /* seccomp filters from outside: a container's, a service's */
	unsigned files_max; /* limit on the number of descriptors */
};

struct jail_state {
	bool started;
	bool single_id;    /* only one user id is mapped: a rootless namespace */
	bool groups_fixed; /* setgroups(2) is denied here */
	bool empty_root;
	bool dropped;
	int landlock_abi;               /* 0: not confined by Landlock */
	bool landlock_ports;            /* connections are limited to ports */
	bool landlock_binds;            /* may bind to a port that the kernel chooses */
	void (*probe)(struct buf *out); /* tries what Landlock has to refuse; NULL: not possible */
	uint16_t ports[JAIL_PORTS_MAX];
	size_t port_count;
	unsigned calls_allowed; /* rules of the seccomp list; 0: no list loaded */
	struct jail_facts facts;
};

extern struct jail_state jail_state;

/* Reads /proc/self/uid_map and setgroups into the state; may be repeated. */
void jail_state_read_ids(void);
/* Read parts of the facts, each when it is final and can still be read. jail_read_facts() reads all
 * of them. */
void jail_read_filters(void);
void jail_read_namespaces(void);
void jail_read_ids_and_sets(void);
void jail_read_facts(void);
const char *jail_namespace_name(size_t i);

/* drop.c: jail_drop() with supplementary groups. */
int jail_drop_to(struct jail_ids ids, const gid_t *groups, size_t group_count);
/* landlock.c: permits reading and executing everything, and changing only what is below these
 * paths. Restricts access to other processes as jail_landlock() does. Returns 0, -EOPNOTSUPP or
 * another -errno. */
int landlock_read_only(const char *const *writable, size_t count);

#endif
