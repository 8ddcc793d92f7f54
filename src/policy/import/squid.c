/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads squid.conf: acl and http_access. In squid the first http_access line whose ACLs all match
 * decides; ACLs are complete before, whatever the order of the lines, so they are read first. The
 * rules of a policy have no order, so the http_access lines are read in order, and each becomes
 * something that cannot allow more than the line does:
 * - "deny !PORTS", "deny CONNECT !PORTS" and "deny !NAMES" bound all later lines.
 * - "allow NAMES" with ports and methods becomes allow rules: http, and https if CONNECT is among
 *   the methods. A line with an ACL that is not read (regular expressions, times) is left out.
 * - "deny NAMES" becomes a deny rule for every port, whatever else the line asks for.
 * - After "deny" with anything else, every line that allows is left out: its requests could be
 *   denied.
 * - ACLs about the client (src, proxy_auth) are taken to match the sandbox, and their negations not
 *   to match.
 * - An ACL without values matches nothing, so a line that asks for one is left out.
 * - A line that could deny or add to ACLs but is not read (include) leaves out every line that
 *   allows.
 */
#include "policy/import/squid.h"

#include <stdio.h>

struct squid {
	struct import *im;
	struct vec acls;                                  /* struct squid_acl */
	uint8_t shut[SQUID_PORTS], shut_tls[SQUID_PORTS]; /* 1: a line has denied the port */
	const struct squid_acl *only;                     /* a line has denied all other names */
	unsigned doubt;         /* a line that denies, or may, what no policy expresses; 0: none */
	bool last_denies, over; /* over: a line has denied everything */
};

/* What a line asks for. */
struct line {
	struct import_place at;
	const struct squid_acl *names, *ports, *methods;
	const struct squid_acl *not_names, *not_ports;
	bool never, empty, unknown, many;
};

static void take_acl(struct line *l, const struct squid_acl *acl, bool negated)
{
	const struct squid_acl **place = acl->kind == SQUID_PORT     ? &l->ports
	                                 : acl->kind == SQUID_METHOD ? &l->methods
	                                                             : &l->names;

	if (squid_is_empty(acl)) {
		l->empty |= !negated;
		return;
	}
	switch (acl->kind) {
	case SQUID_ALL:
	case SQUID_CLIENT:
		l->never |= negated;
		break;
	case SQUID_NOTHING:
		l->never |= !negated;
		break;
	case SQUID_UNKNOWN:
		l->unknown = true;
		break;
	default:
		if (negated && acl->kind == SQUID_PORT && !l->not_ports)
			l->not_ports = acl;
		else if (negated && acl->kind == SQUID_NAMES && !l->not_names)
			l->not_names = acl;
		else if (negated)
			l->unknown = true;
		else if (*place)
			l->many = true; /* both have to match */
		else
			*place = acl;
	}
}

static bool has_port(const struct squid_acl *acl, uint32_t port)
{
	for (size_t i = 0; i < acl->values.n; i++) {
		const struct squid_value *v = vec_at(&acl->values, i);

		if (port >= v->low && port <= v->high)
			return true;
	}
	return false;
}

static bool has_connect(const struct squid_acl *methods)
{
	for (size_t i = 0; methods && i < methods->values.n; i++)
		if (slice_equals(((const struct squid_value *)vec_at(&methods->values, i))->method,
		            SLICE("CONNECT")))
			return true;
	return !methods;
}

static bool is_only_connect(const struct squid_acl *methods)
{
	for (size_t i = 0; methods && i < methods->values.n; i++)
		if (!slice_equals(((const struct squid_value *)vec_at(&methods->values, i))->method,
		            SLICE("CONNECT")))
			return false;
	return methods != NULL;
}

/* Adds a domain: the name, or for ".name" the names below it and the name itself. */
static void add_name(
        struct squid *s, const struct squid_value *v, enum policy_scheme scheme, uint16_t port)
{
	struct import_host host = v->host;

