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

#include "proxy/client/client.h"
#include "proxy/inbound/inbound.h"
#include "proxy/tunnel/udp_relay.h"
#include "proxy/upstream/upstream.h"

/* One pass: the reason, and the new policy (NULL: end everything, whatever the policy). */
struct reauthorization {
	struct proxy *proxy;
	const struct policy *next;
	uint32_t credential; /* only exchanges with this credential; POLICY_NONE: everything */
	enum event_cause cause;
	const char *detail;
	size_t ended;
};

static const char changed[] = "the policy was changed and does not allow this any more";

/* --- step one: looking --- */

static void look(struct reauthorization *r)
{
	for (struct list *l = r->proxy->clients.next; l != &r->proxy->clients; l = l->next)
		r->ended += client_reauthorize(container_of(l, struct client, list), r->next,
		        r->credential, r->cause, r->detail);
	if (r->credential != POLICY_NONE) /* UDP flows and visits have no credential */
		return;
	r->ended += udp_relay_reauthorize(r->proxy->datagrams, r->next, r->cause, r->detail);
	if (r->proxy->inbound)
		r->ended += inbound_reauthorize(r->proxy->inbound, r->next, r->cause, r->detail);
}

/* --- step three: ending --- */

static void end_marked(struct reauthorization *r)
{
	for (struct list *l = r->proxy->clients.next; l != &r->proxy->clients; l = l->next)
		client_end_marked(container_of(l, struct client, list), r->next != NULL);
	upstream_conns_cut_orphaned(r->proxy);
	udp_relay_end_reauthorized(r->proxy->datagrams);
	if (r->proxy->inbound)
		inbound_end_marked(r->proxy->inbound);
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
	limits_renew(p);
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

void proxy_retire(struct proxy *p, void (*on_idle)(void *context), void *context)
{
	struct list *next;

	accept_stop(p, true);
	udp_relay_retire(p->datagrams);
	if (p->inbound)
		inbound_retire(p->inbound);
	proxy_set_state(p, PROXY_RETIRING);
	deny_throttle_answer_all(p);
	p->on_idle = on_idle;
	p->on_idle_context = context;
	while (pool_evict(p))
		;
	for (struct list *l = p->clients.next; l != &p->clients; l = next) {
		next = l->next;
		client_retire(container_of(l, struct client, list));
	}
	proxy_maybe_idle(p);
}

size_t proxy_left(const struct proxy *p)
{
	return p->client_count + udp_relay_count(p->datagrams) +
	       (p->inbound ? p->inbound->count : 0);
}

void proxy_count(const struct proxy *p, struct message_worker_stats *out)
{
	out->connections = p->accepted;
	out->connections_open = p->client_count;
	out->streams_open = p->stream_count;
	out->exchanges_open = p->exchanges;
	out->flows_open = udp_relay_count(p->datagrams);
	out->visits_open = p->inbound ? p->inbound->count : 0;
	out->upstreams_open = p->upstream_count;
	out->upstreams_idle = p->idle_count;
	out->refusals_delayed = p->deny_throttle.delayed;
	out->limits_met = p->limits.refused;
}
