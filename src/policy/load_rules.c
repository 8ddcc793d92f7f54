/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each rule is read key by key, then checked as a whole: what its schemes
 * exclude (methods and paths need http, credentials need https, tls: passthrough sees no request).
 * A destination list may name groups; their destinations are shared, not copied.
 */
#include <stdio.h>

#include "variables.h"

#define REASON_MAX 500
#define TO_TEXT_MAX 160 /* bytes of `to` kept for explanations; longer lists are counted */

struct rule_parse {
	struct loader *l;
	struct tree *tree;
	const struct tree_node *node;
	struct model_rule rule;
	/* `to` as explanations show it: its first destinations, then the count of the others */
	char to_text[TO_TEXT_MAX + 64];
	size_t to_n, to_shown;
	bool to_full;
};

static const char *const allow_keys[] = {
        "name", "to", "ports", "methods", "paths", "tls", "credential", NULL};
static const char *const deny_keys[] = {"name", "to", "ports", "methods", "paths", "reason", NULL};
static const struct tree_refusal allow_refused[] = {
        {"limits", "is not supported by this version: a rule cannot limit rates yet; remove it"},
        {"ask", "is not supported by this version: a rule either allows or denies; remove it"},
        {"reason", "belongs to deny rules: it is what a refused client is told"}, {NULL, NULL}};
static const struct tree_refusal deny_refused[] = {
        {"limits", "is not supported by this version: a rule cannot limit rates yet; remove it"},
        {"ask", "is not supported by this version: a rule either allows or denies; remove it"},
        {"credential", "belongs to allow rules: a denied request is never sent"},
        {"tls", "belongs to allow rules: a denied connection is never relayed"}, {NULL, NULL}};

static void take_group(struct rule_parse *p, const struct tree_node *node, struct slice name,
        struct model_destinations *out)
{
	char quoted[TREE_QUOTE_MAX];
	uint32_t id = intern_find(&p->l->group_names, name);

	if (id == UINT32_MAX)
		tree_error(p->tree, node,
		        "no group %s; groups are lists under groups:", tree_quote(name, quoted));
	else
		*out = ((struct load_group *)vec_at(&p->l->groups, id))->destinations;
}

static void show_destination(struct rule_parse *p, struct slice text)
{
	p->to_full = p->to_full || text.n + 2 > TO_TEXT_MAX - p->to_n;
	if (p->to_full)
		return;
	p->to_n += (size_t)snprintf(p->to_text + p->to_n, sizeof(p->to_text) - p->to_n, "%s%.*s",
	        p->to_shown ? ", " : "", SLICE_ARG(text));
	p->to_shown++;
}

/* Reads `to`: runs of destinations between groups become one list each. */
static void take_destinations(struct rule_parse *p, struct tree_node *to)
{
	struct tree_item single;
	const struct tree_item *first = tree_items(p->tree, to, "to", &single);
	size_t n = to->kind == TREE_LIST ? to->count : 1;
	struct model_destinations *lists;
	struct model_destination *items;

	if (!first || n > MODEL_DESTINATIONS_MAX)
		return;
	lists = arena_take(p->tree->arena, (n + 1) * sizeof(*lists));
	items = arena_take(p->tree->arena, n * sizeof(*items));
	if (!lists || !items)
		return;
	p->rule.lists = lists;
	p->rule.list_count = 1; /* the first list: destinations written here */
	lists[0].items = items;
	for (const struct tree_item *item = first; item; item = item->next) {
		struct slice text = item->value->text;

		if (item->value->kind == TREE_SCALAR && slice_starts_with(text, SLICE("group:")))
			take_group(p, item->value, slice_of(text.p + 6, text.n - 6),
			        &lists[p->rule.list_count++]);
		else if (load_destination(p->l, p->tree, item->value, &items[lists[0].count]))
			text = items[lists[0].count++].text;
		show_destination(p, text);
	}
}

