/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flow of the UDP relay: one pair of sandbox address and port, and destination. A flow is
 * authorized once, dialed under its real name, and has its own connected socket, so that only the
 * destination's answers come back. Answers leave from the address to which the sandbox sent. While
 * the name is being resolved, a few datagrams per flow are kept, within a bound for all flows;
 * further ones are lost, as UDP allows.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/tunnel/private.h"
#include "proxy/tunnel/udp_socket.h"
#include "proxy/dial/egress.h"
#include "proxy/exchange/authorize.h"
#include "proxy/dial/dial.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define FLOW_KEPT 4                        /* datagrams kept while resolving */
#define FLOW_KEPT_BYTES (2 + DATAGRAM_MAX) /* per flow: at least the largest datagram */
#define RELAY_KEPT_BYTES (1u << 20)        /* of all flows */

static const char *const state_names[] = {
        [UDP_FLOW_RESOLVING] = "RESOLVING",
        [UDP_FLOW_OPEN] = "OPEN",
        [UDP_FLOW_REFUSED] = "REFUSED",
        [UDP_FLOW_CUT] = "CUT",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == UDP_FLOW_STATE_COUNT, "a name per state");

static void enter(struct udp_flow *f, enum udp_flow_state state)
{
	log_debug("flow :%u to port %u: %s -> %s", f->key.src_port, f->key.dst_port,
	        state_names[f->state], state_names[state]);
	f->state = state;
}

void udp_flow_record(const struct udp_flow *f)
{
	const struct proxy *proxy = f->relay->proxy;
	struct event e = {
	        .id = proxy_event_id(f->relay->proxy),
	        .kind = EVENT_FLOW,
	        .time_ms = f->start_ms,
	        .duration_us = audit_duration_us((clock_real_ms() - f->start_ms) * 1000),
	        .decision = f->state == UDP_FLOW_REFUSED   ? EVENT_DENIED
	                    : f->verdict.decision.observed ? EVENT_OBSERVED
	                                                   : EVENT_ALLOWED,
	        .cause = f->cause,
	        .policy_reason = (uint8_t)f->verdict.decision.reason,
	        .detail = slice_from_string(f->detail),
	        .src = f->key.src,
	        .src_port = f->key.src_port,
	        .dst = f->key.dst,
	        .dst_port = f->key.dst_port,
	        .upstream = f->address,
	        .upstream_port = f->address.family ? f->key.dst_port : 0,
	        .host = destination_host(&f->destination),
	        .protocol = IPPROTO_UDP,
	        .bytes_out = f->bytes_out,
	        .bytes_in = f->bytes_in,
	};

	audit_failure_as_observed(&e, &f->verdict.decision);
	if (f->verdict.decision.rule != POLICY_NONE)
		e.rule = policy_rule_name(proxy->config.policy, f->verdict.decision.rule);
	proxy->config.record(proxy->config.context, &e);
}

/* Keeps one datagram as a whole to be sent later, or loses it. */
static void keep(struct udp_flow *f, const uint8_t *p, size_t n)
{
	uint8_t length[2] = {(uint8_t)(n >> 8), (uint8_t)n};

	if (f->kept_count == FLOW_KEPT || n + 2 > RELAY_KEPT_BYTES - f->relay->kept_bytes ||
	        !buf_reserve(&f->kept, n + 2))
		return;
	buf_append(&f->kept, length, 2);
	buf_append(&f->kept, p, n);
	f->kept_count++;
	f->relay->kept_bytes += n + 2;
}

static void drop_kept(struct udp_flow *f)
{
	f->relay->kept_bytes -= f->kept.len;
	buf_fini(&f->kept);
}

void udp_flow_free(struct udp_flow *f)
{
	if (f->hh.tbl)
		HASH_DEL(f->relay->flows, f);
	resolver_wait_cancel(&f->waiting);
	loop_deadline_clear(&f->deadline);
	loop_io_close(&f->io);
	if (f->fd >= 0)
		close(f->fd);
	if (f->holds_name)
		names_release(f->relay->proxy->config.names, &f->key.dst);
	drop_kept(f);
	limit_leave(f->relay->proxy, &f->held);
	free(f);
}

static void flow_end(struct udp_flow *f)
{
	struct proxy *proxy = f->relay->proxy;

	udp_flow_free(f);
	proxy_maybe_idle(proxy);
}

