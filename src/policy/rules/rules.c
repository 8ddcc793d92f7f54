/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each rule is read key by key (rules/rule_to.c: destinations;
 * rules/rule_request.c: ports, methods and paths), then checked as a whole (rules/rule_check.c).
 */
#include "policy/rules/dlp.h"
#include "policy/rules/limits.h"
#include "policy/rules/rule.h"

#define REASON_MAX 500

static const char *const allow_keys[] = {"name", "to", "ports", "methods", "paths", "tls",
        "credential", "seal", "upgrade", "query", "headers", "form", "json", "jsonrpc", "mcp",
        "graphql", "llm", "git", "grpc", "limits", "budget", "weights", "prices", "dlp", NULL};
static const char *const ask_keys[] = {"name", "to", "ports", "methods", "paths", "credential",
        "seal", "upgrade", "query", "headers", "form", "json", "jsonrpc", "mcp", "graphql", "llm",
        "git", "grpc", "limits", "budget", "weights", "prices", "dlp", "wait", NULL};
static const char *const deny_keys[] = {"name", "to", "ports", "methods", "paths", "reason",
        "except", "query", "headers", "form", "json", "jsonrpc", "mcp", "graphql", "llm", "git",
        "grpc", NULL};
/* Keys of a floor's rules under allow:, and under infrastructure:. */
static const char *const floor_keys[] = {"name", "to", "ports", "methods", "paths", "tls",
        "upgrade", "query", "headers", "form", "json", "jsonrpc", "mcp", "graphql", "llm", "git",
        "grpc", NULL};
static const char *const infrastructure_keys[] = {"name", "to", "ports", "methods", "paths", "tls",
        "upgrade", "query", "headers", "form", "json", "jsonrpc", "mcp", "graphql", "llm", "git",
        "grpc", "limits", "budget", NULL};
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
        {"dlp", "belongs to allow rules: a denied request is never sent"},
        {"limits", "belongs to allow rules: a denied request is never sent"},
        {"budget", "belongs to allow rules: a denied request is never sent"},
        {"weights", "belongs to allow rules: a denied request gets no answer"},
        {"prices", "belongs to allow rules: a denied request gets no answer"}, {"ask", SAYS_ITSELF},
        {"wait", "belongs to ask rules: nothing is held here"},
        {"credential", "belongs to allow rules: a denied request is never sent"},
        {"seal", "belongs to allow rules: a denied request gets no answer"},
        {"tls", "belongs to allow rules: a denied connection is never relayed"},
        {"upgrade", "belongs to allow rules: a denied request is never sent"}, {"host", IS_TO},
        {"hosts", IS_TO}, {"url", IS_TO}, {"domain", IS_TO}, {"destination", IS_TO},
        {"action", SAYS_ITSELF}, {"<<", NO_MERGE}, {NULL, NULL}};

#define OF_POLICIES "belongs to rules of policies: a floor sends nothing"
#define OF_FLOOR_TOP                                                                       \
	"belongs to the top of the floor, where it counts everything, or to a rule under " \
	"infrastructure:"
static const struct tree_refusal floor_refused[] = {{"credential", OF_POLICIES},
        {"seal", OF_POLICIES}, {"dlp", "belongs to policies, or under defaults:"},
        {"weights", OF_POLICIES}, {"prices", OF_POLICIES}, {"limits", OF_FLOOR_TOP},
        {"budget", OF_FLOOR_TOP}, {"wait", "belongs to ask rules, which a floor does not have"},
        {"ask", "does not exist: a floor has allow:, deny: and infrastructure:"},
        {"reason", "belongs to deny rules: it is what a refused client is told"},
        {"except", "belongs to deny rules: an allow rule opens only what it names"},
        {"host", IS_TO}, {"hosts", IS_TO}, {"url", IS_TO}, {"domain", IS_TO},
        {"destination", IS_TO},
        {"action", "does not exist: write the rule under allow:, deny: or "
                   "infrastructure:"},
        {"<<", NO_MERGE}, {NULL, NULL}};

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

/* Makes names such as "deny[2]", "team.yaml:allow[0]" and "floor:deny[0]". */
static struct slice default_name(struct rule_parse *p, struct slice label, size_t index)
{
	if (p->rule.layer != POLICY_LAYER_POLICY)
		label = slice_from_string(policy_layer_name(p->rule.layer));
	return arena_printf(&p->l->arena, "%.*s%s%s[%zu]", SLICE_ARG(label), label.n ? ":" : "",
	        p->rule.deny     ? "deny"
	        : p->rule.wait_s ? "ask"
	                         : "allow",
	        index);
}

static void take_rule_name(struct rule_parse *p, struct load_file *file, size_t index)
{
	const struct tree_node *node = tree_get(p->node, "name");
	uint32_t rule = (uint32_t)p->l->model.rules.n;
	struct model_rule *other;
	bool added;
	uint32_t id;

	if (node && !load_name(p->tree, node, "a rule's name", &p->rule.name))
		return;
	if (!node)
		p->rule.name = default_name(p, file->label, index);
	else if (p->rule.layer != POLICY_LAYER_POLICY)
		p->rule.name =
		        arena_printf(&p->l->arena, "%s%c%.*s", policy_layer_name(p->rule.layer),
		                POLICY_LAYER_MARK, SLICE_ARG(p->rule.name));
	node = node ? node : p->node;
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
	if ((value = tree_get(p->node, "git")))
		load_rule_git(p, value);
	if ((value = tree_get(p->node, "grpc")))
		load_rule_grpc(p, value);
	if (p->rule.deny) {
		if ((value = tree_get(p->node, "reason")))
			take_reason(p, value);
		return;
	}
	if ((value = tree_get(p->node, "dlp")))
		p->rule.has_dlp = load_dlp(p->tree, value, &p->rule.dlp);
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
	load_rule_check_to(p, &p->rule.except, except);
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
	else if (p->rule.layer == POLICY_LAYER_INFRASTRUCTURE)
		tree_check_keys(p->tree, p->node, infrastructure_keys, floor_refused);
	else if (p->rule.layer != POLICY_LAYER_POLICY)
		tree_check_keys(p->tree, p->node, floor_keys, floor_refused);
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
	p.rule.layer = strcmp(key, "infrastructure") == 0 ? POLICY_LAYER_INFRASTRUCTURE
	               : file == &l->floor                ? POLICY_LAYER_FLOOR
	                                                  : POLICY_LAYER_POLICY;
	if (!is_rule(p.tree, node))
		return;
	check_rule_keys(&p);
	if (p.rule.wait_s)
		take_wait(&p, tree_get(node, "wait"));
	take_rule_name(&p, file, index);
	take_keys(&p);
	if (!deny)
		load_limits(&limits, node);
	load_rule_tokens(&p);
	to = tree_get(node, "to");
	if (!to) {
		tree_error(p.tree, node, "the rule has no destination; add to: https://host");
	} else {
		load_rule_to(&p, to);
		load_rule_check(&p, to);
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
