/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the text is built from left to right. A value is never read again, so it
 * cannot bring in another variable. No value contains anything that has a meaning in the language
 * (variables.c). What else it may contain depends on both sides of the variable in the text as
 * written: only between two borders (dots of a host, slashes of a path) may the value have borders
 * of its own. So a value cannot move what was written before or behind it.
 */
#include "policy/load/variables.h"

/* The position of a variable in a text as written. */
struct place {
	size_t begin, end; /* of "${name}" */
	struct load_variable *variable;
};

static bool report_unknown(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice name)
{
	const char *names[LOAD_VARIABLES_MAX + 1], *near = variables_nearest(l, name, false);
	const struct diag_known known = {names, "the variables are", "${", "}"};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];

	for (size_t i = 0; i < l->variable_count; i++)
		names[i] = l->variables[i].name.p;
	names[l->variable_count] = NULL;
	tree_quote(node->text, quoted);
	diag_hint(name, &known, hint);
	if (tree == &l->floor.tree)
		tree_error(tree, node,
		        "%s: a floor has no variables: it is the same for every policy", quoted);
	else if (near && variables_find(l, slice_from_string(near))->declared)
		tree_error(tree, node, "%s: there is no variable \"%.*s\"%s", quoted,
		        SLICE_ARG(name), hint);
	else if (near)
		tree_error(tree, node, "%s: the variable \"%.*s\" is not given; given is \"%s\"",
		        quoted, SLICE_ARG(name), near);
	else
		tree_error(tree, node,
		        "%s: the variable \"%.*s\" is not given: --var %.*s=VALUE, or a default "
		        "under variables:%s",
		        quoted, SLICE_ARG(name), SLICE_ARG(name), hint);
	return false;
}

/* Reads "${name}" at position from. */
static bool read_place(struct loader *l, struct tree *tree, const struct tree_node *node,
        size_t from, struct place *out)
{
	struct slice text = node->text, name;
	const char *close = memchr(text.p + from, '}', text.n - from);
	char quoted[TREE_QUOTE_MAX];

	if (close) {
		name = slice_of(text.p + from + 2, (size_t)(close - text.p) - from - 2);
		*out = (struct place){from, (size_t)(close - text.p) + 1, variables_find(l, name)};
	}
	if (!close || !variables_is_name(name)) {
		tree_error(tree, node,
		        "%s: \"${\" begins a variable, which ends in \"}\" and has a name of "
		        "letters, digits and '_'",
		        tree_quote(text, quoted));
		return false;
	}
	if (!out->variable)
		return report_unknown(l, tree, node, name);
	out->variable->used = true;
	return out->variable->value.n > 0; /* empty: reported at the variable's declaration */
}

static const char *find_variable(struct slice text, size_t from)
{
	return memmem(text.p + from, text.n - from, "${", 2);
}

/* Builds the text; check judges each value in its place and reports faults. */
static bool expand(struct loader *l, struct tree *tree, const struct tree_node *node, size_t max,
        bool (*check)(struct tree *tree, const struct tree_node *node, const struct place *place),
        struct slice *out)
{
	struct slice text = node->text;
	char quoted[TREE_QUOTE_MAX], p[POLICY_PATH_MAX];
	size_t n = 0, at = 0;
	const char *next;

	while ((next = find_variable(text, at))) {
		struct place place;
		size_t before = (size_t)(next - text.p) - at;
		struct slice value;

		if (!read_place(l, tree, node, at + before, &place) || !check(tree, node, &place))
			return false;
		value = place.variable->value;
		if (before > max - n || value.n > max - n - before)
			break;
		memcpy(p + n, text.p + at, before);
		memcpy(p + n + before, value.p, value.n);
		n += before + value.n;
		at = place.end;
	}
	if (next || text.n - at > max - n) {
		tree_error(tree, node, "%s: more than %zu bytes with its variables replaced",
		        tree_quote(text, quoted), max);
		return false;
	}
	memcpy(p + n, text.p + at, text.n - at);
	*out = arena_copy(&l->arena, slice_of(p, n + text.n - at));
	return !l->arena.failed;
}

