/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that becomes a tunnel: searched for placeholders, counted against limits, dialed, or
 * refused. */
#include "proxy/client/peek.h"
#include "proxy/client/peek_policy.h"
#include "proxy/dial/dial.h"

enum client_state client_refuse(struct client *c, const struct policy_decision *decision,
        enum event_cause cause, const char *detail, const struct ip *upstream)
{
	audit_connection(c, decision, EVENT_DENIED, cause, detail, c->input_buf.len, 0, upstream);
	c->reset = true;
	return CLIENT_CLOSED;
}

/* Handles an allowed connection whose upstream could not be connected. */
static enum client_state fail_tunnel(
        struct client *c, enum event_cause cause, const char *detail, const struct ip *upstream)
{
	const bool failed = cause == EVENT_CAUSE_RESOLVE || cause == EVENT_CAUSE_CONNECT ||
	                    cause == EVENT_CAUSE_TIMEOUT;

	if (!failed || !c->decision.observed)
		return client_refuse(c, &c->decision, cause, detail, upstream);
	audit_connection(
	        c, &c->decision, EVENT_OBSERVED, cause, detail, c->input_buf.len, 0, upstream);
	c->reset = true;
	return CLIENT_CLOSED;
}

static void on_tunnel_dialled(void *context, const struct dial_result *result)
{
	struct client *c = context;

	c->dial = NULL;
	if (result->fd < 0) {
		client_move(
		        c, fail_tunnel(c, result->cause, result->detail,
		                   result->cause == EVENT_CAUSE_ADDRESS ? &result->address : NULL));
		return;
	}
	if (client_tunnel(c, result) < 0)
		client_move(c, client_refuse(c, &c->decision, EVENT_CAUSE_LIMIT,
		                       "no memory for a tunnel", NULL));
}

/* Looks for a placeholder in what is known of a tunnel before it is dialed: the host's name and the
 * ClientHello. Returns NULL, or a sentence that says where one is. */
static const char *find_leak(
        struct client *c, const struct destination *d, enum tunnel_content content)
{
	const struct credential_store *store = c->proxy->config.credentials;

	if (credential_store_name_mentions(store, destination_host(d)) ||
	        credential_store_name_mentions(store, slice_of(c->sni, c->sni_n)))
		return "a credential's placeholder was sent where it does not belong: in the "
		       "host's name";
	if (content == TUNNEL_TLS &&
	        credential_store_mentions_placeholder(store, buf_slice(&c->input_buf), 0))
		return "a credential's placeholder was sent where it does not belong: in the "
		       "ClientHello of a connection that is relayed unread";
	return NULL;
}

/* Records what find_leak() has found. Returns true if the policy refuses the connection for it. */
static bool is_leak(struct client *c, const char *where, struct policy_decision *decision)
{
	const bool refused = where && policy_refuses_leaks(c->proxy->config.policy);

	if (!where)
		return false;
	if (refused)
		decision->reason = POLICY_REASON_LEAK;
	audit_finding(c->proxy, c, EVENT_FINDING_PLACEHOLDER_LEAK, 0, SLICE(""), where);
	return refused;
}

enum client_state client_dial_tunnel(struct client *c, const struct destination *d,
        const struct policy_decision *allowed, enum tunnel_content content)
{
	struct policy_decision made = *allowed, *decision = &made;
	const char *where = find_leak(c, d, content);
	struct limit_hit hit;
	char text[LIMIT_TEXT_MAX];

	if (is_leak(c, where, &made))
		return client_refuse(c, &made, EVENT_CAUSE_POLICY, where, NULL);
	if (c->proxy->paused)
		return client_refuse(
		        c, decision, c->proxy->pause_cause, c->proxy->pause_text, NULL);
	if (!limit_begin_relay(c->proxy, decision->rule, &c->held, &hit))
		return client_refuse(c, decision, EVENT_CAUSE_POLICY_LIMIT,
		        limit_text(c->proxy, &hit, text), NULL);
	c->let_out = true;
	c->decision = *decision;
	c->tunnelled = *d;
	c->content = content;
	c->passthrough = decision->passthrough;
	c->dial = dial_start(c->proxy, d, decision, on_tunnel_dialled, c);
	if (!c->dial)
		return client_refuse(
		        c, decision, EVENT_CAUSE_LIMIT, "no memory for a connection", NULL);
	return CLIENT_DIAL;
}

bool client_tunnel_passes(
        const struct client *c, const struct policy *policy, struct policy_decision *decision)
{
	const struct destination *d = &c->tunnelled;
	struct policy_request q;
	struct verdict j;

	if (c->content == TUNNEL_TLS) {
		enum policy_tls treatment;

		peek_question(d, &q);
		treatment = policy_decide_tls(policy, &q, decision);
		return treatment == POLICY_TLS_PASSTHROUGH || treatment == POLICY_TLS_OPAQUE;
	}
	authorize_opaque(policy, d, POLICY_TCP, &j);
	*decision = j.decision;
	if (c->content == TUNNEL_POSTGRES)
		return j.allowed && !j.decision.observed;
	return j.allowed &&
	       (c->content == TUNNEL_OTHER || j.decision.observed ||
	               (!peek_web_may_be_allowed(policy, d) && !peek_web_is_denied(policy, d)));
}

enum client_state client_dial_timeout(struct client *c)
{
	return fail_tunnel(
	        c, EVENT_CAUSE_TIMEOUT, "connecting to the destination took too long", NULL);
}
