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
/* Returns 0 if the table is there and not dormant: such a one has its rules and no effect. */
int compare_table(struct nft *nft, uint32_t family, const char *name);
/* Calls look until it has seen everything while nothing changed. Returns what it returns, but
 * -ESTALE for -ENOENT; -EAGAIN: something changed each time. */
int compare_still(int (*look)(struct nft *, const void *spec), const void *spec);

#endif
