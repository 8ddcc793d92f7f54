/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of this process's jail have reached: written by each stage, read by
 * jail_describe(). */
#ifndef VETHGUARD_JAIL_STATE_H
#define VETHGUARD_JAIL_STATE_H

#include <stdbool.h>

#include "vethguard/jail/jail.h"

struct jail_state {
	bool started;
	bool single_id;    /* only one user id is mapped: a rootless namespace */
	bool groups_fixed; /* setgroups(2) is denied here */
	bool empty_root;
	bool dropped;
	struct jail_ids ids;
	int landlock_abi; /* 0: not confined by Landlock */
	bool landlock_ports;
	unsigned calls_allowed; /* rules of the seccomp list; 0: none loaded */
};

extern struct jail_state jail_state;

/* Reads /proc/self/uid_map and setgroups into the state; harmless to repeat. */
void jail_state_read_ids(void);

#endif
