/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a rule as a whole: reports what its schemes exclude (methods and paths need https or http,
 * credentials need https, or tcp with inject: postgres, and tls: passthrough sees no request), and
 * notes what is valid but seldom intended. */
#include "policy/rules/rule.h"

/* True for top-level names that are private by custom or by RFC 6761 and 9476. */
static bool is_own_domain(struct slice name)
{
	static const char *const own[] = {"internal", "local", "lan", "corp", "home", "intern",
	        "intranet", "private", "localdomain", "test", "example", "invalid", "alt", NULL};

	for (size_t i = 0; own[i]; i++)
		if (slice_equals(name, slice_from_string(own[i])))
			return true;
	return false;
}

/* True for a name or address that never leaves the sandbox. */
static bool is_loopback(const struct model_destination *d)
{
	struct slice rest = slice_of(d->key.p + 1, d->key.n - 1);
	const uint8_t *prefix = (const uint8_t *)rest.p;

	if (d->key.p[0] != TARGET_PREFIX)
		return slice_equals(rest, SLICE("localhost")) ||
		       slice_ends_with(rest, SLICE(".localhost"));
	return prefix[0] == 4 ? prefix[1] >= 8 && prefix[2] == 127
	                      : prefix[1] == 128 && prefix[17] == 1 &&
	                                memcmp(prefix + 2, (const uint8_t[15]){0}, 15) == 0;
}

/* Notes a network that does not mean some or all of its addresses (ip_network_means). */
static void note_network(
        const struct rule_parse *p, const struct model_destination *d, const struct tree_node *at)
{
	struct diag_list *notes = p->l->options->notes;
	const uint8_t *key = (const uint8_t *)d->key.p + 1;
	struct ip_prefix network = {.base.family = key[0], .bits = key[1]};
	char quoted[TREE_QUOTE_MAX];
	enum ip_class class;
	bool mixed;

	memcpy(network.base.bytes, key + 2, sizeof(network.base.bytes));
	class = ip_network_class(&network, &mixed);
	if (ip_network_is_one(&network) || d->is_public)
		return;
	if (class == IP_PUBLIC && mixed)
		diag_add(notes, p->tree->file, at->line, at->column,
		        "destination %s covers more than a private or special range, so only its "
		        "public addresses are allowed%s; name private ones by networks of their "
		        "own, others "
		        "one by one",
		        tree_quote(d->text, quoted),
		        network.bits == 0 ? ", for which \"[public]\" stands" : "");
	else if (class != IP_PUBLIC && !ip_network_means(&network, &network.base) &&
	         class != IP_MAPPED && class != IP_NAT64)
		diag_add(notes, p->tree->file, at->line, at->column,
		        "destination %s opens nothing: %s addresses are dialed only where a rule "
		        "names them one by one",
		        tree_quote(d->text, quoted), ip_class_name(class));
}

/* Notes destinations that are valid but seldom intended. */
static void note_destination(
        const struct rule_parse *p, const struct model_destination *d, const struct tree_node *at)
{
	const struct policy_load_options *options = p->l->options;
	struct slice name = slice_of(d->key.p + 1, d->key.n ? d->key.n - 1 : 0);
	char quoted[TREE_QUOTE_MAX];

	if (!options || !options->notes || !options->thorough || p->rule.deny || d->key.n == 0)
		return;
	if (is_loopback(d))
		diag_add(options->notes, p->tree->file, at->line, at->column,
		        "destination %s means the sandbox itself to programs inside, so such "
		        "requests never reach vethguard; name a service of this host by another of "
		        "its addresses",
		        tree_quote(d->text, quoted));
	else if (d->key.p[0] == TARGET_PREFIX && d->key.n == 1 + IMAGE_PREFIX_KEY)
		note_network(p, d, at);
	else if (d->key.p[0] == TARGET_GLOB && slice_find_byte(name, '.') < 0 &&
	         !is_own_domain(name))
		diag_add(options->notes, p->tree->file, at->line, at->column,
		        "destination %s covers every name that ends in \".%.*s\", whoever owns it",
		        tree_quote(d->text, quoted), SLICE_ARG(name));
}

/* Reports a destination that the rule's credential cannot be sent to: inject: postgres needs tcp,
 * all others https. */
static void check_credential(
        struct rule_parse *p, const struct model_destination *d, const struct tree_node *at)
{
	const struct policy_credential *c = &p->l->model.credentials[p->rule.credential].c;
	const bool logs_in = c->inject == POLICY_INJECT_POSTGRES;
	char quoted[TREE_QUOTE_MAX];

	tree_quote(d->text, quoted);
	if (logs_in && d->scheme != POLICY_TCP)
		tree_error(p->tree, at,
		        "destination %s: inject: postgres is for tcp only: tcp://host:5432",
		        quoted);
	else if (d->scheme == POLICY_HTTP)
		tree_error(p->tree, at,
		        "destination %s: a credential is never sent over plain http", quoted);
	else if (d->scheme != POLICY_HTTPS && !logs_in)
		tree_error(p->tree, at,
		        "destination %s: a credential goes to https only, not into %s", quoted,
		        policy_scheme_name(d->scheme));
}

/* Reports what the scheme and port of one destination make impossible. An exception may name one of
 * the rule's ports. */
