/* SPDX-License-Identifier: Apache-2.0 */
/* CONNECT: a client asks its explicit proxy for a tunnel (RFC 9110 section 9.3.6). */
#include "proxy/client/peek_policy.h"
#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"

bool client_connect_passes(
        const struct client *c, const struct destination *d, struct policy_decision *decision)
{
	struct policy_request q;

	peek_question(d, &q);
	if (policy_decide_tls(c->proxy->config.policy, &q, decision) != POLICY_TLS_REFUSE)
		return true;
	q.scheme = POLICY_HTTP;
	policy_decide(c->proxy->config.policy, &q, decision);
	if (decision->verdict == POLICY_ALLOW)
		return true;
	q.scheme = POLICY_TCP;
	policy_decide(c->proxy->config.policy, &q, decision);
	return decision->verdict == POLICY_ALLOW;
}

enum client_state client_connect(struct client *c)
{
	static const char accepted[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	static const char misplaced[] = "CONNECT is for the proxy port only";
	struct exchange *ex = c->exchange;
	struct url_authority *a = &ex->request.authority;
	struct destination d = {.port = a->port};
	struct slice name;

	c->keep_alive = false;
	if (a->host_n)
		destination_set_host(&d, slice_of(a->host, a->host_n));
	else if (names_lookup(c->proxy->config.names, &a->address, &name))
		destination_set_host(&d, name);
	else
		d.address = a->address;
	exchange_introduce_connect(ex, &d);
	if (!c->explicit_proxy || c->connected) {
		audit_finding(c->proxy, c, EVENT_FINDING_SMUGGLING, ex->id, SLICE(""), misplaced);
		exchange_refuse(ex, 400, EVENT_CAUSE_CLIENT, misplaced);
		return CLIENT_EXCHANGE;
	}
	if (!client_connect_passes(c, &d, &ex->verdict.decision)) {
		exchange_refuse(ex, 403, EVENT_CAUSE_POLICY, NULL);
		return CLIENT_EXCHANGE;
	}
	c->destination = d;
	c->connected = true;
	c->exchange = NULL;
	exchange_drop(ex);
	http1_reset(&c->http1);
	socket_write(&c->socket, accepted, sizeof(accepted) - 1);
	return CLIENT_PEEK;
}
