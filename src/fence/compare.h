/* SPDX-License-Identifier: Apache-2.0 */
/* compare: compares what the kernel has with what it should have. Private to fence/. */
#ifndef VETHGUARD_SRC_FENCE_COMPARE_H
#define VETHGUARD_SRC_FENCE_COMPARE_H

#include <libnftnl/chain.h>

#include "fence/nft.h"
#include "fence/plan.h"

/* Compares the rules of one chain. Returns 0; -ESTALE: they differ; -ENOENT: no such chain; or
 * another -errno. */
int compare_rules(struct nft *nft, const struct rule_list *wanted);
/* True if a chain that was read has the plan's hook, priority, policy and device. */
bool compare_chain(const struct nftnl_chain *c, const struct chain_plan *plan);
bool compare_device(const struct nftnl_chain *c, const char *name);

#endif
