/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging. A request is for one destination; everything that names it (the TLS server name, the
 * Host field or absolute target, CONNECT's authority, the name behind the synthetic address that
 * was dialled) has to name the same one, or the request is refused whatever the policy says: that
 * is what binds a credential to its destination.
 */
#include <stdio.h>

#include "proxy/client.h"

const char *destination_text(const struct destination *d, char *out)
{
	char ip[IP_TEXT_MAX];
	int n;

	if (d->host_n)
		n = snprintf(out, POLICY_HOST_MAX + 16, "%s", d->host);
	else if (d->address.family == 6)
		n = snprintf(out, POLICY_HOST_MAX + 16, "[%s]", ip_format(&d->address, ip));
	else
		n = snprintf(out, POLICY_HOST_MAX + 16, "%s",
		        d->address.family ? ip_format(&d->address, ip) : "?");
	if (d->port)
		snprintf(out + n, (size_t)(POLICY_HOST_MAX + 16 - n), ":%u", d->port);
	return out;
}

bool destination_set_host(struct destination *d, struct slice host)
{
	if (host.n > POLICY_HOST_MAX)
		return false;
	memcpy(d->host, host.p, host.n);
	d->host[host.n] = '\0';
	d->host_n = host.n;
	d->address = (struct ip){0};
	return true;
}

bool destination_equals(const struct destination *a, const struct destination *b)
{
	return a->port == b->port && slice_equals(destination_host(a), destination_host(b)) &&
	       ip_equals(&a->address, &b->address);
}

static void refuse(
        struct judgement *j, enum event_cause cause, enum event_finding finding, const char *detail)
{
	j->allowed = false;
	j->cause = cause;
	j->finding = finding;
	j->detail = detail;
}

/* What the connection itself says about the destination: SNI, else CONNECT or the name dialled,
 * else the address. */
static void connection_destination(const struct client *c, struct destination *d)
{
	*d = c->destination;
	if (c->sni_n)
		destination_set_host(d, slice_of(c->sni, c->sni_n));
}

/* The request's authority against the connection's destination. */
static bool agree(const struct client *c, const struct http_request *r, struct destination *d,
        struct judgement *j)
{
	struct destination connection;
	const struct url_authority *a = &r->authority;

	connection_destination(c, &connection);
	if (c->sni_n && c->destination.host_n &&
	        !slice_equals(slice_of(c->sni, c->sni_n), destination_host(&c->destination))) {
		refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "the TLS server name is not the name that was connected to");
		return false;
	}
	if (!r->has_authority) { /* HTTP/1.0 without Host */
		*d = connection;
		return true;
	}
	d->port = a->port ? a->port : connection.port;
	if (a->host_n)
		destination_set_host(d, slice_of(a->host, a->host_n));
	else
		d->address = a->address;
	if (d->port != connection.port) {
		refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "the request names another port than the connection");
		return false;
	}
	/* A plain connection to a bare address may carry any Host: the name is resolved and dialled
	 * on this side. */
	if (!c->tls && !connection.host_n && a->host_n)
		return true;
	if (!slice_equals(destination_host(d), destination_host(&connection)) ||
	        !ip_equals(&d->address, &connection.address)) {
		refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        c->tls ? "the request names another host than the TLS server name"
		               : "the request names another host than the connection");
		return false;
	}
	return true;
}

/* On the proxy port, before any CONNECT: the request says all there is. */
static bool from_absolute(const struct http_request *r, struct destination *d, struct judgement *j)
{
	if (!r->absolute) {
		refuse(j, EVENT_CAUSE_CLIENT, EVENT_FINDING_NONE,
		        "this is a proxy: send an absolute http:// target or CONNECT");
		return false;
	}
	if (r->scheme != POLICY_HTTP) {
		refuse(j, EVENT_CAUSE_CLIENT, EVENT_FINDING_NONE,
		        "https through a proxy needs CONNECT");
		return false;
	}
	d->port = r->authority.port ? r->authority.port : 80;
	if (r->authority.host_n)
		return destination_set_host(d, slice_of(r->authority.host, r->authority.host_n));
	d->address = r->authority.address;
	return true;
}

void judge_request(struct proxy *proxy, const struct client *c, const struct http_request *r,
        struct destination *d, struct judgement *j)
{
	struct policy_request question = {.method = r->method};

	memset(j, 0, sizeof *j);
	memset(d, 0, sizeof *d);
	j->decision = (struct policy_decision){.rule = POLICY_NONE,
	        .credential = POLICY_NONE,
	        .reason = POLICY_REASON_BAD_REQUEST};
	if (c->explicit_proxy && !c->connected ? !from_absolute(r, d, j) : !agree(c, r, d, j))
		return;
	if (r->absolute && r->scheme != (c->tls ? POLICY_HTTPS : POLICY_HTTP)) {
		refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "the target's scheme is not that of the connection");
		return;
	}
	question.scheme = c->tls ? POLICY_HTTPS : POLICY_HTTP;
	question.host = destination_host(d);
	question.address = d->address;
	question.port = d->port;
	question.path = r->asterisk ? SLICE("/") : slice_of(r->path, r->path_n);
	policy_decide(proxy->config.policy, &question, &j->decision);
	j->allowed = j->decision.verdict == POLICY_ALLOW;
	if (j->allowed && j->decision.passthrough)
		refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "the rule passes TLS through unopened, but this connection was opened");
	if (j->allowed && j->decision.credential != POLICY_NONE && !c->tls)
		refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "credentials never go over plain http");
}

void judge_opaque(struct proxy *proxy, const struct destination *d, enum policy_scheme scheme,
        struct judgement *j)
{
	struct policy_request question = {
	        .scheme = scheme,
	        .host = destination_host(d),
	        .address = d->address,
	        .port = d->port,
	};

	memset(j, 0, sizeof *j);
	policy_decide(proxy->config.policy, &question, &j->decision);
	j->allowed = j->decision.verdict == POLICY_ALLOW;
}

bool judge_address(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address)
{
	if (decision->names_address || ip_classify(address) == IP_PUBLIC)
		return true;
	for (size_t i = 0; i < proxy->config.permit_count; i++)
		if (ip_in_prefix(address, &proxy->config.permit[i]))
			return true;
	return false;
}