static void check_destination(struct rule_parse *p, const struct model_destination *d,
        const struct tree_node *at, bool is_exception)
{
	const struct model_rule *r = &p->rule;
	bool http = d->scheme == POLICY_HTTPS || d->scheme == POLICY_HTTP;
	const char *scheme = policy_scheme_name(d->scheme);
	char quoted[TREE_QUOTE_MAX];

	tree_quote(d->text, quoted);
	if (r->deny && d->is_public)
		tree_error(p->tree, at,
		        "destination %s: \"[public]\" is for allow rules; a deny rule names the "
		        "networks, and means all of their addresses",
		        quoted);
	if (!http && model_is_about_requests(r))
		tree_error(p->tree, at,
		        "destination %s: %s exist in https and http only, not in %s", quoted,
		        r->has_methods || r->path_count ? "methods and paths"
		                                        : "queries, header fields and bodies",
		        scheme);
	if (!http && r->wait_s)
		tree_error(p->tree, at,
		        "destination %s: only requests can be asked about, over https and http, "
		        "not %s",
		        quoted, scheme);
	if (!http && r->has_dlp)
		tree_error(p->tree, at,
		        "destination %s: dlp looks at requests, over https and http, not %s",
		        quoted, scheme);
	if (!http && r->upgrades.n)
		tree_error(p->tree, at,
		        "destination %s: upgrade exists in https and http only, not in %s", quoted,
		        scheme);
	if (r->credential != POLICY_NONE)
		check_credential(p, d, at);
	if (d->scheme != POLICY_HTTPS && r->passthrough)
		tree_error(
		        p->tree, at, "destination %s: tls: passthrough is for https only", quoted);
	if (d->port != 0 && r->port_count > 0 && !is_exception)
		tree_error(p->tree, at,
		        "destination %s names a port, and so does ports; use one of them", quoted);
	if (d->port == 0 && r->port_count == 0 && policy_scheme_default_port(d->scheme) == 0)
		tree_error(p->tree, at,
		        "destination %s needs a port: %s://host:port, or ports: [...]", quoted,
		        scheme);
}

/* Notes a rule with upgrade and credential: some services need both, and the author should know the
 * consequence. */
static void note_upgrade(const struct rule_parse *p)
{
	const struct policy_load_options *options = p->l->options;
	const struct model_rule *r = &p->rule;

	if (!options || !options->notes || !options->thorough || !r->upgrades.n ||
	        r->credential == POLICY_NONE)
		return;
	diag_add(options->notes, p->tree->file, p->node->line, p->node->column,
	        "rule \"%.*s\": after an upgrade to %.*s vethguard reads nothing, so the upstream "
	        "can show the credential to the sandbox there",
	        SLICE_ARG(r->name), SLICE_ARG(r->upgrades));
}

void load_rule_check_to(
        struct rule_parse *p, const struct model_lists *of, const struct tree_node *node)
{
	for (size_t l = 0; l < of->count; l++)
		for (size_t i = 0; i < of->lists[l].count; i++) {
			/* destinations written here are reported at their own place, those of
			 * groups at the key's value */
			const struct model_destination *d = &of->lists[l].items[i];
			struct tree_node at = *node;

			if (d->is_public && d->key.p[1] == 6)
				continue; /* its IPv4 half was checked already */
			if (l == 0) {
				at.line = d->mark.line;
				at.column = d->mark.column;
			}
			check_destination(p, d, &at, of == &p->rule.except);
			note_destination(p, d, &at);
		}
}

/* True if the rule judges what only a reader of that protocol's messages can know. */
static bool reads_protocol(const struct model_rule *r)
{
	return model_has_condition(r, CONDITION_MCP) || model_has_condition(r, CONDITION_GRAPHQL) ||
	       model_has_condition(r, CONDITION_GIT) || model_has_condition(r, CONDITION_GRPC) ||
	       model_has_condition(r, CONDITION_LLM);
}

void load_rule_check(struct rule_parse *p, const struct tree_node *to)
{
	const struct model_rule *r = &p->rule;

	if (r->passthrough && (model_is_about_requests(r) || r->credential != POLICY_NONE))
		tree_error(p->tree, p->node,
		        "with tls: passthrough vethguard cannot read requests, so the rule cannot "
		        "have %s or a credential",
		        r->condition_count ? "conditions on requests" : "methods, paths");
	if (r->passthrough && r->has_dlp)
		tree_error(p->tree, p->node,
		        "with tls: passthrough vethguard cannot read requests, so the rule cannot "
		        "have dlp");
	if (r->passthrough && r->upgrades.n)
		tree_error(p->tree, p->node,
		        "with tls: passthrough vethguard cannot read requests, so the rule cannot "
		        "have an upgrade");
	if (r->seals && r->upgrades.n)
		tree_error(p->tree, p->node,
		        "after an upgrade vethguard reads nothing, so a rule with seal cannot have "
		        "one");
	if (r->seals && model_has_condition(r, CONDITION_MCP))
		tree_error(p->tree, p->node,
		        "a rule with seal is for a login, and one with mcp for tools; write two "
		        "rules");
	if (r->upgrades.n && reads_protocol(r))
		tree_error(p->tree, p->node,
		        "after an upgrade vethguard reads nothing, so a rule with mcp, graphql, "
		        "git, grpc or llm cannot have one");
	note_upgrade(p);
	load_rule_check_to(p, &r->destinations, to);
}
