/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authorization of requests. A request has one destination. Everything that names it (the TLS
 * server name, the Host field or absolute target, CONNECT's authority, the name behind the
 * synthetic address that was dialed) has to name the same one. Otherwise the request is refused
 * whatever the policy says: this binds a credential to its destination.
 *
 * One difference is not an attack: a resolver with a search list (resolv.conf(5)) connects to
 * "evil.example.corp.example" when it is asked for "evil.example". vethguard then authorizes what
 * the request names, so that a denial is explained, and refuses the request even if the policy
 * allows it. In mode observe, which binds no credential to anything, the request goes to what it
 * names.
 */
#include <stdio.h>

#include "proxy/client/client.h"
#include "proxy/exchange/authorize.h"
#include "proxy/exchange/override.h"
#include "proxy/inject/fill.h"
#include "proxy/leaks/foreign.h"
#include "proxy/signing/signature.h"

/* The destination as the connection names it: SNI; else CONNECT's authority or the name that was
 * dialed; else the address. */
static void connection_destination(const struct client *c, struct destination *d)
{
	*d = c->destination;
	if (c->sni_n)
		destination_set_host(d, slice_of(c->sni, c->sni_n));
}

/* True if a search list can have turned this name into the name that was dialed. */
static bool is_searched(const struct client *c, struct slice name)
{
	struct slice dialled = destination_host(&c->destination);

	return !c->explicit_proxy && name.n && dialled.n > name.n + 1 && dialled.p[name.n] == '.' &&
	       slice_starts_with(dialled, name);
}

/* Compares the request's authority with the connection's destination. False: they differ, and j
 * holds the refusal. */
static bool agree(const struct client *c, const struct http_request *r, struct destination *d,
        struct verdict *j)
{
	struct destination connection;
	const struct url_authority *a = &r->authority;

	connection_destination(c, &connection);
	j->searched = is_searched(c, slice_of(c->sni, c->sni_n));
	if (c->sni_n && c->destination.host_n && !j->searched &&
	        !slice_equals(slice_of(c->sni, c->sni_n), destination_host(&c->destination))) {
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
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
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "the request names another port than the connection");
		return false;
	}
	/* A plain connection to a bare address may carry any Host: the worker resolves and dials
	 * that name. */
	if (!c->tls && !connection.host_n && a->host_n)
		return true;
	if (!c->tls && is_searched(c, destination_host(d))) {
		j->searched = true;
		return true;
	}
	if (!slice_equals(destination_host(d), destination_host(&connection)) ||
	        !ip_equals(&d->address, &connection.address)) {
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        c->tls ? "the request names another host than the TLS server name"
		               : "the request names another host than the connection");
		return false;
	}
	return true;
}

/* The destination of a request to the proxy port before any CONNECT. Only the request names it. */
static bool from_absolute(const struct client *c, const struct http_request *r,
        struct destination *d, struct verdict *j)
{
	const bool base = c->form != MESSAGE_FORM_PROXY;

	if (!r->absolute) {
		verdict_refuse(j, EVENT_CAUSE_CLIENT, EVENT_FINDING_NONE,
		        "this is a proxy: send an absolute http:// target or CONNECT");
		return false;
	}
	if (r->scheme != POLICY_HTTP && !base) {
		verdict_refuse(j, EVENT_CAUSE_CLIENT, EVENT_FINDING_NONE,
		        "https through a proxy needs CONNECT");
		return false;
	}
	d->port = r->authority.port ? r->authority.port : policy_scheme_default_port(r->scheme);
	if (r->authority.host_n)
		return destination_set_host(d, slice_of(r->authority.host, r->authority.host_n));
	d->address = r->authority.address;
	return true;
}

/* --- another protocol --- */

