/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a rule's keys about requests besides the destination: ports, methods, paths. */
#include "policy/load/variables.h"
#include "policy/rules/rule.h"
#include "vethguard/policy/method.h"

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

void load_rule_ports(struct rule_parse *p, struct tree_node *node)
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

/* The method's number, or -1 if there are too many. */
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

/* Notes a method that looks like a typing error of a usual one: any word may be a method, but in a
 * deny rule a misspelled one would refuse nothing. TRACK is a method of old servers that people
 * deny, not a typing error. */
static void note_slip(const struct rule_parse *p, const struct tree_node *node, struct slice method)
{
	static const char *const usual[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE",
	        "OPTIONS", "CONNECT", "TRACE", "TRACK", NULL};
	static const char *const all[] = {"ALL", "ANY", "EVERY", NULL};
	const struct policy_load_options *options = p->l->options;
	const char *nearest = diag_nearest(method, usual);
	const char *fault = policy_method_fault(policy_method_of(method));

	if (!options || !options->notes)
		return;
	if (fault && !p->rule.deny) {
		diag_add(options->notes, p->tree->file, node->line, node->column,
		        "method \"%.*s\" is refused whatever a rule says: %s", SLICE_ARG(method),
		        fault);
		return;
	}
	for (size_t i = 0; all[i]; i++)
		if (slice_equals(method, slice_from_string(all[i]))) {
			diag_add(options->notes, p->tree->file, node->line, node->column,
			        "method \"%.*s\" is not a method of HTTP; leave methods out, and "
			        "the rule is for all",
			        SLICE_ARG(method));
			return;
		}
	if (nearest && !slice_equals(method, slice_from_string(nearest)))
		diag_add(options->notes, p->tree->file, node->line, node->column,
		        "method \"%.*s\" is not a method of HTTP; did you mean \"%s\"?",
		        SLICE_ARG(method), nearest);
}

/* Reports a text that is not a word in capital letters. */
static void report_method(struct tree *tree, const struct tree_node *node, struct slice text)
{
	char quoted[TREE_QUOTE_MAX], large[POLICY_METHOD_MAX + 1];

	tree_quote(text, quoted);
	for (size_t i = 0; i < text.n; i++)
		large[i] = (char)(text.p[i] >= 'a' && text.p[i] <= 'z' ? text.p[i] - 'a' + 'A'
		                                                       : text.p[i]);
	if (is_upper_token(slice_of(large, text.n)))
		tree_error(tree, node,
		        "method %s: methods are words in capital letters; write \"%.*s\", or leave "
		        "methods out to allow all",
		        quoted, (int)text.n, large);
	else if (slice_find_byte(text, ' ') >= 0 || slice_find_byte(text, ',') >= 0)
		tree_error(tree, node,
		        "method %s: this is one method; write several as a list: [GET, POST]",
		        quoted);
	else
		tree_error(tree, node,
		        "method %s: methods are words in capital letters such as GET; leave "
		        "methods out to allow all",
		        quoted);
}

void load_rule_methods(struct rule_parse *p, struct tree_node *node)
{
	struct tree_item single;
	struct slice text;

	p->rule.has_methods = true;
	for (const struct tree_item *item = tree_items(p->tree, node, "methods", &single); item;
	        item = item->next) {
		int number;

		if (!tree_text(p->tree, item->value, "a method", POLICY_METHOD_MAX, &text))
			continue;
		if (!is_upper_token(text)) {
			report_method(p->tree, item->value, text);
			continue;
		}
		note_slip(p, item->value, text);
		number = method_number(&p->l->model, text);
		if (number < 0)
			tree_error(p->tree, item->value,
			        "more than %d different methods in one policy", IMAGE_METHODS_MAX);
		else
			p->rule.methods |= UINT64_C(1) << number;
	}
}

/* True if each "**" is a segment of its own. */
static bool stars_are_right(struct slice path)
{
	for (size_t i = 0; i + 1 < path.n; i++)
		if (path.p[i] == '*' && path.p[i + 1] == '*')
			if (path.p[i - 1] != '/' || (i + 2 < path.n && path.p[i + 2] != '/'))
				return false;
	return true;
}

/* True if the path has a variable as other languages write it. */
static bool has_braces(struct slice path)
{
	const char *brace = memchr(path.p, '{', path.n), *end = memchr(path.p, '}', path.n);

	return brace && end && brace < end;
}

