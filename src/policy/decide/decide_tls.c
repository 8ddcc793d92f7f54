/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about a connection before a request is known, derived from policy_decide(). */
#include "policy/decide/lookup.h"

enum policy_tls policy_decide_tls(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out)
{
	struct policy_request connection = *request;
	struct policy_decision opaque;

	connection.scheme = POLICY_HTTPS;
	connection.method = connection.path = SLICE("");
	policy_decide(policy, &connection, out);
	if (out->verdict == POLICY_ALLOW && !out->observed)
		return out->passthrough ? POLICY_TLS_PASSTHROUGH : POLICY_TLS_INTERCEPT;
	if (out->verdict == POLICY_DENY && out->reason == POLICY_REASON_RULE)
		return POLICY_TLS_REFUSE;
	connection.scheme = POLICY_TCP;
	policy_decide(policy, &connection, &opaque);
	if (opaque.verdict == POLICY_ALLOW && !opaque.observed) {
		*out = opaque;
		return POLICY_TLS_OPAQUE;
	}
	return out->verdict == POLICY_ALLOW ? POLICY_TLS_INTERCEPT : POLICY_TLS_REFUSE;
}

/* TLS is not opened there. Of plain http not even the first bytes are looked at, unless the policy
 * has http rules for the destination (proxy/client/peek.c). */
bool policy_relays_unread(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out)
{
	struct policy_request connection = *request;
	struct policy_decision http;

	if (request->scheme != POLICY_HTTPS && request->scheme != POLICY_HTTP)
		return false;
	connection.method = connection.path = SLICE("");
	if (policy_decide_tls(policy, &connection, out) != POLICY_TLS_OPAQUE ||
	        out->credential != POLICY_NONE) /* the login with a credential is read */
		return false;
	if (request->scheme == POLICY_HTTPS)
		return true;
	policy_decide(policy, &connection, &http);
	return http.verdict == POLICY_DENY && http.reason != POLICY_REASON_RULE;
}

bool policy_mentions_host(const struct policy *policy, struct slice host)
{
	struct policy_request request = {.host = host};
	struct found found;

	if (slice_equals(host, SLICE(POLICY_OWN_HOST)) && policy_answers(policy))
		return true;
	lookup_targets(policy, &request, &found);
	return found.count > 0;
}
