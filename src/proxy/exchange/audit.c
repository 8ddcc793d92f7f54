/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the audit log: one event per request, per connection without requests, per flow, and
 * per finding. */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/authorize.h"
#include "proxy/exchange/facts.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define RECORD_SECOND_MS 1000

static const char *const state_names[] = {
        [AUDITING_OPEN] = "OPEN",
        [AUDITING_RECORDED] = "RECORDED",
        [AUDITING_ECHO] = "ECHO",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == AUDITING_STATE_COUNT, "a name per state");

static void enter(struct exchange *ex, enum auditing_state state)
{
	struct auditing *m = &ex->auditing;

	if (m->state != state)
		log_debug("event %016" PRIx64 ": event: %s -> %s", ex->id, state_names[m->state],
		        state_names[state]);
	m->state = state;
}

uint64_t proxy_event_id(struct proxy *proxy)
{
	return (uint64_t)proxy->config.event_nonce << 32 | (uint32_t)++proxy->next_event;
}

uint32_t audit_duration_us(int64_t us)
{
	return us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

/* A request that mode observe let pass and that then failed outside would have been refused
 * anyway. */
void audit_failure_as_observed(struct event *e, const struct policy_decision *decision)
{
	if (decision->observed && event_is_failure(e))
		e->decision = EVENT_OBSERVED;
}

/* Sets the endpoints and TLS facts of a client's connection. */
static void record_client(const struct client *c, struct event *e)
{
	e->src = c->src;
	e->src_port = c->src.family ? c->src_port : 0;
	e->dst = c->dst;
	e->dst_port = c->dst_port;
	e->protocol = IPPROTO_TCP;
	e->sni = slice_of(c->sni, c->sni_n);
	e->tls_version = c->tls_version;
}

static void record_decision(
        const struct proxy *proxy, const struct policy_decision *decision, struct event *e)
{
	struct policy_credential credential;

	e->policy_reason = (uint8_t)decision->reason;
	if (decision->rule != POLICY_NONE)
		e->rule = policy_rule_name(proxy->config.policy, decision->rule);
	/* The operator's own words for the refusal, which the client gets too. */
	if (decision->reason == POLICY_REASON_RULE && e->cause == EVENT_CAUSE_POLICY &&
	        !e->detail.n)
		e->detail = policy_rule_text(proxy->config.policy, decision->rule);
	if (decision->credential != POLICY_NONE) {
		policy_credential(proxy->config.policy, decision->credential, &credential);
		e->credential = credential.name;
	}
}

/* Names the credential whose placeholder was refused at a destination where it belongs, so that a
 * suggested rule can name it. */
static void record_shown(const struct exchange *ex, struct event *e)
{
	const struct verdict *j = &ex->verdict;
	struct policy_credential credential;

	if (e->credential.n || j->shown >= POLICY_CREDENTIALS_MAX || !(j->own >> j->shown & 1))
		return;
	policy_credential(ex->proxy->config.policy, j->shown, &credential);
	e->credential = credential.name;
}

static void put(const struct proxy *proxy, const struct event *e)
{
	proxy->config.record(proxy->config.context, e);
}

static void put_finding(struct proxy *proxy, const struct client *c, enum event_decision decision,
        enum event_finding finding, uint64_t about, struct slice rule, const char *detail,
        const struct ip *upstream)
{
	struct event e = {
	        .id = proxy_event_id(proxy),
	        .kind = EVENT_FINDING,
	        .time_ms = clock_real_ms(),
	        .decision = decision,
	        .finding = finding,
	        .about = about,
	        .rule = rule,
	        .host = destination_host(&c->destination),
	        .detail = slice_from_string(detail),
	};

	record_client(c, &e);
	e.upstream_port = c->destination.port;
	if (upstream)
		e.upstream = *upstream;
	put(proxy, &e);
}

/* Nothing is read from such a connection, so the finding has only the machine that made it. */
void audit_foreign_peer(struct proxy *proxy, const char *detail)
{
	const struct event e = {
	        .id = proxy_event_id(proxy),
	        .kind = EVENT_FINDING,
	        .time_ms = clock_real_ms(),
	        .decision = EVENT_DENIED,
	        .finding = EVENT_FINDING_FOREIGN_PEER,
	        .detail = slice_from_string(detail),
	};

	log_warn("%s", detail);
	put(proxy, &e);
}

/* The event, the finding and the worker's log hold the address. The sandbox is not told, because it
 * must not learn how names resolve outside. */
static void tell_refused_address(const struct client *c, const struct event *about)
{
	char text[IP_TEXT_MAX], host[2 * POLICY_HOST_MAX];

	if (about->cause != EVENT_CAUSE_ADDRESS)
		return;
	put_finding(c->proxy, c, EVENT_DENIED, EVENT_FINDING_PRIVATE_ADDRESS, about->id,
	        about->rule, about->detail.p, &about->upstream);
	if (about->upstream.family)
		log_info("%s: the address %s is refused (event %016llx)",
		        slice_escape(about->host, host, sizeof(host)),
		        ip_format(&about->upstream, text), (unsigned long long)about->id);
}

/* Path as authorized and query as sent; an absolute target's scheme and authority are left out. */
static struct slice exchange_target(struct exchange *ex)
{
	struct buf *text = &ex->proxy->target;
	const struct http_request *r = &ex->request;

	if (!r->path_n) /* CONNECT, or a head that could not be read */
		return SLICE("");
	buf_consume(text, text->len);
	if (buf_append(text, r->path, r->path_n) < 0 ||
	        (r->has_query &&
	                (buf_append(text, "?", 1) < 0 || buf_append_slice(text, r->query) < 0)))
		return SLICE("");
	return buf_slice(text);
}

/* Records an echo once. In trailers it may be found after the event was put. */
static void record_echo(struct exchange *ex, struct slice rule)
{
	if (!redacting_is_on(&ex->redacting) || !ex->redacting.mask.found ||
	        ex->auditing.state == AUDITING_ECHO)
		return;
	enter(ex, AUDITING_ECHO);
	audit_remark(ex, EVENT_FINDING_CREDENTIAL_ECHO, rule,
	        ex->redacting.uncovered
	                ? "the upstream sent the credential back in compressed content that "
	                  "could not be changed; the response was ended before it"
	                : "the upstream sent the credential back; it was covered before it "
	                  "reached the sandbox");
}

static void put_exchange(struct exchange *ex)
{
	const struct http_field *agent = http_find(&ex->request.fields, HTTP_USER_AGENT);
	uint8_t facts[REQUEST_FACTS_BYTES_MAX];
	struct event e = {
	        .id = ex->id,
	        .kind = EVENT_HTTP,
	        .time_ms = ex->start_ms,
	        .duration_us = audit_duration_us(clock_monotonic_us() - ex->start_us),
	        .decision = ex->state == EXCHANGE_REFUSED || ex->outcome == EVENT_DENIED
	                            ? EVENT_DENIED
	                    : ex->verdict.decision.observed ? EVENT_OBSERVED
	                                                    : EVENT_ALLOWED,
	        .cause = ex->cause,
	        .host = destination_host(&ex->destination),
	        .bytes_out = ex->bytes_out,
	        .bytes_in = ex->bytes_in,
	        .scheme = ex->scheme,
	        .method = ex->request.fields.count || ex->request.version ? ex->request.method
	                                                                  : SLICE(""),
	        .status = ex->status,
	        .http_version = ex->client_version,
	        .callback = message_form_is_asked(ex->client->form),
	        .detail = slice_from_string(ex->detail),
	};

	char literal[IP_TEXT_MAX + 2];

	if (!e.host.n && ex->destination.address.family) { /* the URL's host is an address */
		struct destination d = {.address = ex->destination.address};
		char text[POLICY_HOST_MAX + 16];

		snprintf(literal, sizeof(literal), "%.*s", (int)sizeof(literal) - 1,
		        destination_text(&d, text));
		e.host = slice_from_string(literal);
	}
	if (ex->verdict.allowed)
		audit_failure_as_observed(&e, &ex->verdict.decision);
	record_client(ex->client, &e);
	record_decision(ex->proxy, &ex->verdict.decision, &e);
	record_shown(ex, &e);
	if (ex->upstream)
		ex->upstream_address = ex->upstream->conn->address;
	e.upstream = ex->upstream_address;
	e.upstream_port = ex->destination.port;
	if (ex->request.version) {
		e.target = exchange_target(ex);
		e.user_agent = agent ? agent->value : SLICE("");
		e.facts = facts_of(ex, facts);
	}
	put(ex->proxy, &e);
	record_echo(ex, e.rule);
	tell_refused_address(ex->client, &e);
}

void audit_exchange(struct exchange *ex)
{
	if (ex->auditing.state == AUDITING_OPEN) {
		enter(ex, AUDITING_RECORDED);
		put_exchange(ex);
	} else {
		record_echo(ex, SLICE(""));
	}
}

void audit_connection(const struct client *c, const struct policy_decision *decision,
        enum event_decision outcome, enum event_cause cause, const char *detail, uint64_t bytes_out,
        uint64_t bytes_in, const struct ip *upstream)
{
	struct event e = {
	        .id = proxy_event_id(c->proxy),
	        .kind = EVENT_CONNECTION,
	        .time_ms = c->start_ms,
	        .duration_us = audit_duration_us((clock_real_ms() - c->start_ms) * 1000),
	        .decision = outcome,
	        .cause = cause,
	        .host = c->sni_n ? slice_of(c->sni, c->sni_n) : destination_host(&c->destination),
	        .bytes_out = bytes_out,
	        .bytes_in = bytes_in,
	        .passthrough = c->passthrough,
	        .detail = slice_from_string(detail),
	};

	record_client(c, &e);
	record_decision(c->proxy, decision, &e);
	e.upstream_port = c->destination.port;
	if (upstream)
		e.upstream = *upstream;
	else if (c->explicit_proxy) /* dst is the proxy's, not the destination's */
		e.upstream = c->destination.address;
	put(c->proxy, &e);
	tell_refused_address(c, &e);
}

/* --- connections that ended without a byte --- */

static void tell_silent(struct proxy *p)
{
	struct audit_silent *s = &p->silent;
	char detail[128];
	struct event e = {
	        .id = proxy_event_id(p),
	        .kind = EVENT_CONNECTION,
	        .time_ms = clock_real_ms(),
	        .decision = EVENT_DENIED,
	        .cause = EVENT_CAUSE_LIMIT,
	        .src = s->src,
	        .src_port = s->src_port,
	        .dst = s->dst,
	        .dst_port = s->dst_port,
	        .protocol = IPPROTO_TCP,
	};

	if (s->count == 0)
		return;
	snprintf(detail, sizeof(detail),
	        "%llu more connections within a second were closed by the sandbox before it sent a "
	        "request",
	        (unsigned long long)s->count);
	e.detail = slice_from_string(detail);
	s->count = 0;
	put(p, &e);
}

static void on_silent_second(struct loop_timer *timer)
{
	struct audit_silent *s = container_of(timer, struct audit_silent, second);

	s->counting = false;
	tell_silent(container_of(s, struct proxy, silent));
}

int audit_silent_open(struct proxy *p)
{
	return loop_timer_open(p->config.loop, &p->silent.second, on_silent_second);
}

void audit_silent_close(struct proxy *p)
{
	tell_silent(p);
	loop_timer_close(&p->silent.second);
}

void audit_silent(
        const struct client *c, const struct policy_decision *decision, enum event_decision outcome)
{
	struct audit_silent *s = &c->proxy->silent;

	if (!s->counting) {
		s->counting = true;
		s->told = 0;
		loop_timer_set(&s->second, RECORD_SECOND_MS);
	}
	if (s->told < AUDIT_SILENT_PER_S) {
		s->told++;
		audit_connection(c, decision, outcome, EVENT_CAUSE_CLIENT,
		        "the sandbox closed the connection before it sent a request", 0, 0, NULL);
		return;
	}
	s->count++;
	s->src = c->src;
	s->src_port = c->src.family ? c->src_port : 0;
	s->dst = c->dst;
	s->dst_port = c->dst_port;
}

void audit_finding(struct proxy *proxy, const struct client *c, enum event_finding finding,
        uint64_t about, struct slice rule, const char *detail)
{
	put_finding(proxy, c, EVENT_DENIED, finding, about, rule, detail, NULL);
}

void audit_remark(
        struct exchange *ex, enum event_finding finding, struct slice rule, const char *detail)
{
	put_finding(ex->proxy, ex->client, ex->verdict.allowed ? EVENT_OBSERVED : EVENT_DENIED,
	        finding, ex->id, rule, detail, NULL);
}
