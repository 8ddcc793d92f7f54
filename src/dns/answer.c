/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one answer and one event for each query; only this file does. The order: rate, shape, kind
 * of name, the policy's decision about the name, synthetic address. The policy decides what the
 * event says. A denied name gets an address too, because the explanation comes over that
 * connection, unless a search list has made it from an allowed name (allowed.c): then the resolver
 * has to try its next name. No other server is ever asked.
 */
#include <errno.h>
#include <stdio.h>
#include <netinet/in.h>

#include "vethguard/base/clock.h"
#include "vethguard/policy/config.h"
#include "vethguard/policy/url.h"
#include "dns/private.h"

#define CLASS_IN 1
#define RATE_WINDOW_MS 1000

/* The answer before it is encoded. */
struct verdict {
	enum dns_rcode rcode;
	struct ip address;          /* family 0: none */
	struct slice search_domain; /* of a name that a search list has made; else empty */
};

static void event_begin(struct event *e, const struct responder_peer *peer)
{
	*e = (struct event){
	        .kind = EVENT_DNS,
	        .time_ms = clock_real_ms(),
	        .decision = EVENT_DENIED,
	        .cause = EVENT_CAUSE_POLICY,
	        .policy_reason = POLICY_REASON_DEFAULT,
	        .rule = SLICE(""),
	        .credential = SLICE(""),
	        .detail = SLICE(""),
	        .src = peer->client,
	        .src_port = peer->client_port,
	        .dst = peer->asked,
	        .dst_port = peer->asked_port,
	        .protocol = peer->tcp ? IPPROTO_TCP : IPPROTO_UDP,
	        .host = SLICE(""),
	};
}

static void event_send(struct responder *r, struct event *e, struct slice search_domain)
{
	if (r->config.on_query)
		r->config.on_query(r->config.context, e, search_domain);
}

/* --- rate --- */

/* Records all refusals since the last record, as one. */
static void report_refused(struct responder *r)
{
	char detail[96];
	struct event e;
	int n;

	if (r->refused == 0)
		return;
	n = snprintf(detail, sizeof(detail), "%llu queries beyond %u in a second were refused.",
	        (unsigned long long)r->refused, r->config.queries_per_s);
	event_begin(&e, &r->refused_peer);
	e.cause = EVENT_CAUSE_LIMIT;
	e.detail = slice_of(detail, (size_t)n);
	e.dns_rcode = DNS_REFUSED;
	r->refused_before += r->refused;
	r->refused = 0;
	event_send(r, &e, SLICE(""));
}

uint64_t responder_refused(const struct responder *r)
{
	return r->refused_before + r->refused;
}

void responder_on_refused_time(struct loop_timer *timer)
{
	report_refused(container_of(timer, struct responder, refused_timer));
}

static bool within_rate(struct responder *r, int64_t now_ms, const struct responder_peer *peer)
{
	if (now_ms - r->second_ms >= RATE_WINDOW_MS || r->second_ms == 0) {
		report_refused(r);
		r->second_ms = now_ms;
		r->queries = 0;
	}
	if (r->queries < r->config.queries_per_s) {
		r->queries++;
		return true;
	}
	if (r->refused++ == 0) {
		r->refused_peer = *peer;
		if (r->refused_timer_open)
			loop_timer_set(&r->refused_timer, RATE_WINDOW_MS);
	}
	return false;
}

/* False if a client asks so often that even a refusal is not worth it; its TCP connection then
 * ends. */
static bool may_refuse(const struct responder *r)
{
	return r->refused <= (uint64_t)r->config.queries_per_s * (CONFIG_QUERIES_DROPPED - 1);
}

bool responder_is_flooded(const struct responder *r)
{
	return r->refused > (uint64_t)r->config.queries_per_s * (RESPONDER_READ_MOST - 1);
}

/* --- policy --- */

static void decide_name(const struct policy *policy, struct slice host, struct event *e)
{
	struct policy_decision decision;

	if (allowed_name(policy, host, &decision))
		e->decision = EVENT_ALLOWED;
	else if (decision.observed)
		e->decision = EVENT_OBSERVED;
	e->policy_reason = decision.reason;
	if (decision.rule != POLICY_NONE)
		e->rule = policy_rule_name(policy, decision.rule);
}

/* --- names --- */

static bool is_or_ends_with(struct slice host, struct slice domain)
{
	return slice_equals(host, domain) ||
	       (host.n > domain.n && host.p[host.n - domain.n - 1] == '.' &&
	               slice_ends_with(host, domain));
}

/* Names that exist nowhere or only inside the sandbox (RFC 6761, RFC 7686), and single labels that
 * no rule mentions. */