/* In mode observe an upgrade that no rule names passes, but never together with a credential. */
static void authorize_upgrade(
        const struct policy *policy, const struct http_request *r, struct verdict *j)
{
	enum upgrade_verdict verdict =
	        upgrade_authorize(policy, &j->decision, &r->fields, &j->upgrade);
	bool websocket = slice_equals_ignoring_case(j->upgrade, SLICE("websocket"));

	if (verdict == UPGRADE_DROPPED)
		j->detail = upgrade_not_passed_on;
	if (verdict != UPGRADE_DENIED)
		return;
	j->decision.reason = POLICY_REASON_UPGRADE;
	if (policy_mode(policy) == POLICY_OBSERVE && j->decision.credential == POLICY_NONE &&
	        !websocket)
		j->decision.observed = true;
	else
		verdict_refuse(j, EVENT_CAUSE_POLICY, EVENT_FINDING_NONE,
		        websocket ? "a WebSocket has to be requested with GET and without a body"
		                  : NULL);
}

/* --- another credential --- */

/* The credential's number in the policy in force, which placeholders go by; POLICY_NONE: it has
 * none. A request is judged by another policy just before that one comes into force. */
static uint32_t number_in_force(
        const struct policy *policy, const struct client *c, uint32_t credential)
{
	const struct policy *in_force = c->proxy->config.policy;

	if (policy == in_force)
		return credential;
	for (uint32_t i = 0; i < policy_credential_count(in_force); i++)
		if (policy_credential_equals(policy, credential, in_force, i))
			return i;
	return POLICY_NONE;
}

/* Returns NULL, or why the request cannot be signed. With a sealed credential the program has to
 * sign with the text of a login's keys. A request that logs in may also be signed with the
 * program's own keys, or not at all: then vethguard does not sign it (j->is_signed). */
static const char *check_signature(const struct policy *policy, const struct client *c,
        const struct http_request *r, const struct policy_credential *spec, struct verdict *j)
{
	const struct credential_store *store = c->proxy->config.credentials;
	const uint32_t own = number_in_force(policy, c, j->decision.credential);
	struct signature claim;

	signature_read(r, &claim);
	if (spec->source == POLICY_SOURCE_SEALED &&
	        (own == POLICY_NONE || foreign_whose(store, claim.key) != own)) {
		j->is_signed = false;
		return j->decision.seals ? NULL
		                         : "the request is not signed with keys that a login in "
		                           "this sandbox has given";
	}
	return signature_check(&claim, spec);
}

static void authorize_credential(const struct policy *policy, const struct client *c,
        const struct http_request *r, struct verdict *j)
{
	struct policy_credential spec;
	const char *where;

	policy_credential(policy, j->decision.credential, &spec);
	j->is_signed = spec.inject == POLICY_INJECT_SIGV4 || spec.inject == POLICY_INJECT_HMAC;
	j->fills = fill_kind_of(&r->fields, &spec, j->decision.seals).form != FILL_NONE;
	j->fills_messages = r->wants_websocket && spec.inject == POLICY_INJECT_PLACEHOLDER &&
	                    policy_replaces_in(&spec, SLICE("websocket"));
	if (spec.inject == POLICY_INJECT_SIGV4) {
		where = check_signature(policy, c, r, &spec, j);
		if (where) {
			j->decision.reason = POLICY_REASON_SIGNATURE;
			verdict_refuse(j, EVENT_CAUSE_POLICY, EVENT_FINDING_NONE, where);
			return;
		}
	}
	if (!spec.require)
		return;
	where = foreign_find(r, &spec, number_in_force(policy, c, j->decision.credential),
	        c->proxy->config.credentials);
	if (!where)
		return;
	j->decision.reason = POLICY_REASON_FOREIGN;
	verdict_refuse(j, EVENT_CAUSE_POLICY, EVENT_FINDING_FOREIGN_CREDENTIAL, where);
}

/* --- conditions on header fields --- */

/* True if http_drop_hop_by_hop() will keep the field. */
static bool is_sent_on(const struct http_fields *fields, const struct http_field *field)
{
	if (field->dropped)
		return false;
	for (size_t i = 0; i < fields->count; i++) {
		struct slice list = fields->items[i].value, name;

		if (fields->items[i].known != HTTP_CONNECTION)
			continue;
		while (http_list_next(&list, &name))
			if (http_names_alike(name, field->name))
				return false;
	}
	return true;
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	const struct http_fields *fields = context;

	for (; *at < fields->count; ++*at) {
		const struct http_field *field = &fields->items[*at];

		if (!is_sent_on(fields, field))
			continue;
		*out = (struct policy_field){field->name, field->value};
		++*at;
		return true;
	}
	return false;
}

