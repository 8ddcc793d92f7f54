/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the values that the caller gives and those that the files declare are one
 * table. A text is put together from left to right; a value is never looked at again, so that it
 * cannot bring a variable of its own. What a value may hold is decided twice: once for values as
 * such, which leaves nothing that has a meaning to the language ("*", "%", "?", "#", "$", dot
 * segments), and once for the place, by what stands on both sides of the variable in the text as it
 * was written: only between two borders (dots of a host, slashes of a path) may the value have
 * borders of its own. So a value cannot move what was written before or behind it.
 */
#include <stdio.h>

#include "variables.h"

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_host_byte(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static bool is_value_byte(char c)
{
	return is_host_byte(c) || (c != '\0' && strchr("~!&'()+,=:@/", c));
}

static bool is_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!is_letter(name.p[i]) &&
		        (i == 0 || !(name.p[i] == '_' || (name.p[i] >= '0' && name.p[i] <= '9'))))
			return false;
	return name.n > 0 && name.n <= POLICY_VARIABLE_NAME_MAX;
}

/* A part between slashes that no canonical path has, or that would not be seen. */
static bool has_bad_segment(struct slice value)
{
	for (size_t at = 0; at <= value.n;) {
		const char *slash = memchr(value.p + at, '/', value.n - at);
		size_t end = slash ? (size_t)(slash - value.p) : value.n;
		struct slice segment = slice_of(value.p + at, end - at);

		if (segment.n == 0 || slice_equals(segment, SLICE(".")) ||
		        slice_equals(segment, SLICE("..")))
			return true;
		at = end + 1;
	}
	return false;
}

const char *policy_variable_objection(struct slice name, struct slice value)
{
	if (!is_name(name))
		return "is no variable's name: a letter, then letters, digits and '_', at most 64";
	if (value.n == 0)
		return "has no value";
	if (value.n > POLICY_VARIABLE_VALUE_MAX)
		return "has a value of more than 256 bytes";
	for (size_t i = 0; i < value.n; i++)
		if (!is_value_byte(value.p[i]))
			return "has a value with more than letters, digits and -._~!&'()+,=:@/";
	if (has_bad_segment(value))
		return "has a value with an empty part, \".\" or \"..\" between slashes";
	return NULL;
}

bool policy_variable_split(struct slice text, struct policy_variable *out)
{
	ptrdiff_t at = slice_find_byte(text, '=');

	if (at < 0)
		return false;
	out->name = slice_of(text.p, (size_t)at);
	out->value = slice_of(text.p + at + 1, text.n - (size_t)at - 1);
	return true;
}

static struct load_variable *find(struct loader *l, struct slice name)
{
	for (size_t i = 0; i < l->variable_count; i++)
		if (slice_equals(l->variables[i].name, name))
			return &l->variables[i];
	return NULL;
}

/* The name that was probably meant: one that has a value, or that is asked for. */
static const char *nearest(const struct loader *l, struct slice name, bool given)
{
	const char *names[LOAD_VARIABLES_MAX + 1] = {NULL};
	size_t n = 0;

	for (size_t i = 0; i < l->variable_count; i++)
		if (!given || (l->variables[i].given && !l->variables[i].declared))
			if (!slice_equals(l->variables[i].name, name))
				names[n++] = l->variables[i].name.p;
	return diag_nearest(name, names);
}

void variables_give(struct loader *l, const struct policy_load_options *options, const char *path)
{
	size_t count = options ? options->variable_count : 0;
	char quoted[TREE_QUOTE_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct policy_variable *v = &options->variables[i];
		const char *why = policy_variable_objection(v->name, v->value);

		if (!why && i >= POLICY_VARIABLES_MAX)
			why = "is one too many: at most 64 are given at once";
		if (!why && find(l, v->name))
			why = "is given twice";
		if (why) {
			diag_add(l->model.diags, path, 0, 0, "variable %s %s",
			        tree_quote(v->name, quoted), why);
			l->wrong = true;
			continue;
		}
		l->variables[l->variable_count++] = (struct load_variable){
		        .name = arena_copy(&l->arena, v->name),
		        .value = arena_copy(&l->arena, v->value),
		        .given = true,
		};
	}
}

static void take_default(struct tree *tree, const struct tree_node *map, struct slice name,
        struct load_variable *out)
{
	static const char *const known[] = {"default", NULL};
	const struct tree_node *node;
	char quoted[TREE_QUOTE_MAX];
	struct slice value;
	const char *why;

	if (!tree_is_map(tree, map, "a variable ({default: VALUE}, or {})"))
		return;
	tree_check_keys(tree, map, known, NULL);
	node = tree_get(map, "default");
	if (!node || !tree_text(tree, node, "default", POLICY_VARIABLE_VALUE_MAX, &value))
		return;
	why = policy_variable_objection(name, value);
	if (why)
		tree_error(tree, node, "variable %s %s", tree_quote(name, quoted), why);
	else if (!out->given)
		out->value = value;
}

