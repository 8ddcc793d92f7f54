/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authorizes everything under way again, or ends all of it: for a new policy, the kill switch, or a
 * worker that retires.
 *
 * There are three steps, without a turn of the loop between them:
 * 1. Look at everything. What passes gets its new verdict. What does not is marked and recorded,
 *    while the old policy can still say which of its rules allowed it.
 * 2. Change the policy.
 * 3. End what is marked. Only this step has effects; by then every index that anybody holds belongs
 *    to the policy in force.
 */
#include <unistd.h>

#include "proxy/client/http2.h"
#include "proxy/tunnel/tunnel.h"
#include "proxy/tunnel/udp_relay.h"

/* One pass: the reason, and the new policy (NULL: end everything, whatever the policy). */
struct reauthorization {
	struct proxy *proxy;
	const struct policy *next;
	uint32_t credential; /* only what has this one; POLICY_NONE: everything */
	enum event_cause cause;
	const char *detail;
	size_t ended;
};

static const char changed[] = "the policy was changed and does not let this pass any more";

/* --- step one: looking --- */

static void look_at_exchange(struct reauthorization *r, struct exchange *ex)
{
	if (ex && r->credential != POLICY_NONE && ex->verdict.decision.credential != r->credential)
		return;
	if (ex && exchange_reauthorize(ex, r->next, r->cause, r->detail))
		r->ended++;
}

static void look_at_tunnel(struct reauthorization *r, struct client *c)
{
	struct policy_decision now;

	if (r->next && client_tunnel_passes(c, r->next, &now) &&
	        exchange_decision_stands(r->proxy->config.policy, &c->decision, r->next, &now)) {
		c->decision = now;
		return;
	}
	c->cut = true;
	if (c->tunnel)
		tunnel_record(c->tunnel, r->cause, r->detail);
	else
		audit_connection(c, &c->decision, EVENT_DENIED, r->cause, r->detail,
		        c->input_buf.len, 0, NULL);
	r->ended++;
}

static void look_at_client(struct reauthorization *r, struct client *c)
{
	switch (c->state) {
	case CLIENT_EXCHANGE:
		look_at_exchange(r, c->exchange);
		break;
	case CLIENT_HTTP2:
		for (struct list *l = c->http2 ? c->http2->streams.next : NULL;
		        l && l != &c->http2->streams; l = l->next)
			look_at_exchange(
			        r, container_of(l, struct client_http2_stream, list)->exchange);
		break;
	case CLIENT_DIAL:
		if (r->credential == POLICY_NONE) /* none goes through a tunnel */
			look_at_tunnel(r, c);
		break;
	default: /* nothing was let out */
		break;
	}
}

static void look(struct reauthorization *r)
{
	for (struct list *l = r->proxy->clients.next; l != &r->proxy->clients; l = l->next)
		look_at_client(r, container_of(l, struct client, list));
	if (r->credential == POLICY_NONE)
		r->ended +=
		        udp_relay_reauthorize(r->proxy->datagrams, r->next, r->cause, r->detail);
}

/* --- step three: ending --- */

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

static void end_client(struct client *c, bool policy_is_new)
{
	struct client_http2_stream *s;

	if (c->state == CLIENT_EXCHANGE && c->exchange && exchange_is_marked(c->exchange))
		exchange_take_step(c->exchange, policy_is_new);
	while (c->state == CLIENT_HTTP2 && c->http2 && (s = marked_stream(c->http2))) {
		if (s->exchange->cut)
			s->code = NGHTTP2_CANCEL;
		exchange_take_step(s->exchange, policy_is_new);
	}
	if (c->state == CLIENT_DIAL && c->cut) {
		c->reset = true;
		client_close(c); /* the tunnel is recorded already */
	}
}

/* Closes upstream connections with no stream left, so that the part of their requests that the
 * kernel still holds does not leave. If other streams go on, what was written leaves with them. */
static void cut_orphaned(struct proxy *p)
{
	for (struct list *l = p->upstreams.next; l != &p->upstreams; l = l->next) {
		struct upstream_conn *c = container_of(l, struct upstream_conn, all);

		if (c->state != UPSTREAM_CONN_BUSY || !upstream_http2_is_orphaned(c))
			continue;
		c->cut = true;
		upstream_conn_close(c);
	}
}

static void end_marked(struct reauthorization *r)
{
	for (struct list *l = r->proxy->clients.next; l != &r->proxy->clients; l = l->next)
		end_client(container_of(l, struct client, list), r->next != NULL);
	cut_orphaned(r->proxy);
	udp_relay_end_reauthorized(r->proxy->datagrams);
}

size_t proxy_reauthorize(
        struct proxy *p, const struct policy *next, void (*change)(void *context), void *context)
{
	struct reauthorization r = {.proxy = p,
	        .next = next,
	        .credential = POLICY_NONE,
	        .cause = EVENT_CAUSE_POLICY_CHANGED,
	        .detail = changed};

	deny_throttle_answer_all(p); /* their refusal is already recorded */
	look(&r);
	change(context);
	p->policy_turn++; /* connections from before are not used again */
	while (pool_evict(p))
		;
	end_marked(&r);
	return r.ended;
}

void proxy_end_all(struct proxy *p, enum event_cause cause, const char *why)
{
	struct reauthorization r = {
	        .proxy = p, .credential = POLICY_NONE, .cause = cause, .detail = why};

	deny_throttle_answer_all(p);
	look(&r);
	while (pool_evict(p))
		;
	end_marked(&r);
}

size_t proxy_end_credential(struct proxy *p, uint32_t credential, const char *why)
{
	struct reauthorization r = {.proxy = p,
	        .credential = credential,
	        .cause = EVENT_CAUSE_CREDENTIAL,
	        .detail = why};

	look(&r);
	end_marked(&r);
	return r.ended;
}

/* --- retiring --- */

/* Ends a client that is between requests. A request that is on its way is read first, and served. A
 * session without any request so far is left alone, because GOAWAY would refuse requests that may
 * be on their way. */
static void retire_client(struct client *c)
{
	bool idle = false;

	if (c->state == CLIENT_HTTP)
		client_process_now(c);
	if (c->state == CLIENT_HTTP)
		idle = !c->exchange;
	else if (c->state == CLIENT_HTTP2 && client_http2_has_asked(c))
		idle = client_http2_drain(c);
	if (idle && c->answered)
		client_close(c);
}

void proxy_retire(struct proxy *p, void (*on_idle)(void *context), void *context)
{
	struct list *next;

	accept_stop(p, true);
	udp_relay_retire(p->datagrams);
	p->draining = true;
	p->retiring = true;
	deny_throttle_answer_all(p);
	p->on_idle = on_idle;
	p->on_idle_context = context;
	while (pool_evict(p))
		;
	for (struct list *l = p->clients.next; l != &p->clients; l = next) {
		next = l->next;
		retire_client(container_of(l, struct client, list));
	}
	proxy_maybe_idle(p);
}

size_t proxy_left(const struct proxy *p)
{
	return p->client_count + udp_relay_count(p->datagrams);
}

void proxy_count(const struct proxy *p, struct message_worker_stats *out)
{
	out->connections = p->accepted;
	out->connections_open = p->client_count;
	out->streams_open = p->stream_count;
	out->exchanges_open = p->exchanges;
	out->flows_open = udp_relay_count(p->datagrams);
	out->upstreams_open = p->upstream_count;
	out->upstreams_idle = p->idle_count;
	out->refusals_delayed = p->deny_throttle.delayed;
}
