/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the policy says about a name, and about a name that a resolver's search list has made from
 * another one (resolv.conf(5), "search" and "ndots"): "api.github.com.corp.example" is asked for
 * before "api.github.com".
 *
 * The sandbox's list is not known here, but the policy shows it: such a name is not allowed, and
 * the labels that it begins with are an allowed name. A resolver tries its next name only if it is
 * told that this one does not exist.
 */
#include "vethguard/policy/policy.h"
#include "dns/private.h"

#define HTTPS_PORT 443
#define UNUSED_PORT 1 /* tcpmux: no rule names it */

/* The first question finds the rule of the usual case. The second one asks for a port that nobody
 * uses: the reason "but not this port" then shows that another port is allowed. */
bool allowed_name(const struct policy *policy, struct slice host, struct policy_decision *decision)
{
	struct policy_request request = {.scheme = POLICY_HTTPS, .host = host, .port = HTTPS_PORT};
	struct policy_decision other;

	if (policy_decide_tls(policy, &request, decision) != POLICY_TLS_REFUSE &&
	        !decision->observed)
		return true;
	request.port = UNUSED_PORT;
	policy_decide(policy, &request, &other);
	if ((other.verdict == POLICY_DENY || other.observed) && other.reason != POLICY_REASON_PORT)
		return false;
	*decision = other;
	return true;
}

/* One lookup shows that most beginnings of a name are in no rule at all. */
static bool is_allowed(const struct policy *policy, struct slice name)
{
	struct policy_decision decision;

	return policy_mentions_host(policy, name) && allowed_name(policy, name, &decision);
}

struct slice allowed_search_domain(const struct policy *policy, struct slice host)
{
	size_t end = host.n;

	for (unsigned labels = 0; labels < ALLOWED_SEARCH_LABELS; labels++) {
		while (end > 0 && host.p[end - 1] != '.')
			end--;
		if (end <= 1)
			break;
		if (is_allowed(policy, slice_of(host.p, end - 1)))
			return slice_of(host.p + end, host.n - end);
		end--;
	}
	return SLICE("");
}
