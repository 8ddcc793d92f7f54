/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the fence of one interface as data. Both setting it up and checking it read this plan.
 * Private to fence/. */
#ifndef VETHGUARD_SRC_FENCE_PLAN_H
#define VETHGUARD_SRC_FENCE_PLAN_H

#include "fence/expr.h"
#include "vethguard/fence/fence.h"

#define FENCE_TABLE "vethguard"
#define FENCE_LINKS "links"           /* set of the fenced interfaces */
#define FENCE_SANDBOXES "sandboxes"   /* map from interface to its chain */
#define FENCE_EXTENSIONS "extensions" /* IPv6 next headers that are not the payload's own */
#define FENCE_CHAINS_MAX 8
#define FENCE_NAME_MAX 32 /* a prefix below and an interface's name */

/* Prefixes of objects that exist once per interface. */
#define FENCE_INGRESS_PREFIX "in-" /* the hook, which needs the interface */
#define FENCE_WIRE_PREFIX "wire-"  /* the chain that the hook leads to */
#define FENCE_LINK_PREFIX "link-"
#define FENCE_UDP_PREFIX "udp-"
#define FENCE_SOURCES4_PREFIX "src4-"
#define FENCE_SOURCES6_PREFIX "src6-"
#define FENCE_OVER_PREFIX "over-" /* chain for what exceeds a bound */
#define FENCE_COUNTER_PREFIX "drop-"
#define FENCE_PASSED_PREFIX "pass-"   /* IP that the ingress hook let through */
#define FENCE_RECEIVED_PREFIX "recv-" /* the part of it that the IP stack accepted */
#define FENCE_CONNECTIONS_PREFIX "syn-"
#define FENCE_QUERIES_PREFIX "dns-"
#define FENCE_DATAGRAMS_PREFIX "dgram-"

struct chain_plan {
	const char *table;
	uint32_t family;
	char name[FENCE_NAME_MAX];
	const char *device; /* netdev only; borrowed from the spec */
	bool base;
	const char *type; /* of a base chain; NULL: "filter" */
	uint32_t hook, policy;
	int32_t priority;
	void (*build)(struct rule_list *l, const struct fence_spec *spec);
};

char *fence_name(char out[FENCE_NAME_MAX], const char *prefix, const char *interface);
/* Returns 0, or -EINVAL if no fence can be made of spec. */
int fence_spec_check(const struct fence_spec *spec);
/* Fills out and returns the number of chains: the interface's own chains first, then the shared
 * ones, last the hook on the interface. */
#define FENCE_OWN_CHAINS 3
size_t fence_plan(const struct fence_spec *spec, struct chain_plan out[FENCE_CHAINS_MAX]);
/* Builds the rules of one chain. Returns 0 or -ENOMEM; call rule_list_fini() in either case. */
int fence_plan_rules(
        const struct chain_plan *chain, const struct fence_spec *spec, struct rule_list *out);

/* The chains' contents (rules_ingress.c, rules_inet.c). */
void rules_hook(struct rule_list *l, const struct fence_spec *spec);
void rules_wire(struct rule_list *l, const struct fence_spec *spec);
void rules_link(struct rule_list *l, const struct fence_spec *spec);
void rules_over(struct rule_list *l, const struct fence_spec *spec);
void rules_prerouting(struct rule_list *l, const struct fence_spec *spec);
void rules_output(struct rule_list *l, const struct fence_spec *spec);
void rules_forward(struct rule_list *l, const struct fence_spec *spec);
void rules_input(struct rule_list *l, const struct fence_spec *spec);
/* Appends log and counter; the caller appends the verdict. */
void rules_note(struct rule_list *l, const struct fence_spec *spec, const char *prefix);
/* A rule to put before these: what exceeds this many copies per second is counted and dropped
 * without a copy. 0: no rule. */
void rules_drop_uncopied(struct rule_list *l, const struct fence_spec *spec, uint32_t per_second);
/* IPv6 next headers in the set FENCE_EXTENSIONS. */
extern const uint8_t rules_extensions[];
extern const size_t rules_extension_count;

/* Returns 0; -ENODEV: no such interface; or another -errno: it is unknown (if_nametoindex() would
 * report a missing interface when descriptors run out). */
int fence_look_for(const char *interface);

#endif