	import_add(s->im, v->at, scheme, &host, port);
	if (host.kind != IMPORT_BELOW)
		return;
	host.kind = IMPORT_NAME;
	import_add(s->im, v->at, scheme, &host, port);
}

static void deny_names(struct squid *s, const struct line *l)
{
	import_begin(s->im, true)->any_port = true;
	for (size_t i = 0; i < l->names->values.n; i++)
		add_name(s, vec_at(&l->names->values, i), POLICY_TCP, 0);
	if (l->methods || l->ports || l->not_ports || l->not_names || l->many || l->unknown)
		import_note(s->im, l->at,
		        "the line denies only some requests to these hosts; here all are denied");
}

/* True if no network has public addresses. Names that resolve to such an address are not dialed
 * anyway, so rules for the networks deny as much as the line does. */
static bool are_inner(const struct squid_acl *networks)
{
	for (size_t i = 0; i < networks->values.n; i++)
		if (((const struct squid_value *)vec_at(&networks->values, i))->host.is_public)
			return false;
	return true;
}

/* Reads a line that denies only by ports and CONNECT, or all names but those of one ACL. Returns
 * false if the line is another one. */
static bool deny_plainly(struct squid *s, const struct line *l)
{
	bool connect = is_only_connect(l->methods);

	if (l->unknown || l->many || l->names || (l->methods && !connect))
		return false;
	if (l->not_names) {
		if (s->only || l->ports || l->not_ports || connect)
			return false;
		s->only = l->not_names;
		return true;
	}
	if (!l->ports && !l->not_ports && !connect) {
		s->over = true; /* "deny all" */
		return true;
	}
	for (uint32_t port = 1; port < SQUID_PORTS; port++)
		if ((!l->ports || has_port(l->ports, port)) &&
		        (!l->not_ports || !has_port(l->not_ports, port))) {
			s->shut_tls[port] = 1;
			s->shut[port] |= !connect;
		}
	return true;
}

static void deny(struct squid *s, const struct line *l)
{
	if (deny_plainly(s, l))
		return;
	if (l->names && (l->names->kind == SQUID_NAMES || are_inner(l->names))) {
		deny_names(s, l);
	} else if (!s->doubt) {
		s->doubt = l->at.line;
		import_note(s->im, l->at,
		        "a policy cannot express what this line denies, so what later lines allow "
		        "is "
		        "left out");
	}
}

/* Adds destinations of one scheme for each port that this line and the earlier lines leave open. */
static void allow_scheme(struct squid *s, const struct line *l, enum policy_scheme scheme)
{
	const uint8_t *shut = scheme == POLICY_HTTPS ? s->shut_tls : s->shut;
	const uint16_t usual = policy_scheme_default_port(scheme);

	for (uint32_t port = 1; port < SQUID_PORTS; port++) {
		bool open = l->ports ? has_port(l->ports, port) : port == usual;

		if (!open || shut[port] || (l->not_ports && has_port(l->not_ports, port)))
			continue;
		for (size_t i = 0; i < l->names->values.n && !s->im->wrong; i++)
			add_name(s, vec_at(&l->names->values, i), scheme, (uint16_t)port);
	}
}

static void allow_http(struct squid *s, const struct line *l)
{
	struct import_rule *rule = import_begin(s->im, false);
	const size_t methods = l->methods ? l->methods->values.n : 0;

	for (size_t i = 0; i < methods && i < IMPORT_METHODS_MAX; i++) {
		const struct squid_value *v = vec_at(&l->methods->values, i);

		if (!slice_equals(v->method, SLICE("CONNECT")))
			rule->methods[rule->method_count++] = v->method;
	}
	if (methods == 0 || rule->method_count > 0)
		allow_scheme(s, l, POLICY_HTTP);
}