struct policy_fields authorize_fields(const struct http_fields *fields)
{
	return (struct policy_fields){fields, next_field};
}

/* --- the whole request --- */

/* Notes which credentials belong to the destination of a request that the policy denies, or in mode
 * observe would deny. A client that sends its key to another path of its own API leaks nothing. */
static void note_own(
        const struct policy *policy, const struct policy_request *question, struct verdict *j)
{
	bool denied = !j->allowed && j->cause == EVENT_CAUSE_POLICY;

	if ((denied || j->decision.observed) && j->finding == EVENT_FINDING_NONE &&
	        policy_credential_count(policy))
		j->own = policy_credentials_at(policy, question);
}

void authorize_request(const struct policy *policy, const struct client *c,
        const struct http_request *r, const struct policy_body *body, struct destination *d,
        struct verdict *j)
{
	const struct policy_fields fields = authorize_fields(&r->fields);
	struct policy_request question = {
	        .method = r->method, .query = r->query, .fields = &fields, .body = body};

	memset(j, 0, sizeof(*j));
	memset(d, 0, sizeof(*d));
	j->shown = POLICY_NONE;
	j->decision = (struct policy_decision){.rule = POLICY_NONE,
	        .credential = POLICY_NONE,
	        .reason = POLICY_REASON_BAD_REQUEST};
	if (c->explicit_proxy && !c->connected ? !from_absolute(c, r, d, j) : !agree(c, r, d, j))
		return;
	if (r->absolute && r->scheme != (c->tls ? POLICY_HTTPS : POLICY_HTTP)) {
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "the request's scheme is not that of the connection");
		return;
	}
	question.scheme = c->tls ? POLICY_HTTPS : POLICY_HTTP;
	question.host = destination_host(d);
	question.address = d->address;
	question.port = d->port;
	question.path = r->asterisk ? SLICE("/") : slice_of(r->path, r->path_n);
	policy_decide(policy, &question, &j->decision);
	j->allowed = j->decision.verdict == POLICY_ALLOW;
	j->needs_body = j->decision.needs_body;
	if (!j->allowed && body && j->decision.reason == POLICY_REASON_CONDITION)
		j->detail = body->fault;
	if (!j->allowed && j->decision.why)
		j->detail = j->decision.why;
	override_authorize(policy, &question, &r->fields, j);
	if (j->allowed && j->searched && !j->decision.observed)
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_NONE,
		        "the connection was made to this name with a domain of a search list "
		        "(resolv.conf) appended, which is another name");
	if (j->allowed && j->decision.passthrough)
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "the rule passes TLS through unopened, but this connection was opened");
	if (j->allowed && j->decision.credential != POLICY_NONE && !c->tls)
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "credentials never go over plain http");
	if (j->allowed && j->decision.credential != POLICY_NONE)
		authorize_credential(policy, c, r, j);
	if (j->allowed && r->wants_upgrade)
		authorize_upgrade(policy, r, j);
	if (j->allowed && j->decision.needs_messages && (r->wants_websocket || j->upgrade.n)) {
		j->decision.reason = POLICY_REASON_UPGRADE;
		verdict_refuse(j, EVENT_CAUSE_POLICY, EVENT_FINDING_NONE,
		        "a rule with mcp or graphql is there for this path, and would not judge "
		        "what follows the upgrade");
	}
	note_own(policy, &question, j);
}

void authorize_opaque(const struct policy *policy, const struct destination *d,
        enum policy_scheme scheme, struct verdict *j)
{
	struct policy_request question = {
	        .scheme = scheme,
	        .host = destination_host(d),
	        .address = d->address,
	        .port = d->port,
	};

	memset(j, 0, sizeof(*j));
	policy_decide(policy, &question, &j->decision);
	j->allowed = j->decision.verdict == POLICY_ALLOW;
}

bool authorize_address(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address)
{
	return decision->names_address || ip_classify(address) == IP_PUBLIC ||
	       ip_networks_permit(proxy->config.permit, proxy->config.permit_count, address);
}
