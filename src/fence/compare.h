/* SPDX-License-Identifier: Apache-2.0 */
/* compare: what the kernel holds beside what it should hold. Private to fence/. */
#ifndef VETHGUARD_SRC_FENCE_COMPARE_H
#define VETHGUARD_SRC_FENCE_COMPARE_H

#include <libnftnl/chain.h>

#include "fence/nft.h"
#include "fence/plan.h"

/* The rules of one chain. 0; -ESTALE: others; -ENOENT: no such chain; -errno. */
int compare_rules(struct nft *nft, const struct rule_list *wanted);
/* Hook, priority, policy and device of a chain that was read. */
bool compare_chain(const struct nftnl_chain *c, const struct chain_plan *plan);
bool compare_device(const struct nftnl_chain *c, const char *name);

#endif