static void declare(struct loader *l, struct tree *tree, const struct tree_item *item)
{
	struct slice name = item->key->text;
	struct load_variable *v = find(l, name);
	char quoted[TREE_QUOTE_MAX];

	if (!is_name(name)) {
		tree_error(tree, item->key, "%s %s", tree_quote(name, quoted),
		        policy_variable_objection(name, SLICE("-")));
		return;
	}
	if (v && v->declared) {
		tree_error(tree, item->key, "variable %s is already declared at %s:%u",
		        tree_quote(name, quoted), v->mark.file, v->mark.line);
		return;
	}
	if (!v && l->variable_count == LOAD_VARIABLES_MAX) {
		tree_error(tree, item->key, "more than %d variables", LOAD_VARIABLES_MAX);
		return;
	}
	if (!v) {
		v = &l->variables[l->variable_count++];
		*v = (struct load_variable){.name = name};
	}
	v->declared = true;
	v->mark = mark_of(tree, item->key);
	take_default(tree, item->value, name, v);
}

void variables_declare(struct loader *l, struct load_file *file)
{
	const struct tree_node *map = tree_get(file->tree.root, "variables");

	if (!map || !tree_is_map(&file->tree, map, "variables"))
		return;
	if (map->count > POLICY_VARIABLES_MAX) {
		tree_error(&file->tree, map, "more than %d variables in one file",
		        POLICY_VARIABLES_MAX);
		return;
	}
	for (const struct tree_item *item = map->first; item; item = item->next)
		declare(l, &file->tree, item);
}

void variables_check(struct loader *l)
{
	char quoted[TREE_QUOTE_MAX];

	for (size_t i = 0; i < l->variable_count; i++) {
		const struct load_variable *v = &l->variables[i];
		const char *near;

		if (v->value.n > 0)
			continue;
		near = nearest(l, v->name, true);
		diag_add(l->model.diags, v->mark.file, v->mark.line, v->mark.column,
		        "variable %s has no default and is not given: --var %.*s=VALUE%s%s%s",
		        tree_quote(v->name, quoted), SLICE_ARG(v->name),
		        near ? " (given is \"" : "", near ? near : "", near ? "\")" : "");
		l->wrong = true;
	}
}

void variables_note_unused(const struct loader *l, const char *path, struct diag_list *notes)
{
	for (size_t i = 0; i < l->variable_count; i++)
		if (l->variables[i].given && !l->variables[i].used)
			diag_add(notes, path, 0, 0,
			        "variable \"%.*s\" is given, but the policy does not use it",
			        SLICE_ARG(l->variables[i].name));
}

/* Where a variable stands in a text as it was written. */
struct place {
	size_t begin, end; /* of "${name}" */
	struct load_variable *variable;
};

static bool report_unknown(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice name)
{
	const char *near = nearest(l, name, false);
	char quoted[TREE_QUOTE_MAX];

	tree_quote(node->text, quoted);
	if (near && find(l, slice_from_string(near))->declared)
		tree_error(tree, node, "%s: there is no variable \"%.*s\"; did you mean \"${%s}\"?",
		        quoted, SLICE_ARG(name), near);
	else if (near)
		tree_error(tree, node, "%s: the variable \"%.*s\" is not given; given is \"%s\"",
		        quoted, SLICE_ARG(name), near);
	else
		tree_error(tree, node,
		        "%s: the variable \"%.*s\" is not given: --var %.*s=VALUE, or a default "
		        "under variables:",
		        quoted, SLICE_ARG(name), SLICE_ARG(name));
	return false;
}

/* Reads "${name}" at from. */
static bool read_place(struct loader *l, struct tree *tree, const struct tree_node *node,
        size_t from, struct place *out)
{
	struct slice text = node->text, name;
	const char *close = memchr(text.p + from, '}', text.n - from);
	char quoted[TREE_QUOTE_MAX];

	if (close) {
		name = slice_of(text.p + from + 2, (size_t)(close - text.p) - from - 2);
		*out = (struct place){from, (size_t)(close - text.p) + 1, find(l, name)};
	}
	if (!close || !is_name(name)) {
		tree_error(tree, node,
		        "%s: \"${\" begins a variable, which ends in \"}\" and has a name of "
		        "letters, digits and '_'",
		        tree_quote(text, quoted));
		return false;
	}
	if (!out->variable)
		return report_unknown(l, tree, node, name);
	out->variable->used = true;
	return out->variable->value.n > 0; /* none: reported at its declaration */
}

static const char *find_variable(struct slice text, size_t from)
{
	return memmem(text.p + from, text.n - from, "${", 2);
}

/* Puts the text together; check judges each value in its place, with a report. */
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

/* True where border or nothing stands on both sides. */
static bool stands_alone(struct slice text, const struct place *place, size_t from, char border)
{
	return (place->begin == from || text.p[place->begin - 1] == border) &&
	       (place->end == text.n || text.p[place->end] == border);
}

/* The host of a destination as written: behind the scheme, before the port. */
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
		return refuse(
		        tree, node, place, "of a destination only a host name can have variables");
	for (size_t i = 0; i < value.n; i++)
		if (!is_host_byte(value.p[i]))
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
	        "destination \"%.*s\" is an address, which no variable can make: write it out",
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