static void set_to_text(struct rule_parse *p, const struct tree_node *to)
{
	size_t n = p->to_n, count = to->kind == TREE_LIST ? to->count : 1;

	if (p->to_shown < count && to->kind == TREE_LIST)
		n += (size_t)snprintf(p->to_text + n, sizeof(p->to_text) - n, "%s%zu %s",
		        p->to_shown ? " and " : "", count - p->to_shown,
		        p->to_shown ? "more" : "destinations");
	p->rule.to = count == 1 && p->rule.lists && p->rule.lists[0].count == 1
	                     ? p->rule.lists[0].items[0].text
	             : n ? arena_copy(p->tree->arena, slice_of(p->to_text, n))
	                 : to->text;
}

static bool parse_ports(struct slice text, struct image_range *out)
{
	ptrdiff_t dash = slice_find_byte(text, '-');
	struct slice low = dash < 0 ? text : slice_of(text.p, (size_t)dash);
	struct slice high =
	        dash < 0 ? text : slice_of(text.p + dash + 1, text.n - (size_t)dash - 1);
	uint64_t a, b;

	if (!slice_to_u64(low, UINT16_MAX, &a) || !slice_to_u64(high, UINT16_MAX, &b) || a == 0 ||
	        a > b)
		return false;
	*out = (struct image_range){(uint16_t)a, (uint16_t)b};
	return true;
}

static void take_ports(struct rule_parse *p, struct tree_node *node)
{
	struct tree_item single;
	char quoted[TREE_QUOTE_MAX];

	for (const struct tree_item *item = tree_items(p->tree, node, "ports", &single); item;
	        item = item->next) {
		if (p->rule.port_count == MODEL_PORTS_MAX) {
			tree_error(p->tree, item->value,
			        "more than %d ports and ranges in one rule", MODEL_PORTS_MAX);
			return;
		}
		if (item->value->kind == TREE_SCALAR &&
		        parse_ports(item->value->text, &p->rule.ports[p->rule.port_count]))
			p->rule.port_count++;
		else
			tree_error(p->tree, item->value,
			        "ports holds numbers from 1 to 65535 and ranges such as 8000-8100, "
			        "not %s",
			        item->value->kind == TREE_SCALAR
			                ? tree_quote(item->value->text, quoted)
			                : "a list or a mapping");
	}
}

static bool is_upper_token(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= 'a' && s.p[i] <= 'z')
			return false;
	return load_is_token(s) && slice_find_byte(s, '*') < 0;
}

/* The method's number, or -1 where there are too many. */
static int method_number(struct model *model, struct slice method)
{
	for (size_t i = 0; i < model->method_count; i++)
		if (slice_equals(model->methods[i], method))
			return (int)i;
	if (model->method_count == IMAGE_METHODS_MAX)
		return -1;
	model->methods[model->method_count] = method;
	return (int)model->method_count++;
}

static void take_methods(struct rule_parse *p, struct tree_node *node)
{
	struct tree_item single;
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	p->rule.has_methods = true;
	for (const struct tree_item *item = tree_items(p->tree, node, "methods", &single); item;
	        item = item->next) {
		int number;

		if (!tree_text(p->tree, item->value, "a method", POLICY_METHOD_MAX, &text))
			continue;
		if (!is_upper_token(text)) {
			tree_error(p->tree, item->value,
			        "method %s: methods are words in capital letters such as GET; "
			        "leave methods out "
			        "to allow all",
			        tree_quote(text, quoted));
			continue;
		}
		number = method_number(&p->l->model, text);
		if (number < 0)
			tree_error(p->tree, item->value,
			        "more than %d different methods in one policy", IMAGE_METHODS_MAX);
		else
			p->rule.methods |= UINT64_C(1) << number;
	}
}

/* "**" stands alone in its segment. */
static bool stars_are_right(struct slice path)
{
	for (size_t i = 0; i + 1 < path.n; i++)
		if (path.p[i] == '*' && path.p[i + 1] == '*')
			if (path.p[i - 1] != '/' || (i + 2 < path.n && path.p[i + 2] != '/'))
				return false;
	return true;
}

