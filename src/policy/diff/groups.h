/* SPDX-License-Identifier: Apache-2.0 */
/* diff_groups: destinations that two policies treat alike, as groups. */
#ifndef VETHGUARD_SRC_POLICY_DIFF_GROUPS_H
#define VETHGUARD_SRC_POLICY_DIFF_GROUPS_H

#include "policy/compile/intern.h"
#include "policy/diff/text.h"
#include "policy/vec.h"
#include "policy/yaml/arena.h"

struct diff_group {
	struct ip address; /* family 0: a host */
	struct slice host; /* one of its hosts */
	struct diff_names names;
};

struct diff_groups {
	const struct policy *policies[2];
	struct arena *arena;
	struct intern keys, labels;
	struct vec groups; /* struct diff_group; the index is the number of its key */
	bool hidden;       /* a wildcard that a thousand hosts hide is in no group */
	bool failed;       /* no memory */
};

void diff_groups_init(struct diff_groups *groups, struct arena *arena, const struct policy *from,
        const struct policy *to);
void diff_groups_fini(struct diff_groups *groups);
/* Finds all groups. False: no memory. */
bool diff_groups_find(struct diff_groups *groups);

#endif
