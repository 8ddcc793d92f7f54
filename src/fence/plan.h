/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what the fence of one interface consists of, as data: setting it up and checking it read
 * the same plan. Private to fence/. */
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

/* Prefixes of what exists once per interface. */
#define FENCE_INGRESS_PREFIX "in-" /* the hook, which needs the interface */
#define FENCE_WIRE_PREFIX "wire-"  /* what it leads to */
#define FENCE_LINK_PREFIX "link-"
#define FENCE_UDP_PREFIX "udp-"
#define FENCE_SOURCES4_PREFIX "src4-"
#define FENCE_SOURCES6_PREFIX "src6-"
#define FENCE_OVER_PREFIX "over-" /* where what is beyond a bound ends */
#define FENCE_COUNTER_PREFIX "drop-"
#define FENCE_PASSED_PREFIX "pass-"   /* IP that the ingress hook let through */
#define FENCE_RECEIVED_PREFIX "recv-" /* of it, what the IP stack took */
#define FENCE_CONNECTIONS_PREFIX "syn-"
#define FENCE_QUERIES_PREFIX "dns-"
#define FENCE_DATAGRAMS_PREFIX "dgram-"

struct chain_plan {
	const char *table;
	uint32_t family;
	char name[FENCE_NAME_MAX];
	const char *device; /* netdev only; borrowed from the spec */
	bool base;
	uint32_t hook, policy;
	int32_t priority;
	void (*build)(struct rule_list *l, const struct fence_spec *spec);
};

char *fence_name(char out[FENCE_NAME_MAX], const char *prefix, const char *interface);
/* -EINVAL for a spec that no fence can be made of. */
int fence_spec_check(const struct fence_spec *spec);
/* Fills out and returns how many chains there are: the interface's own, then the shared ones, and
 * last the hook on the interface. */
#define FENCE_OWN_CHAINS 3
size_t fence_plan(const struct fence_spec *spec, struct chain_plan out[FENCE_CHAINS_MAX]);
/* The rules of one chain; rule_list_fini() afterwards. 0 or -ENOMEM. */
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
/* Log, count, and leave the verdict to the caller. */
void rules_note(struct rule_list *l, const struct fence_spec *spec, const char *prefix);
/* A rule before those: what is beyond so many copies a second is counted and dropped without one.
 * 0: no rule. */
void rules_drop_uncopied(struct rule_list *l, const struct fence_spec *spec, uint32_t per_second);
/* IPv6 next headers in the set FENCE_EXTENSIONS. */
extern const uint8_t rules_extensions[];
extern const size_t rules_extension_count;

/* 0; -ENODEV: there is no such interface; -errno: it cannot be asked (if_nametoindex() would say
 * for want of a descriptor that there is none). */
int fence_look_for(const char *interface);

#endif
