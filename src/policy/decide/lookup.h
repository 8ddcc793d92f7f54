/* SPDX-License-Identifier: Apache-2.0 */
/* lookup: shared by decide.c and explain.c: finds the targets of an image that a request names, and
 * tells whether an entry agrees with the request. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_LOOKUP_H
#define VETHGUARD_SRC_POLICY_DECIDE_LOOKUP_H

#include "policy/decide/reading.h"
#include "policy/image/image.h"

/* one exact host, every glob suffix, every prefix length of both families */
#define FOUND_MAX (1 + IMAGE_LABELS_MAX + 33 + 129)

/* Targets, the most specific first. */
struct found {
	uint32_t count;
	uint32_t targets[FOUND_MAX];
};

/* A request after checks, with its method as a bit. */
struct question {
	const struct policy_request *request;
	bool connection;         /* judge the connection only */
	uint64_t method;         /* its bit, or 0 if no rule names it */
	uint64_t method_lenient; /* bits of methods equal without regard to case: for denies,
	                            since servers may ignore the case */
};

/* False if the request cannot be judged: no host and no address, host or path not canonical, or no
 * port. */
bool question_prepare(
        const struct policy *policy, const struct policy_request *request, struct question *out);
void lookup_targets(
        const struct policy *policy, const struct policy_request *request, struct found *out);
/* The profile's node for the literal start, among its denies (deny 1) or allows (deny 0), or
 * POLICY_NONE. */
uint32_t lookup_node(
        const struct policy *policy, uint32_t profile, uint32_t deny, struct slice start);

/* True if a deny's pattern matches the path as written or any reading of it (reading.h). */
bool lookup_denies(
        const struct policy *policy, const struct image_pattern *pattern, struct path_view *view);
/* An allow's pattern has to match both the path as written and its shortest reading. */
enum lookup_match {
	LOOKUP_DIFFERS,
	LOOKUP_MATCHES,
	LOOKUP_MISREAD /* matches the path as written, but not as some servers read it */
};
enum lookup_match lookup_allows(
        const struct policy *policy, const struct image_pattern *pattern, struct path_view *view);

enum lookup_naming {
	LOOKUP_BY_NAME,
	LOOKUP_BY_NETWORK, /* that means the address */
	LOOKUP_BY_ADDRESS,
	LOOKUP_TOO_WIDE /* the network contains the address but does not mean it
	                   (ip_network_means) */
};
/* How a target found for the address names it. */
enum lookup_naming lookup_naming(
        const struct policy *policy, uint32_t target, const struct ip *address);

/* A deny rule for tcp:// denies everything over TCP at its destinations. */
static inline bool scheme_agrees(uint32_t rule_scheme, bool deny, enum policy_scheme scheme)
{
	return rule_scheme == (uint32_t)scheme ||
	       (deny && rule_scheme == POLICY_TCP && scheme != POLICY_UDP);
}

/* True if a deny rule with exceptions has one for the destination. */
bool lookup_excepts(const struct policy *policy, const struct found *found,
        const struct policy_request *request, uint32_t rule);

static inline bool method_agrees(const struct question *q, const struct image_rule *r)
{
	uint64_t method = (r->flags & RULE_DENY) != 0 ? q->method_lenient : q->method;

	return (r->flags & RULE_METHODS) == 0 || (r->methods & method) != 0;
}

static inline bool port_agrees(
        const struct policy *policy, const struct image_entry *e, uint16_t port)
{
	for (uint32_t i = 0; i < e->range_count; i++) {
		const struct image_range *range = image_range_at(policy, e->first_range + i);

		if (port >= range->low && port <= range->high)
			return true;
	}
	return false;
}

#endif
