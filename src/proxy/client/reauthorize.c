/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a new policy, the end of the proxy, or retirement to one connection from the sandbox.
 * proxy/reauthorize.c has the order of all steps: first each connection is looked at; once the
 * policies have changed, what is marked ends.
 */
#include "proxy/client/http2.h"
#include "proxy/postgres/postgres.h"
#include "proxy/tunnel/tunnel.h"

static size_t look_at_tunnel(
        struct client *c, const struct policy *next, enum event_cause cause, const char *detail)
{
	struct policy_decision now;

	if (next && client_tunnel_passes(c, next, &now) &&
	        exchange_decision_stands(c->proxy->config.policy, &c->decision, next, &now)) {
		c->decision = now;
		return 0;
	}
	c->cut = true;
	if (c->tunnel)
		tunnel_record(c->tunnel, cause, detail);
	else if (c->postgres)
		postgres_record(c->postgres, cause, detail);
	else
		audit_connection(
		        c, &c->decision, EVENT_DENIED, cause, detail, c->input_buf.len, 0, NULL);
	return 1;
}

/* credential: as of client_reauthorize(). */
static bool look_at_exchange(struct exchange *ex, const struct policy *next, uint32_t credential,
        enum event_cause cause, const char *detail)
{
	if (!ex || (credential != POLICY_NONE && ex->verdict.decision.credential != credential))
		return false;
	return exchange_reauthorize(ex, next, cause, detail);
}

static size_t look_at_streams(struct client_http2 *h, const struct policy *next,
        uint32_t credential, enum event_cause cause, const char *detail)
{
	size_t marked = 0;

	for (struct list *l = h->streams.next; l != &h->streams; l = l->next) {
		struct client_http2_stream *s = container_of(l, struct client_http2_stream, list);

		marked += look_at_exchange(s->exchange, next, credential, cause, detail);
	}
	return marked;
}

size_t client_reauthorize(struct client *c, const struct policy *next, uint32_t credential,
        enum event_cause cause, const char *detail)
{
	switch (c->state) {
	case CLIENT_EXCHANGE:
		return look_at_exchange(c->exchange, next, credential, cause, detail);
	case CLIENT_HTTP2:
		return c->http2 ? look_at_streams(c->http2, next, credential, cause, detail) : 0;
	case CLIENT_POSTGRES:
		return credential == POLICY_NONE || c->decision.credential == credential
		               ? look_at_tunnel(c, next, cause, detail)
		               : 0;
	case CLIENT_DIAL:
		return credential == POLICY_NONE ? look_at_tunnel(c, next, cause, detail) : 0;
	case CLIENT_ASSOCIATING:
	case CLIENT_ASSOCIATED: /* udp_relay looks at each flow */
		c->cut = c->cut || (credential == POLICY_NONE && !next);
		return 0;
	default: /* nothing of the exchange was sent yet */
		return 0;
	}
}

/* The first marked stream. The caller starts over after each, because the end of one exchange may
 * end others. */
static struct client_http2_stream *marked_stream(struct client_http2 *h)
{
	for (struct list *l = h->streams.next; l != &h->streams; l = l->next) {
		struct client_http2_stream *s = container_of(l, struct client_http2_stream, list);

		if (s->exchange && exchange_is_marked(s->exchange))
			return s;
	}
	return NULL;
}

static bool is_associated(const struct client *c)
{
	return c->state == CLIENT_ASSOCIATING || c->state == CLIENT_ASSOCIATED;
}

void client_end_marked(struct client *c, bool policy_is_new)
{
	struct client_http2_stream *s;

	if (c->state == CLIENT_EXCHANGE && c->exchange && exchange_is_marked(c->exchange))
		exchange_take_step(c->exchange, policy_is_new);
	while (c->state == CLIENT_HTTP2 && c->http2 && (s = marked_stream(c->http2))) {
		if (s->exchange->marking.state == MARKING_CUT)
			s->code = NGHTTP2_CANCEL;
		exchange_take_step(s->exchange, policy_is_new);
	}
	if ((c->state == CLIENT_DIAL || c->state == CLIENT_POSTGRES || is_associated(c)) &&
	        c->cut) {
		c->reset = true;
		client_close(c); /* the tunnel, or each flow, is recorded already */
	}
}

/* An association ends: the client makes the next one with the worker that serves from now on.
 *
 * A request that is on its way is read first, and served. A session without any request so far is
 * left alone, because GOAWAY would refuse requests that may be on their way. */
void client_retire(struct client *c)
{
	bool idle = false;

	if (is_associated(c)) {
		client_close(c);
		return;
	}
	if (c->state == CLIENT_HTTP)
		client_process_now(c);
	if (c->state == CLIENT_HTTP)
		idle = !c->exchange;
	else if (c->state == CLIENT_HTTP2 && client_http2_has_asked(c))
		idle = client_http2_drain(c);
	if (idle && c->answered)
		client_close(c);
}
