/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that the caller gives and those that files declare share one table. No value may
 * contain anything that has a meaning in the language ("*", "%", "?", "#", "$", dot segments).
 * variables_expand.c checks what its place allows.
 */
#include "policy/load/variables.h"

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool variables_is_host_byte(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static bool is_value_byte(char c)
{
	return variables_is_host_byte(c) || (c != '\0' && strchr("~!&'()+,=:@/", c));
}

bool variables_is_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!is_letter(name.p[i]) &&
		        (i == 0 || !(name.p[i] == '_' || (name.p[i] >= '0' && name.p[i] <= '9'))))
			return false;
	return name.n > 0 && name.n <= POLICY_VARIABLE_NAME_MAX;
}

/* True if a part between slashes is one that no canonical path has, or is empty. */
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
	if (!variables_is_name(name))
		return "is not a variable's name: a letter, then letters, digits and '_', at most "
		       "64";
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

struct load_variable *variables_find(struct loader *l, struct slice name)
{
	for (size_t i = 0; i < l->variable_count; i++)
		if (slice_equals(l->variables[i].name, name))
			return &l->variables[i];
	return NULL;
}

const char *variables_nearest(const struct loader *l, struct slice name, bool given)
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
		if (!why && variables_find(l, v->name))
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
	struct load_variable *v = variables_find(l, name);
	char quoted[TREE_QUOTE_MAX];

	if (!variables_is_name(name)) {
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
		near = variables_nearest(l, v->name, true);
		diag_add(l->model.diags, v->mark.file, v->mark.line, v->mark.column,
		        "variable %s has no default and is not given: --var %.*s=VALUE%s%s%s",
		        tree_quote(v->name, quoted), SLICE_ARG(v->name),
		        near ? " (given is \"" : "", near ? near : "", near ? "\")" : "");
		l->wrong = true;
	}
}

void variables_note_unused(const struct loader *l, const char *path, struct diag_list *notes)
{
	const char *names[LOAD_VARIABLES_MAX + 1];
	const struct diag_known known = {names, "its variables are", NULL, NULL};
	char hint[DIAG_HINT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < l->variable_count; i++)
		if (l->variables[i].declared || l->variables[i].used)
			names[n++] = l->variables[i].name.p;
	names[n] = NULL;
	for (size_t i = 0; i < l->variable_count; i++)
		if (l->variables[i].given && !l->variables[i].used)
			diag_add(notes, path, 0, 0,
			        "variable \"%.*s\" is given, but the policy does not use it%s",
			        SLICE_ARG(l->variables[i].name),
			        diag_hint(l->variables[i].name, &known, hint));
}
