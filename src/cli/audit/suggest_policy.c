/* SPDX-License-Identifier: Apache-2.0 */
/* Compares denials with today's policy: what the policy allows by now needs no rule, and what its
 * deny rules refuse cannot be opened by an allow rule. */
#include "cli/audit/suggest.h"

static void decide(const struct policy *policy, const struct suggest_ask *ask,
        struct policy_decision *decision)
{
	struct policy_request request = {.scheme = ask->scheme, .port = ask->port};
	struct policy_decision connection;

	if (!ip_parse(slice_from_string(ask->host), &request.address))
		request.host = slice_from_string(ask->host);
	if (ask->method) {
		request.method = slice_from_string(ask->method);
		request.path = slice_from_string(ask->path);
	}
	if (ask->kind != SUGGEST_PLAIN) {
		suggest_question_decide(policy, ask, &request, decision);
		return;
	}
	policy_decide(policy, &request, decision);
	if (decision->verdict == POLICY_DENY && policy_relays_unread(policy, &request, &connection))
		*decision = connection;
}

/* Asks that are excluded for a reason outside the rules (findings, placeholders, ...) stay as they
 * are and are named under every policy. So are names alone, which have no port. */
static bool is_for_a_policy(const struct suggest_ask *ask)
{
	return ask->port != 0 &&
	       (ask->exclusion == SUGGEST_FINE || ask->exclusion == SUGGEST_DENY_RULE ||
	               ask->exclusion == SUGGEST_ADDRESS);
}

void suggest_decide(struct suggest *s, const struct policy *policy)
{
	for (size_t i = 0; i < s->count; i++) {
		struct suggest_ask *ask = &s->asks[i];
		struct policy_decision decision;

		if (!is_for_a_policy(ask))
			continue;
		decide(policy, ask, &decision);
		if (decision.verdict == POLICY_ALLOW && !decision.observed) {
			ask->exclusion = SUGGEST_ALLOWED;
			ask->count = 0;
			s->allowed++;
		} else if (decision.reason == POLICY_REASON_RULE ||
		           decision.reason == POLICY_REASON_FLOOR) {
			ask->exclusion = SUGGEST_DENY_RULE;
		}
	}
}