static bool never_exists(const struct policy *policy, struct slice host)
{
	if (is_or_ends_with(host, SLICE("localhost")) || is_or_ends_with(host, SLICE("onion")) ||
	        is_or_ends_with(host, SLICE("invalid")))
		return true;
	return slice_find_byte(host, '.') < 0 && !policy_mentions_host(policy, host);
}

static void answer_reverse(
        const struct responder *r, const struct ip *address, struct verdict *v, struct event *e)
{
	v->rcode = DNS_NXDOMAIN;
	e->detail = SLICE("Reverse names are not answered.");
	if (names_is_synthetic(r->config.names, address))
		e->decision = EVENT_ALLOWED; /* an address that vethguard itself has made */
}

static void answer_host(struct responder *r, const struct dns_query *q, struct slice host,
        int64_t now_ms, struct verdict *v, struct event *e)
{
	const struct policy *policy = *r->config.policy;
	struct ip v4, v6;

	e->host = host;
	if (never_exists(policy, host)) {
		v->rcode = DNS_NXDOMAIN;
		return;
	}
	decide_name(policy, host, e);
	if (e->decision != EVENT_ALLOWED)
		v->search_domain = allowed_search_domain(policy, host);
	if (v->search_domain.n) {
		v->rcode = DNS_NXDOMAIN;
		e->decision = EVENT_DENIED;
		e->cause = EVENT_CAUSE_SEARCH_LIST;
		return;
	}
	if (q->type != DNS_A && q->type != DNS_AAAA)
		return;
	if (names_assign(r->config.names, host, now_ms, &v4, &v6) < 0) {
		v->rcode = DNS_SERVFAIL;
		e->decision = EVENT_DENIED;
		e->cause = EVENT_CAUSE_LIMIT;
		e->detail = SLICE("Every synthetic address is in use.");
		return;
	}
	v->address = q->type == DNS_A ? v4 : v6;
}

static void answer_query(struct responder *r, const struct dns_query *q,
        char host[POLICY_HOST_MAX + 1], int64_t now_ms, struct verdict *v, struct event *e)
{
	struct slice name = slice_of(q->name, q->name_n);
	struct ip address;
	size_t n;

	e->host = name;
	if (q->edns && q->edns_version != 0) {
		v->rcode = DNS_BADVERS;
		e->cause = EVENT_CAUSE_CLIENT;
	} else if (q->class != CLASS_IN) {
		v->rcode = DNS_REFUSED;
		e->detail = SLICE("Only class IN is answered.");
	} else if (q->name_n == 0) {
		v->rcode = DNS_NOERROR; /* the root exists and has no records */
	} else if (dns_reverse_name(name, &address)) {
		answer_reverse(r, &address, v, e);
	} else if (!q->name_is_host || !url_canonical_host(name, host, &n)) {
		v->rcode = DNS_NXDOMAIN;
		e->detail = SLICE("The name is not a host name.");
	} else {
		answer_host(r, q, slice_of(host, n), now_ms, v, e);
	}
}

/* --- one query --- */

static enum dns_rcode rcode_of_error(int err)
{
	return err == -ENOTSUP ? DNS_NOTIMP : DNS_FORMERR;
}

size_t responder_answer(struct responder *r, const uint8_t *query, size_t n,
        const struct responder_peer *peer, uint8_t *out, size_t cap)
{
	int64_t start_us = clock_monotonic_us();
	bool in_rate = within_rate(r, start_us / 1000, peer);
	char host[POLICY_HOST_MAX + 1];
	struct verdict v = {.rcode = DNS_NOERROR, .search_domain = SLICE("")};
	struct dns_query q;
	struct event e;
	size_t size = 0;
	int rc = dns_query_parse(query, n, &q);

	if (!in_rate)
		return rc || !may_refuse(r)
		               ? 0
		               : dns_answer_build(&q, DNS_REFUSED, NULL, RESPONDER_TTL_S, out, cap);
	event_begin(&e, peer);
	if (rc) {
		v.rcode = rcode_of_error(rc);
		e.cause = EVENT_CAUSE_CLIENT;
		e.detail = SLICE("Not a well-formed query.");
	} else {
		answer_query(r, &q, host, start_us / 1000, &v, &e);
	}
	if (rc != -EBADMSG)
		size = dns_answer_build(&q, v.rcode, &v.address, RESPONDER_TTL_S, out, cap);
	e.dns_id = q.id;
	e.dns_type = q.type;
	e.dns_class = q.class;
	e.dns_rcode = (uint8_t)v.rcode;
	e.answer = v.address;
	e.bytes_out = n;
	e.bytes_in = size;
	e.duration_us = (uint32_t)(clock_monotonic_us() - start_us);
	event_send(r, &e, v.search_domain);
	return size;
}
