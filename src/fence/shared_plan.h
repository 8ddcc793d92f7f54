/* SPDX-License-Identifier: Apache-2.0 */
/* shared_plan: the fence of a shared namespace as data, for setting it up and for checking it.
 * Private to fence/. */
#ifndef VETHGUARD_SRC_FENCE_SHARED_PLAN_H
#define VETHGUARD_SRC_FENCE_SHARED_PLAN_H

#include "fence/plan.h"
#include "vethguard/fence/shared.h"

#define SHARED_TABLE "vethguard-shared"
#define SHARED_CHAINS_MAX (7 + FENCE_SHARED_DEVICES_MAX)
#define SHARED_COUNTER "refused"
#define SHARED_EGRESS_PREFIX "out-"
#define SHARED_MARK 0x76677368u /* of the connections that the guard has begun */

struct shared_chain {
	struct chain_plan plan;
	void (*build)(struct rule_list *l, const struct fence_shared_spec *spec);
};

/* Returns 0, or -EINVAL if no fence can be made of spec. */
int shared_spec_check(const struct fence_shared_spec *spec);
/* Fills out and returns the number of chains. Chains stand before those that lead to them. Names of
 * devices are borrowed from spec. */
size_t shared_plan(
        const struct fence_shared_spec *spec, struct shared_chain out[SHARED_CHAINS_MAX]);
/* Builds the rules of one chain. Returns 0 or -ENOMEM; call rule_list_fini() in either case. */
int shared_plan_rules(const struct shared_chain *chain, const struct fence_shared_spec *spec,
        struct rule_list *out);

/* The chains' contents (shared_rules.c). */
void shared_rewrite(struct rule_list *l, const struct fence_shared_spec *spec);
void shared_others(struct rule_list *l, const struct fence_shared_spec *spec);
void shared_output(struct rule_list *l, const struct fence_shared_spec *spec);
void shared_leave(struct rule_list *l, const struct fence_shared_spec *spec);
void shared_postrouting(struct rule_list *l, const struct fence_shared_spec *spec);
void shared_input(struct rule_list *l, const struct fence_shared_spec *spec);
void shared_egress(struct rule_list *l, const struct fence_shared_spec *spec);
void shared_forward(struct rule_list *l, const struct fence_shared_spec *spec);

#endif