void udp_flow_on_deadline(struct loop_deadline *deadline)
{
	struct udp_flow *f = container_of(deadline, struct udp_flow, deadline);

	if (!udp_flow_is_over(f))
		udp_flow_record(f);
	flow_end(f);
}

static void touch(struct udp_flow *f)
{
	loop_deadline_set(&f->relay->proxy->waits[WAIT_DATAGRAM], &f->deadline);
}

static void refuse(struct udp_flow *f, enum event_cause cause, const char *detail)
{
	enter(f, UDP_FLOW_REFUSED);
	f->cause = cause;
	f->detail = detail;
	drop_kept(f);
	udp_flow_record(f);
}

void udp_flow_cut(struct udp_flow *f, enum event_cause cause, const char *detail)
{
	enter(f, UDP_FLOW_CUT);
	f->cause = cause;
	f->detail = detail;
	udp_flow_record(f);
}

/* --- limits --- */

static const char limit_met[] = "a limit of the policy was met, and datagrams were lost";

/* Counts a datagram. False: it is lost, which the flow's event tells. */
static bool may_pass(struct udp_flow *f, enum policy_limit_kind kind, size_t n)
{
	if (limit_add(f->relay->proxy, f->verdict.decision.rule, kind, n, NULL))
		return true;
	f->cause = EVENT_CAUSE_POLICY_LIMIT;
	f->detail = limit_met;
	return false;
}

/* --- answers --- */

static void answer(struct udp_flow *f, const uint8_t *p, size_t n)
{
	const struct udp_flow_key *key = &f->key;

	if (!may_pass(f, POLICY_LIMIT_DOWNLOAD, n))
		return;
	if (f->socket->association
	                ? udp_association_send(f->socket->association, key, p, n)
	                : udp_socket_send(f->socket->fd, &key->dst, &key->src, key->src_port, p, n))
		f->bytes_in += n;
}

static void on_upstream(struct loop_io *io, unsigned events)
{
	struct udp_flow *f = container_of(io, struct udp_flow, io);
	uint8_t *p = f->relay->datagram;

	(void)events;
	for (unsigned i = 0; i < DATAGRAM_BATCH; i++) {
		ssize_t n = recv(f->fd, p, DATAGRAM_MAX, MSG_DONTWAIT);

		if (n < 0)
			return; /* no more, or an ICMP error, of which UDP clients learn by
			           silence */
		answer(f, p, (size_t)n);
		touch(f);
	}
}

/* --- the way out --- */

/* Sends one datagram. If the first send() reports an ICMP error about an earlier datagram, it has
 * sent nothing: tries again. */
static void send_one(struct udp_flow *f, const uint8_t *p, size_t n)
{
	ssize_t r;

	if (!may_pass(f, POLICY_LIMIT_UPLOAD, n))
		return;
	r = send(f->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r < 0 && (errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == ENETUNREACH))
		r = send(f->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (r >= 0)
		f->bytes_out += n;
}

static void send_kept(struct udp_flow *f)
{
	const uint8_t *p = buf_bytes(&f->kept);

	for (unsigned i = 0; i < f->kept_count; i++) {
		size_t n = (size_t)p[0] << 8 | p[1];

		send_one(f, p + 2, n);
		p += 2 + n;
	}
	drop_kept(f);
}

/* False: failed; *why is set if there is more to say than that there is no route. */
static bool connect_flow(struct udp_flow *f, const struct ip *address, const char **why)
{
	struct sockaddr_storage to;
	socklen_t n = ip_to_sockaddr(address, f->key.dst_port, &to);
	const struct config_egress *egress = f->relay->proxy->config.egress;

	f->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f->fd < 0)
		return false;
	*why = egress ? egress_bind(egress, f->fd, address->family) : NULL;
	if (!*why && connect(f->fd, (struct sockaddr *)&to, n) == 0 &&
	        loop_io_open_level(
	                f->relay->proxy->config.loop, &f->io, f->fd, LOOP_READ, on_upstream) == 0) {
		f->address = *address;
		enter(f, UDP_FLOW_OPEN);
		return true;
	}
	close(f->fd);
	f->fd = -1;
	return false;
}

static void resolved(
        struct udp_flow *f, const struct ip *addresses, size_t count, const char *error)
{
	struct proxy *proxy = f->relay->proxy;
	const struct policy_decision *decision = &f->verdict.decision;
	const char *why = NULL;
	bool special = false;