static bool check_path(struct tree *tree, const struct tree_node *node, struct slice path)
{
	char canonical[POLICY_PATH_MAX * 3];
	char quoted[TREE_QUOTE_MAX], better[TREE_QUOTE_MAX];
	size_t n;

	tree_quote(path, quoted);
	if (path.p[0] != '/')
		tree_error(tree, node, "path %s does not begin with \"/\"", quoted);
	else if (slice_find_byte(path, '?') >= 0 || slice_find_byte(path, '#') >= 0)
		tree_error(tree, node,
		        "path %s holds a query or fragment; only the path is matched", quoted);
	else if (!url_canonical_path(path, canonical, sizeof(canonical), &n))
		tree_error(tree, node,
		        "path %s can match no request: it leaves the root, or holds an escape or a "
		        "byte that no "
		        "canonical path has",
		        quoted);
	else if (!slice_equals(path, slice_of(canonical, n)))
		tree_error(tree, node, "path %s is not in canonical form; write %s", quoted,
		        tree_quote(slice_of(canonical, n), better));
	else if (!stars_are_right(path))
		tree_error(tree, node,
		        "path %s: \"**\" stands alone between slashes (\"/a/**\"); inside of a "
		        "segment write \"*\"",
		        quoted);
	else
		return true;
	return false;
}

static void take_paths(struct rule_parse *p, struct tree_node *node)
{
	struct tree_item single;
	const struct tree_item *item = tree_items(p->tree, node, "paths", &single);
	size_t n = node->kind == TREE_LIST ? node->count : 1;

	if (!item)
		return;
	if (n > MODEL_PATHS_MAX) {
		tree_error(p->tree, node, "more than %d paths in one rule", MODEL_PATHS_MAX);
		return;
	}
	p->rule.paths = arena_take(p->tree->arena, n * sizeof(*p->rule.paths));
	for (; item && p->rule.paths; item = item->next) {
		struct slice path;

		if (tree_text(p->tree, item->value, "a path", POLICY_PATH_MAX, &path) &&
		        variables_in_path(p->l, p->tree, item->value, &path) &&
		        check_path(p->tree, item->value, path))
			p->rule.paths[p->rule.path_count++] = path;
	}
}

static void take_credential(struct rule_parse *p, const struct tree_node *node)
{
	const char *names[POLICY_CREDENTIALS_MAX + 1] = {NULL};
	char quoted[TREE_QUOTE_MAX];
	const char *nearest;
	struct slice name;
	uint32_t id;

	if (!tree_text(p->tree, node, "credential", POLICY_NAME_MAX, &name))
		return;
	id = intern_find(&p->l->credential_names, name);
	if (id != UINT32_MAX && id < p->l->model.credential_count) {
		p->rule.credential = id;
		return;
	}
	for (size_t i = 0; i < p->l->model.credential_count; i++)
		names[i] = p->l->model.credentials[i].c.name.p;
	nearest = diag_nearest(name, names);
	if (nearest)
		tree_error(p->tree, node,
		        "no credential %s under credentials:; did you mean \"%s\"?",
		        tree_quote(name, quoted), nearest);
	else
		tree_error(p->tree, node,
		        "no credential %s under credentials:", tree_quote(name, quoted));
}

/* Folded and literal blocks end in a line break and may hold more; a reason is one line. */
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

/* What the scheme and port of one destination make impossible. */
static void check_destination(
        struct rule_parse *p, const struct model_destination *d, const struct tree_node *at)
{
	const struct model_rule *r = &p->rule;
	bool http = d->scheme == POLICY_HTTPS || d->scheme == POLICY_HTTP;
	const char *scheme = policy_scheme_name(d->scheme);
	char quoted[TREE_QUOTE_MAX];

	tree_quote(d->text, quoted);
	if (!http && (r->has_methods || r->path_count > 0))
		tree_error(p->tree, at,
		        "destination %s: methods and paths exist in https and http only, not in %s",
		        quoted, scheme);
	if (d->scheme == POLICY_HTTP && r->credential != POLICY_NONE)
		tree_error(p->tree, at,
		        "destination %s: a credential is never sent over plain http", quoted);
	if (!http && r->credential != POLICY_NONE)
		tree_error(p->tree, at,
		        "destination %s: a credential goes to https only, not into %s", quoted,
		        scheme);
	if (d->scheme != POLICY_HTTPS && r->passthrough)
		tree_error(
		        p->tree, at, "destination %s: tls: passthrough is for https only", quoted);
	if (d->port != 0 && r->port_count > 0)
		tree_error(p->tree, at,
		        "destination %s names a port, and so does ports; use one of them", quoted);
	if (d->port == 0 && r->port_count == 0 && policy_scheme_default_port(d->scheme) == 0)
		tree_error(p->tree, at,
		        "destination %s needs a port: %s://host:port, or ports: [...]", quoted,
		        scheme);
}