static bool refuse(struct tree *tree, const struct tree_node *node, const struct place *place,
        const char *message)
{
	char quoted[TREE_QUOTE_MAX], value[TREE_QUOTE_MAX];

	tree_error(tree, node, "%s: \"${%.*s}\" is %s, but %s", tree_quote(node->text, quoted),
	        SLICE_ARG(place->variable->name), tree_quote(place->variable->value, value),
	        message);
	return false;
}

/* True if a border or nothing is on both sides. */
static bool stands_alone(struct slice text, const struct place *place, size_t from, char border)
{
	return (place->begin == from || text.p[place->begin - 1] == border) &&
	       (place->end == text.n || text.p[place->end] == border);
}

/* The host of a destination as written: between scheme and port. */
static struct slice host_of(struct slice text)
{
	const char *mark = memmem(text.p, text.n, "://", 3);
	struct slice host = mark ? slice_of(mark + 3, text.n - (size_t)(mark - text.p) - 3) : text;
	ptrdiff_t colon = slice_find_byte(host, ':');

	if (colon >= 0)
		host.n = (size_t)colon;
	return host;
}

static bool check_in_host(
        struct tree *tree, const struct tree_node *node, const struct place *place)
{
	struct slice text = node->text, host = host_of(text), value = place->variable->value;
	size_t from = (size_t)(host.p - text.p);
	struct place inside = {place->begin - from, place->end - from, place->variable};
	bool alone;

	if (place->begin < from || place->end > from + host.n || slice_find_byte(host, '/') >= 0 ||
	        slice_find_byte(host, '[') >= 0)
		return refuse(tree, node, place,
		        "only the host name of a destination can have variables");
	for (size_t i = 0; i < value.n; i++)
		if (!variables_is_host_byte(value.p[i]))
			return refuse(tree, node, place,
			        "in a host only letters, digits, '-', '_' and '.' can stand");
	alone = stands_alone(host, &inside, 0, '.');
	if (!alone && slice_find_byte(value, '.') >= 0)
		return refuse(
		        tree, node, place, "here it is a part of one label and can hold no \".\"");
	if (!alone && slice_find_byte(slice_of(host.p + inside.end, host.n - inside.end), '.') < 0)
		return refuse(tree, node, place, "a part of the last label can be no variable");
	return true;
}

bool variables_in_destination(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text)
{
	struct slice host;
	struct ip ip;

	*text = node->text;
	if (!find_variable(*text, 0))
		return true;
	if (!expand(l, tree, node, LOAD_DESTINATION_MAX, check_in_host, text))
		return false;
	host = host_of(*text);
	if (!ip_parse(host, &ip))
		return true;
	tree_error(tree, node,
	        "destination \"%.*s\" is an address, which cannot come from a variable: write it "
	        "out",
	        SLICE_ARG(*text));
	return false;
}

static bool check_in_path(
        struct tree *tree, const struct tree_node *node, const struct place *place)
{
	struct slice text = node->text;

	if (place->begin > 0 && stands_alone(text, place, SIZE_MAX, '/'))
		return true;
	if (slice_find_byte(place->variable->value, '/') >= 0)
		return refuse(tree, node, place,
		        "here it is a part of one segment and can hold no \"/\"");
	return true;
}

bool variables_in_path(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text)
{
	*text = node->text;
	return !find_variable(*text, 0) ||
	       expand(l, tree, node, POLICY_PATH_MAX, check_in_path, text);
}

static bool check_in_value(
        struct tree *tree, const struct tree_node *node, const struct place *place)
{
	if (slice_find_byte(place->variable->value, '*') >= 0)
		return refuse(tree, node, place, "there \"*\" would stand for anything");
	return true;
}

bool variables_in_value(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text)
{
	*text = node->text;
	return !find_variable(*text, 0) ||
	       expand(l, tree, node, POLICY_VALUE_MAX, check_in_value, text);
}
