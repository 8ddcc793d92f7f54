/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations are asked about as if by a request of each scheme: which of them no rule allows, and
 * which a rule refuses, is known before a byte has come. */
#include "proxy/client/peek_policy.h"

#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

void peek_question(const struct destination *d, struct policy_request *q)
{
	*q = (struct policy_request){
	        .host = destination_host(d), .address = d->address, .port = d->port};
}

bool peek_http_may_be_allowed(const struct policy *policy, const struct destination *d)
{
	struct policy_request q;
	struct policy_decision decision;

	peek_question(d, &q);
	q.scheme = POLICY_HTTP;
	policy_decide(policy, &q, &decision);
	return decision.verdict == POLICY_ALLOW;
}

bool peek_web_may_be_allowed(const struct policy *policy, const struct destination *d)
{
	struct policy_request q;
	struct policy_decision decision;
	enum policy_tls tls;

	peek_question(d, &q);
	tls = policy_decide_tls(policy, &q, &decision);
	return tls == POLICY_TLS_INTERCEPT || tls == POLICY_TLS_PASSTHROUGH ||
	       peek_http_may_be_allowed(policy, d);
}

static bool scheme_is_denied(
        const struct policy *policy, const struct destination *d, enum policy_scheme scheme)
{
	struct policy_request q;
	struct policy_decision decision;

	peek_question(d, &q);
	q.scheme = scheme;
	policy_decide(policy, &q, &decision);
	return decision.verdict == POLICY_DENY && decision.reason == POLICY_REASON_RULE;
}

bool peek_web_is_denied(const struct policy *policy, const struct destination *d)
{
	return scheme_is_denied(policy, d, POLICY_HTTPS) ||
	       scheme_is_denied(policy, d, POLICY_HTTP);
}

bool peek_opaque_is_allowed(struct client *c, struct verdict *j)
{
	authorize_opaque(c->proxy->config.policy, &c->destination, POLICY_TCP, j);
	return j->allowed;
}

/* True if a rule of the policy, not only mode observe, allows http or https there. Mode observe
 * lets everything pass. */
static bool web_has_rule(const struct policy *policy, const struct destination *d)
{
	struct policy_request q;
	struct policy_decision decision;

	peek_question(d, &q);
	if (policy_decide_tls(policy, &q, &decision) != POLICY_TLS_REFUSE && !decision.observed)
		return true;
	q.scheme = POLICY_HTTP;
	policy_decide(policy, &q, &decision);
	return decision.verdict == POLICY_ALLOW && !decision.observed;
}

bool peek_is_only_observed(struct client *c, struct policy_decision *decision)
{
	struct verdict j;

	authorize_opaque(c->proxy->config.policy, &c->destination, POLICY_TCP, &j);
	*decision = j.decision;
	return j.allowed && j.decision.observed &&
	       !web_has_rule(c->proxy->config.policy, &c->destination);
}

/* Web clients open connections before they have something to ask for, or take their time until
 * then: git reads all of the system's authorities first. */
static bool is_port_of_web(uint16_t port)
{
	return port == HTTP_PORT || port == HTTPS_PORT;
}

enum proxy_wait client_first_wait(struct client *c)
{
	struct policy_decision decision;
	struct verdict j;

	if (c->explicit_proxy || is_port_of_web(c->destination.port))
		return WAIT_HELLO;
	/* The server may speak first, and the client gives up sooner than vethguard. */
	if (peek_is_only_observed(c, &decision))
		return WAIT_SILENT;
	authorize_opaque(c->proxy->config.policy, &c->destination, POLICY_TCP, &j);
	return (!j.allowed || j.decision.observed) &&
	                       !peek_web_may_be_allowed(c->proxy->config.policy, &c->destination)
	               ? WAIT_SILENT
	               : WAIT_HELLO;
}
