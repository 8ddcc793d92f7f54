/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each rule is read key by key (load/rule_to.c: destinations;
 * load/rule_request.c: ports, methods and paths), then checked as a whole for what its schemes
 * exclude: methods and paths need http, credentials need https, and tls: passthrough sees no
 * request.
 */
#include "policy/load/limits.h"
#include "policy/load/rule.h"

#define REASON_MAX 500

static const char *const allow_keys[] = {"name", "to", "ports", "methods", "paths", "tls",
        "credential", "seal", "upgrade", "query", "headers", "form", "json", "jsonrpc", "mcp",
        "graphql", "llm", "limits", "budget", NULL};
static const char *const ask_keys[] = {"name", "to", "ports", "methods", "paths", "credential",
        "seal", "upgrade", "query", "headers", "form", "json", "jsonrpc", "mcp", "graphql", "llm",
        "limits", "budget", "wait", NULL};
static const char *const deny_keys[] = {"name", "to", "ports", "methods", "paths", "reason",
        "except", "query", "headers", "form", "json", "jsonrpc", "mcp", "graphql", "llm", NULL};
#define IS_TO "does not exist: write the destination of a rule as \"to: https://host\""
#define SAYS_ITSELF "does not exist: write the rule under allow:, ask: or deny:"
#define NO_MERGE \
	"does not exist: keys of another mapping are not merged into this one; write them out"

static const struct tree_refusal allow_refused[] = {{"ask", SAYS_ITSELF},
        {"wait", "belongs to ask rules: nothing is held here"},
        {"reason", "belongs to deny rules: it is what a refused client is told"},
        {"except", "belongs to deny rules: an allow rule opens only what it names"},
        {"host", IS_TO}, {"hosts", IS_TO}, {"url", IS_TO}, {"domain", IS_TO},
        {"destination", IS_TO}, {"action", SAYS_ITSELF}, {"<<", NO_MERGE}, {NULL, NULL}};
static const struct tree_refusal ask_refused[] = {{"ask", SAYS_ITSELF},
        {"tls", "belongs to allow rules: what is not read cannot be asked about"},
        {"reason", "belongs to deny rules: it is what a refused client is told"},
        {"except", "belongs to deny rules: a rule asks only about what it names"}, {"host", IS_TO},
        {"hosts", IS_TO}, {"url", IS_TO}, {"domain", IS_TO}, {"destination", IS_TO},
        {"action", SAYS_ITSELF}, {"timeout", "does not exist here: write wait: 5m"},
        {"<<", NO_MERGE}, {NULL, NULL}};
static const struct tree_refusal deny_refused[] = {
        {"limits", "belongs to allow rules: a denied request is never sent"},
        {"budget", "belongs to allow rules: a denied request is never sent"}, {"ask", SAYS_ITSELF},
        {"wait", "belongs to ask rules: nothing is held here"},
        {"credential", "belongs to allow rules: a denied request is never sent"},
        {"seal", "belongs to allow rules: a denied request gets no answer"},
        {"tls", "belongs to allow rules: a denied connection is never relayed"},
        {"upgrade", "belongs to allow rules: a denied request is never sent"}, {"host", IS_TO},
        {"hosts", IS_TO}, {"url", IS_TO}, {"domain", IS_TO}, {"destination", IS_TO},
        {"action", SAYS_ITSELF}, {"<<", NO_MERGE}, {NULL, NULL}};

/* Reads a credential's name. False: there is none of that name, which was reported. */
static bool find_credential(
        struct rule_parse *p, const struct tree_node *node, const char *key, uint32_t *out)
{
	const char *names[POLICY_CREDENTIALS_MAX + 1] = {NULL};
	const struct diag_known known = {names, "the credentials are", NULL, NULL};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];
	struct slice name;
	uint32_t id;

	if (!tree_text(p->tree, node, key, POLICY_NAME_MAX, &name))
		return false;
	id = intern_find(&p->l->credential_names, name);
	if (id != UINT32_MAX && id < p->l->model.credential_count) {
		*out = id;
		return true;
	}
	for (size_t i = 0; i < p->l->model.credential_count; i++)
		names[i] = p->l->model.credentials[i].c.name.p;
	tree_error(p->tree, node, "no credential %s under credentials:%s", tree_quote(name, quoted),
	        names[0] ? diag_hint(name, &known, hint) : "; the policy has none");
	return false;
}

/* The rule is for a token endpoint: its answers are sealed. */
static void take_seal(struct rule_parse *p, const struct tree_node *node)
{
	uint32_t id;

	if (tree_get(p->node, "credential")) {
		tree_error(p->tree, node,
		        "a rule has either seal or credential: with seal, requests get the sealed "
		        "tokens too");
		return;
	}
	if (!find_credential(p, node, "seal", &id))
		return;
	if (p->l->model.credentials[id].c.source != POLICY_SOURCE_SEALED) {
		tree_error(p->tree, node,
		        "seal needs a credential with source: sealed, and \"%.*s\" has a value "
		        "from "
		        "elsewhere",
		        SLICE_ARG(p->l->model.credentials[id].c.name));
		return;
	}
	p->rule.credential = id;
	p->rule.seals = true;
}