static void allow(struct squid *s, struct line *l)
{
	if (s->doubt || l->unknown || l->many || l->not_names ||
	        (l->names && s->only && l->names != s->only)) {
		import_note(s->im, l->at, "%s; the line is left out",
		        s->doubt ? "an earlier line denies, or may deny, what a policy cannot "
		                   "express"
		        : l->unknown || l->not_names ? "a policy cannot express an ACL of this line"
		                                     : "two ACLs of one kind have to match both");
		return;
	}
	l->names = l->names ? l->names : s->only;
	if (!l->names) {
		import_note(s->im, l->at,
		        "the line names no destination: a policy cannot allow every host");
		return;
	}
	if (!l->ports)
		import_note(s->im, l->at,
		        "the line allows every port that no line denies; here http has 80, and "
		        "https 443");
	if (has_connect(l->methods)) {
		import_begin(s->im, false);
		allow_scheme(s, l, POLICY_HTTPS);
	}
	if (!is_only_connect(l->methods))
		allow_http(s, l);
}

static void read_access(
        struct squid *s, struct import_place at, const struct import_word *words, size_t count)
{
	struct line l = {.at = at};
	char quoted[TREE_QUOTE_MAX];
	bool denies = count > 1 && slice_equals(words[1].text, SLICE("deny"));

	if (count < 3 || (!denies && !slice_equals(words[1].text, SLICE("allow")))) {
		import_fault(s->im, at, "a line is \"http_access allow|deny ACL...\"");
		return;
	}
	for (size_t i = 2; i < count; i++) {
		struct slice name = words[i].text;
		bool negated = name.n > 1 && name.p[0] == '!';
		const struct squid_acl *acl;

		if (negated)
			name = slice_of(name.p + 1, name.n - 1);
		acl = squid_find(&s->acls, name);
		if (!acl || acl->at.line > at.line) {
			import_fault(s->im, (struct import_place){at.line, words[i].column},
			        "there is no ACL %s above this line", tree_quote(name, quoted));
			return;
		}
		take_acl(&l, acl, negated);
	}
	s->last_denies = denies;
	if (s->over || l.never)
		return;
	if (l.empty)
		import_note(s->im, at,
		        "an ACL of this line has no values, so the line matches nothing; left out");
	else if (denies)
		deny(s, &l);
	else
		allow(s, &l);
}

/* Reads a line that is not http_access. */
static void read_other(
        struct squid *s, struct import_place at, const struct import_word *words, size_t count)
{
	static const char *const wide[] = {"include", "http_access2", "adapted_http_access",
	        "url_rewrite_program", "external_acl_type", NULL};
	char quoted[TREE_QUOTE_MAX];

	if (slice_equals(words[0].text, SLICE("acl")))
		squid_read_acl(s->im, &s->acls, at, words, count);
	for (size_t i = 0; wide[i]; i++)
		if (slice_equals(words[0].text, slice_from_string(wide[i]))) {
			import_note(s->im, at,
			        "%s is not read, and could deny: every line that allows is left "
			        "out",
			        tree_quote(words[0].text, quoted));
			s->doubt = s->doubt ? s->doubt : at.line;
		}
}

/* Reads the http_access lines, or all others. Returns the place of the last line. */
static struct import_place read_lines(struct squid *s, struct slice text, bool access)
{
	struct import_word words[IMPORT_WORDS_MAX];
	struct import_place at = {1, 1};
	unsigned line = 0;
	size_t count;

	while (import_next_line(s->im, &text, &line, words, &count, &at))
		if (count > 0 && slice_equals(words[0].text, SLICE("http_access")) == access)
			(access ? read_access : read_other)(s, at, words, count);
	return at;
}

void import_squid(struct import *im, struct slice text)
{
	struct squid *s = arena_take(&im->arena, sizeof(*s));
	struct import_place at;

	if (!s)
		return;
	s->im = im;
	vec_init(&s->acls, sizeof(struct squid_acl));
	read_lines(s, text, false);
	at = read_lines(s, text, true);
	if (s->last_denies && !s->over && !im->wrong)
		import_note(im, at,
		        "the last http_access line denies, so what no line names is allowed there; "
		        "here it is refused");
	squid_free(&s->acls);
}
