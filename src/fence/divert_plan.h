/* SPDX-License-Identifier: Apache-2.0 */
/* divert_plan: the rules of a diverted interface. Private to fence/. */
#ifndef VETHGUARD_SRC_FENCE_DIVERT_PLAN_H
#define VETHGUARD_SRC_FENCE_DIVERT_PLAN_H

#include "fence/objects.h"
#include "fence/program.h"
#include "vethguard/fence/divert.h"
#include "vethguard/netlink/netlink.h"

#define DIVERT_GUARDED "guarded" /* set of the interfaces behind the second wall */
#define DIVERT_ITSELF "itself"   /* the same as pairs: in and out through the same interface */
#define DIVERT_WALL_MAX 7

/* The second wall has a table in each family that the kernel has; inet is required. */
enum divert_family { DIVERT_INET, DIVERT_BRIDGE, DIVERT_ARP, DIVERT_FAMILY_COUNT };
extern const uint32_t divert_families[DIVERT_FAMILY_COUNT]; /* NFPROTO_* */

enum divert_chain {
	DIVERT_IN,   /* from the guarded interface */
	DIVERT_BACK, /* from the gate's link */
	DIVERT_OUT,  /* out of the guarded interface */
	DIVERT_CHAIN_COUNT
};

struct divert {
	struct nft nft;
	bool has_egress;                      /* the kernel has the hook where frames leave an
	                                         interface */
	bool has_family[DIVERT_FAMILY_COUNT]; /* of the second wall */
	uint32_t port;
	struct netlink *nl;                 /* for the filters */
	int programs[PROGRAM_SHARED_COUNT]; /* -1: not loaded yet */
	int filters;                        /* result of the last ones: 0, or why there are none */
};

/* One chain and its rules, with the interfaces' current indexes. Call rule_list_fini()
 * afterwards. */
struct chain_plan divert_chain(enum divert_chain which, const struct divert_spec *spec);
int divert_rules(enum divert_chain which, const struct divert_spec *spec,
        const struct chain_plan *chain, struct rule_list *out);
/* The chains of the second wall; returns their number. */
size_t divert_wall(const struct divert *d, struct chain_plan out[DIVERT_WALL_MAX]);
int divert_wall_rules(const struct chain_plan *chain, struct rule_list *out);
/* The set of guarded interfaces of one family. */
struct set_plan divert_guarded(uint32_t family);
struct set_plan divert_itself(void);

/* divert_filter.c. Returns 0, also if filters are not available (see d->filters), or -errno. */
int divert_filters_set(struct divert *d, const struct divert_spec *spec);
/* Returns 0, -ESTALE or another -errno. */
int divert_filters_check(struct divert *d, const struct divert_spec *spec);
/* Removes all that exist. */
int divert_filters_remove(struct divert *d, const struct divert_spec *spec);

#endif