static bool check_path(struct tree *tree, const struct tree_node *node, struct slice path)
{
	char canonical[POLICY_PATH_MAX * 3];
	char quoted[TREE_QUOTE_MAX], better[TREE_QUOTE_MAX];
	size_t n;

	tree_quote(path, quoted);
	if (path.p[0] != '/')
		tree_error(tree, node, "path %s does not begin with \"/\"%s", quoted,
		        path.p[0] == '^'
		                ? "; patterns have * and **, they are not regular expressions"
		        : memmem(path.p, path.n, "://", 3)
		                ? "; scheme and host stand under to:, here only what follows them"
		                : "; put a \"/\" before it");
	else if (slice_find_byte(path, '?') >= 0 || slice_find_byte(path, '#') >= 0)
		tree_error(tree, node,
		        "path %s holds a query or fragment; only the path is matched", quoted);
	else if (!url_canonical_path(path, canonical, sizeof(canonical), &n))
		tree_error(tree, node,
		        "path %s can match no request: it leaves the root, or holds an escape or a "
		        "byte that no canonical path has",
		        quoted);
	else if (!slice_equals(path, slice_of(canonical, n)))
		tree_error(tree, node, "path %s is not in canonical form; write %s%s", quoted,
		        tree_quote(slice_of(canonical, n), better),
		        has_braces(path) ? " (a variable is written ${name})" : "");
	else if (!stars_are_right(path))
		tree_error(tree, node,
		        "path %s: \"**\" stands alone between slashes (\"/a/**\"); inside of a "
		        "segment write \"*\"",
		        quoted);
	else
		return true;
	return false;
}

/* The variable that the path has without braces, or NULL. Only a note follows, since a "$" may be
 * part of a path. */
static const struct load_variable *unbraced(const struct loader *l, struct slice path)
{
	const char *dollar = memchr(path.p, '$', path.n);

	for (; dollar; dollar = memchr(dollar + 1, '$', (size_t)(path.p + path.n - dollar - 1))) {
		struct slice rest = slice_of(dollar + 1, (size_t)(path.p + path.n - dollar - 1));

		for (size_t i = 0; i < l->variable_count; i++)
			if (slice_starts_with(rest, l->variables[i].name))
				return &l->variables[i];
	}
	return NULL;
}

/* Notes texts that look like regular expressions: "/v1/.*" is a valid path but permits less than
 * their author expects. */
static void note_path(const struct rule_parse *p, const struct tree_node *node, struct slice path)
{
	const struct policy_load_options *options = p->l->options;
	const struct load_variable *variable;
	char quoted[TREE_QUOTE_MAX];

	if (!options || !options->notes)
		return;
	variable = unbraced(p->l, path);
	if (variable)
		diag_add(options->notes, p->tree->file, node->line, node->column,
		        "path %s: the variable is written ${%.*s}; without braces it stands for "
		        "itself",
		        tree_quote(path, quoted), SLICE_ARG(variable->name));
	else if (memmem(path.p, path.n, "/.*", 3) || slice_ends_with(path, SLICE("$")))
		diag_add(options->notes, p->tree->file, node->line, node->column,
		        "path %s is not a regular expression: \"*\" stands for anything within a "
		        "segment, \"**\" for any segments, every other byte for itself",
		        tree_quote(path, quoted));
}

/* a longer list was not written by hand */
#define DIRECTORIES_LOOKED_AT 64

/* Notes a path like "/v1/", which matches no path below it. Says nothing if another path of the
 * rule begins like that: its author knows. */
static void note_directory(const struct rule_parse *p, const struct tree_node *node, size_t index)
{
	const struct policy_load_options *options = p->l->options;
	struct slice path = p->rule.paths[index];
	char quoted[TREE_QUOTE_MAX];

	if (!options || !options->notes || !options->thorough || path.n == 1 ||
	        !slice_ends_with(path, SLICE("/")) || slice_find_byte(path, '*') >= 0)
		return;
	for (size_t i = 0; i < p->rule.path_count; i++)
		if (i != index && slice_starts_with(p->rule.paths[i], slice_of(path.p, path.n - 1)))
			return;
	diag_add(options->notes, p->tree->file, node->line, node->column,
	        "path %s matches only itself; what lies below it is \"%.*s**\"",
	        tree_quote(path, quoted), path.n > 64 ? 0 : (int)path.n, path.p);
}

void load_rule_paths(struct rule_parse *p, struct tree_node *node)
{
	struct tree_item single;
	const struct tree_item *first = tree_items(p->tree, node, "paths", &single), *item = first;
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
		        check_path(p->tree, item->value, path)) {
			note_path(p, item->value, path);
			p->rule.paths[p->rule.path_count++] = path;
		}
	}
	if (!p->rule.paths || p->rule.path_count != n || n > DIRECTORIES_LOOKED_AT)
		return;
	n = 0;
	for (item = first; item; item = item->next)
		note_directory(p, item->value, n++);
}