/* Reads reason:. Folded and literal blocks end in a line break and may have more; the reason
 * becomes one line. */
static void take_reason(struct rule_parse *p, struct tree_node *node)
{
	struct tree_node flat = *node;
	char *text;

	if (node->kind == TREE_SCALAR && !node->plain) {
		flat.text = arena_copy(p->tree->arena, node->text);
		text = (char *)flat.text.p;
		for (size_t i = 0; i < flat.text.n; i++)
			if (text[i] == '\n')
				text[i] = ' ';
		flat.text = slice_trim(flat.text);
	}
	tree_text(p->tree, &flat, "reason", REASON_MAX, &p->rule.reason);
}

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

/* A credential goes where its way of injecting can put it. */
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

/* node: the value of to or except. */
static void check_destinations(
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

static void check_rule(struct rule_parse *p, const struct tree_node *to)
{
	const struct model_rule *r = &p->rule;

	if (r->passthrough && (model_is_about_requests(r) || r->credential != POLICY_NONE))
		tree_error(p->tree, p->node,
		        "with tls: passthrough vethguard cannot read requests, so the rule cannot "
		        "have %s or a credential",
		        r->condition_count ? "conditions on requests" : "methods, paths");
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
	if (r->upgrades.n && (model_has_condition(r, CONDITION_MCP) ||
	                             model_has_condition(r, CONDITION_GRAPHQL)))
		tree_error(p->tree, p->node,
		        "after an upgrade vethguard reads nothing, so a rule with mcp or graphql "
		        "cannot have one");
	note_upgrade(p);
	check_destinations(p, &r->destinations, to);
}

static void take_rule_name(struct rule_parse *p, struct load_file *file, size_t index)
{
	const struct tree_node *node = tree_get(p->node, "name");
	uint32_t rule = (uint32_t)p->l->model.rules.n;
	struct model_rule *other;
	bool added;
	uint32_t id;

	if (node) {
		if (!load_name(p->tree, node, "a rule's name", &p->rule.name))
			return;
	} else {
		p->rule.name = arena_printf(&p->l->arena, "%.*s%s%s[%zu]", SLICE_ARG(file->label),
		        file->label.n ? ":" : "",
		        p->rule.deny     ? "deny"
		        : p->rule.wait_s ? "ask"
		                         : "allow",
		        index);
		node = p->node;
	}
	id = intern_put(&p->l->rule_names, p->rule.name, &added);
	if (id == UINT32_MAX || (added && !vec_append(&p->l->name_rules, &rule, 1)))
		p->l->arena.failed = true;
	if (added || id == UINT32_MAX)
		return;
	other = vec_at(&p->l->model.rules, *(uint32_t *)vec_at(&p->l->name_rules, id));
	tree_error(p->tree, node, "a rule \"%.*s\" already exists at %s:%u; names are unique",
	        SLICE_ARG(p->rule.name), other->mark.file, other->mark.line);
}

static void take_tls(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const words[] = {"intercept", "passthrough", NULL};

	p->rule.passthrough = tree_word(p->tree, node, "tls", words) == 1;
}

static void take_keys(struct rule_parse *p)
{
	struct tree_node *value;

	if ((value = tree_get(p->node, "ports")))
		load_rule_ports(p, value);
	if ((value = tree_get(p->node, "methods")))
		load_rule_methods(p, value);
	if ((value = tree_get(p->node, "paths")))
		load_rule_paths(p, value);
	if ((value = tree_get(p->node, "query")))
		load_rule_conditions(p, value, CONDITION_QUERY);
	if ((value = tree_get(p->node, "headers")))
		load_rule_conditions(p, value, CONDITION_HEADER);
	if ((value = tree_get(p->node, "form")))
		load_rule_conditions(p, value, CONDITION_FORM);
	if ((value = tree_get(p->node, "json")))
		load_rule_conditions(p, value, CONDITION_JSON);
	if ((value = tree_get(p->node, "jsonrpc")))
		load_rule_jsonrpc(p, value);
	if ((value = tree_get(p->node, "mcp")))
		load_rule_mcp(p, value);
	if ((value = tree_get(p->node, "graphql")))
		load_rule_graphql(p, value);
	if ((value = tree_get(p->node, "llm")))
		load_rule_llm(p, value);
	if (p->rule.deny) {
		if ((value = tree_get(p->node, "reason")))
			take_reason(p, value);
		return;
	}
	if ((value = tree_get(p->node, "tls")))
		take_tls(p, value);
	if ((value = tree_get(p->node, "upgrade")))
		load_rule_upgrade(p, value);
	if ((value = tree_get(p->node, "credential")))
		find_credential(p, value, "credential", &p->rule.credential);
	if ((value = tree_get(p->node, "seal")))
		take_seal(p, value);
}

/* Reads the exceptions. An invalid one is an error: ignoring it would deny more, or less, than its
 * author thinks. */
static void take_except(struct rule_parse *p)
{
	struct tree_node *except = p->rule.deny ? tree_get(p->node, "except") : NULL;

	if (!except)
		return;
	load_rule_except(p, except);
	check_destinations(p, &p->rule.except, except);
}

/* True for a mapping. People often write a destination alone first, so that has its own message. */
static bool is_rule(struct tree *tree, const struct tree_node *node)
{
	char quoted[TREE_QUOTE_MAX];

	if (node->kind != TREE_SCALAR || node->text.n == 0)
		return tree_is_map(tree, node, "a rule");
	tree_error(tree, node,
	        "a rule must be a mapping (\"key: value\" lines), not %s; write a destination "
	        "after \"to: \"",
	        tree_quote(node->text, quoted));
	return false;
}

/* Reads how long a request is held. load_rule() has set the default before, because a rule with
 * wait_s is an ask rule. */
static void take_wait(struct rule_parse *p, const struct tree_node *node)
{
	uint64_t ms;

	if (node &&
	        tree_duration(p->tree, node, "wait", 1000, POLICY_ASK_WAIT_MAX_S * 1000ull, &ms))
		p->rule.wait_s = (uint32_t)(ms / 1000);
}

static void check_rule_keys(struct rule_parse *p)
{
	if (p->rule.deny)
		tree_check_keys(p->tree, p->node, deny_keys, deny_refused);
	else if (p->rule.wait_s)
		tree_check_keys(p->tree, p->node, ask_keys, ask_refused);
	else
		tree_check_keys(p->tree, p->node, allow_keys, allow_refused);
}

static void load_rule(struct loader *l, struct load_file *file, struct tree_node *node,
        const char *key, size_t index)
{
	bool deny = strcmp(key, "deny") == 0;
	struct rule_parse p = {.l = l, .tree = &file->tree, .node = node};
	struct limits_parse limits = {
	        .l = l, .tree = &file->tree, .rule = (uint32_t)l->model.rules.n};
	struct tree_node *to;

	p.rule.deny = deny;
	p.rule.wait_s = strcmp(key, "ask") == 0 ? POLICY_ASK_WAIT_S : 0;
	p.rule.credential = POLICY_NONE;
	p.rule.mark = mark_of(p.tree, node);
	if (!is_rule(p.tree, node))
		return;
	check_rule_keys(&p);
	if (p.rule.wait_s)
		take_wait(&p, tree_get(node, "wait"));
	take_rule_name(&p, file, index);
	take_keys(&p);
	if (!deny)
		load_limits(&limits, node);
	to = tree_get(node, "to");
	if (!to) {
		tree_error(p.tree, node, "the rule has no destination; add to: https://host");
	} else {
		load_rule_to(&p, to);
		check_rule(&p, to);
		load_limits_check(&limits, &p.rule, node);
		take_except(&p);
		load_rule_conditions_done(&p);
	}
	if (!vec_append(&l->model.rules, &p.rule, 1))
		l->arena.failed = true;
}

/* Reports "allow: https://host", or one rule without its dash. */
static bool is_rule_list(struct tree *tree, const struct tree_node *node, const char *key)
{
	char quoted[TREE_QUOTE_MAX];

	if (node->kind == TREE_SCALAR && node->text.n > 0 &&
	        !slice_equals(node->text, SLICE("~")) && !slice_equals(node->text, SLICE("null"))) {
		tree_error(tree, node,
		        "%s must be a list of rules (\"- to: https://host\" lines), not %s", key,
		        tree_quote(node->text, quoted));
		return false;
	}
	if (tree_get(node, "to")) {
		tree_error(tree, node,
		        "%s must be a list of rules: put \"- \" before the first key of each", key);
		return false;
	}
	return tree_is_list(tree, node, key);
}

void load_rules(struct loader *l, struct load_file *file, const char *key)
{
	const struct tree_node *list = tree_get(file->tree.root, key);
	size_t index = 0;

	if (!list || !is_rule_list(&file->tree, list, key))
		return;
	for (const struct tree_item *item = list->first; item && !l->arena.failed;
	        item = item->next) {
		if (l->model.rules.n == POLICY_RULES_MAX) {
			tree_error(&file->tree, item->value,
			        "more than %d rules in all files together", POLICY_RULES_MAX);
			return;
		}
		load_rule(l, file, item->value, key, index++);
	}
}
