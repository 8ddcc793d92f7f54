/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 without TLS, by prior knowledge (RFC 9113 section 3.3). Nothing announces it: a client
 * that begins with it knows that its origin speaks it, so its requests are sent by it too; gRPC
 * needs it. But the client may be wrong, or may send to this proxy what it would send to any
 * server. So only the preface and settings are sent, and no request before the upstream's settings
 * have come.
 *
 * If something else comes, or the connection ends, or nothing comes for PRIOR_MS, the request is
 * sent by HTTP/1.1; a gRPC call fails, because it would not be understood there. An origin that
 * sent something else is not asked again for NO_PRIOR_KEPT_MS.
 */

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"

#define NO_PRIOR_KEPT_MS 60000

static bool same(const struct destination *a, const struct destination *b)
{
	return a->port == b->port && slice_equals(destination_host(a), destination_host(b)) &&
	       (a->host_n || ip_equals(&a->address, &b->address));
}

static bool is_known(struct proxy *p, const struct destination *d)
{
	int64_t now_ms = loop_now_ms(p->config.loop);

	for (size_t i = 0; i < NO_PRIOR_KEPT; i++)
		if (p->no_prior[i].until_ms > now_ms && same(&p->no_prior[i].destination, d))
			return true;
	return false;
}

static void remember(struct proxy *p, const struct destination *d)
{
	struct no_prior *known = &p->no_prior[p->next_no_prior++ % NO_PRIOR_KEPT];

	known->destination = *d;
	known->until_ms = loop_now_ms(p->config.loop) + NO_PRIOR_KEPT_MS;
}

bool prior_is_wanted(const struct exchange *ex)
{
	return ex->client_version == 20 && !ex->client->tls && ex->sending.how != UPSTREAM_HTTP1 &&
	       !ex->sending.prior_in_vain &&
	       (exchange_is_grpc(ex) || !is_known(ex->proxy, &ex->destination));
}

bool prior_is_in_vain(const struct upstream_conn *c)
{
	const struct exchange *ex = c->own.exchange;

	return c->how == UPSTREAM_PRIOR && ex && !prior_is_wanted(ex);
}

void prior_failed(struct upstream_conn *c, bool told)
{
	struct exchange *ex = c->own.exchange;

	if (told && !is_known(c->proxy, &c->destination))
		remember(c->proxy, &c->destination);
	if (ex && !exchange_is_grpc(ex)) {
		exchange_prior_in_vain(ex);
		c->own.untouched = true;
	}
	upstream_conn_failed(c, EVENT_CAUSE_UPSTREAM,
	        "the upstream does not speak HTTP/2 without TLS, which the request needs");
}