	for (size_t i = 0; i < count; i++) {
		if (!authorize_address(proxy, decision, &addresses[i]) ||
		        !dial_may_connect(proxy, decision, &addresses[i])) {
			f->address = special ? f->address : addresses[i];
			special = true;
		} else if (connect_flow(f, &addresses[i], &why)) {
			send_kept(f);
			return;
		}
	}
	if (!count)
		refuse(f, EVENT_CAUSE_RESOLVE, error);
	else if (special)
		refuse(f, EVENT_CAUSE_ADDRESS,
		        "the destination's address is private or otherwise special");
	else
		refuse(f, EVENT_CAUSE_CONNECT, why ? why : "there is no route to the destination");
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *a)
{
	resolved(container_of(wait, struct udp_flow, waiting), a->addresses, a->count, a->error);
}

static void flow_begin(struct udp_flow *f)
{
	struct proxy *proxy = f->relay->proxy;
	const struct resolver_answer *a;

	authorize_opaque(proxy->config.policy, &f->destination, POLICY_UDP, &f->verdict);
	if (!f->verdict.allowed) {
		refuse(f, EVENT_CAUSE_POLICY, NULL);
		return;
	}
	if (udp_flow_name_leaks(f)) {
		f->verdict.decision.reason = POLICY_REASON_LEAK;
		refuse(f, EVENT_CAUSE_POLICY, UDP_FLOW_NAME_TEXT);
		return;
	}
	if (proxy->paused || proxy->state != PROXY_SERVING) {
		refuse(f, proxy->paused ? proxy->pause_cause : EVENT_CAUSE_CLOSING,
		        proxy->pause_text);
		return;
	}
	if (!limit_begin_relay(proxy, f->verdict.decision.rule, &f->held, NULL)) {
		refuse(f, EVENT_CAUSE_POLICY_LIMIT, limit_met);
		return;
	}
	if (proxy->config.egress && proxy->config.egress->proxy_port) {
		refuse(f, EVENT_CAUSE_CONNECT, "the egress proxy carries no datagrams");
		return;
	}
	if (!f->destination.host_n) {
		resolved(f, &f->destination.address, 1, NULL);
		return;
	}
	f->waiting.on_answer = on_answer;
	a = resolver_get(proxy->config.resolver, destination_host(&f->destination), &f->waiting);
	if (a)
		resolved(f, a->addresses, a->count, a->error);
}

static struct udp_flow *flow_new(struct udp_socket *s, const struct udp_flow_key *key)
{
	struct udp_relay *relay = s->relay;
	struct proxy *proxy = relay->proxy;
	struct slice host;
	struct udp_flow *f;

	if (HASH_COUNT(relay->flows) >= proxy->config.limits.udp_flows || proxy->held)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->relay = relay;
	f->socket = s;
	f->key = *key;
	f->fd = -1;
	f->start_ms = clock_real_ms();
	f->destination.port = key->dst_port;
	buf_init(&f->kept, FLOW_KEPT_BYTES);
	if (key->host_n) {
		destination_set_host(&f->destination, slice_of(key->host, key->host_n));
	} else if (names_lookup(proxy->config.names, &key->dst, &host)) {
		destination_set_host(&f->destination, host);
		names_hold(proxy->config.names, &key->dst);
		f->holds_name = true;
	} else {
		f->destination.address = key->dst;
	}
	HASH_ADD_KEYPTR(hh, relay->flows, &f->key, udp_flow_key_bytes(key), f);
	if (!f->hh.tbl) {
		udp_flow_free(f);
		return NULL;
	}
	touch(f);
	return f;
}

struct udp_flow *udp_flow_open(struct udp_socket *s, const struct udp_flow_key *key)
{
	struct udp_flow *f = flow_new(s, key);

	if (f)
		flow_begin(f);
	return f;
}

void udp_flow_forward(struct udp_flow *f, const uint8_t *p, size_t n)
{
	touch(f);
	if (f->state == UDP_FLOW_OPEN)
		send_one(f, p, n);
	else
		keep(f, p, n);
}

/* --- authorizing again --- */

bool udp_flow_passes(struct udp_flow *f, const struct policy *next)
{
	struct verdict j;

	authorize_opaque(next, &f->destination, POLICY_UDP, &j);
	if (!j.allowed || j.decision.names_address < f->verdict.decision.names_address ||
	        j.decision.names_exactly < f->verdict.decision.names_exactly)
		return false;
	f->verdict = j;
	return true;
}