static void check_rule(struct rule_parse *p, const struct tree_node *to)
{
	const struct model_rule *r = &p->rule;

	if (r->passthrough && (r->has_methods || r->path_count > 0 || r->credential != POLICY_NONE))
		tree_error(p->tree, p->node,
		        "tls: passthrough leaves the connection closed to view, so methods, paths "
		        "and credential "
		        "cannot stand beside it");
	for (size_t l = 0; l < r->list_count; l++)
		for (size_t i = 0; i < r->lists[l].count; i++) {
			/* destinations written here are reported where they stand, those of groups
			 * at `to` */
			const struct model_destination *d = &r->lists[l].items[i];
			struct tree_node at = *to;

			if (l == 0) {
				at.line = d->mark.line;
				at.column = d->mark.column;
			}
			check_destination(p, d, &at);
		}
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
		        file->label.n ? ":" : "", p->rule.deny ? "deny" : "allow", index);
		node = p->node;
	}
	id = intern_put(&p->l->rule_names, p->rule.name, &added);
	if (id == UINT32_MAX || (added && !vec_append(&p->l->name_rules, &rule, 1)))
		p->l->arena.failed = true;
	if (added || id == UINT32_MAX)
		return;
	other = vec_at(&p->l->model.rules, *(uint32_t *)vec_at(&p->l->name_rules, id));
	tree_error(p->tree, node, "a rule \"%.*s\" already stands at %s:%u; names are unique",
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
		take_ports(p, value);
	if ((value = tree_get(p->node, "methods")))
		take_methods(p, value);
	if ((value = tree_get(p->node, "paths")))
		take_paths(p, value);
	if (p->rule.deny) {
		if ((value = tree_get(p->node, "reason")))
			take_reason(p, value);
		return;
	}
	if ((value = tree_get(p->node, "tls")))
		take_tls(p, value);
	if ((value = tree_get(p->node, "credential")))
		take_credential(p, value);
}

static void load_rule(
        struct loader *l, struct load_file *file, struct tree_node *node, bool deny, size_t index)
{
	struct rule_parse p = {.l = l, .tree = &file->tree, .node = node};
	struct tree_node *to;

	p.rule.deny = deny;
	p.rule.credential = POLICY_NONE;
	p.rule.mark = mark_of(p.tree, node);
	if (!tree_is_map(p.tree, node, "a rule"))
		return;
	tree_check_keys(
	        p.tree, node, deny ? deny_keys : allow_keys, deny ? deny_refused : allow_refused);
	take_rule_name(&p, file, index);
	take_keys(&p);
	to = tree_get(node, "to");
	if (!to) {
		tree_error(p.tree, node, "the rule has no destination; add to: https://host");
	} else {
		take_destinations(&p, to);
		set_to_text(&p, to);
		check_rule(&p, to);
	}
	if (!vec_append(&l->model.rules, &p.rule, 1))
		l->arena.failed = true;
}

void load_rules(struct loader *l, struct load_file *file, bool deny)
{
	const char *key = deny ? "deny" : "allow";
	const struct tree_node *list = tree_get(file->tree.root, key);
	size_t index = 0;

	if (!list || !tree_is_list(&file->tree, list, key))
		return;
	for (const struct tree_item *item = list->first; item && !l->arena.failed;
	        item = item->next) {
		if (l->model.rules.n == POLICY_RULES_MAX) {
			tree_error(&file->tree, item->value,
			        "more than %d rules in all files together", POLICY_RULES_MAX);
			return;
		}
		load_rule(l, file, item->value, deny, index++);
	}
}
