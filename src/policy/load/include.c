/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an entry of include: is a word ("preset:NAME", or a path), or a mapping that
 * also says where credentials of that file take their values from. Such overrides are kept until
 * all credentials are loaded, since several files may include one. A credential has at most one
 * override in the whole policy; otherwise the order of files would decide whose secret is sent.
 */
#include "policy/credentials/source.h"

#define INCLUDE_TEXT_MAX 2048 /* bytes of a path */

static const char *const entry_keys[] = {"preset", "file", "credentials", NULL};
#define OF_CREDENTIAL "goes below the credential's name: credentials: {NAME: {source: ...}}"
static const struct tree_refusal entry_refused[] = {{"source", OF_CREDENTIAL},
        {"ttl", OF_CREDENTIAL}, {"timeout", OF_CREDENTIAL},
        {"variables", "are declared at the top of a policy, with their values as defaults"},
        {NULL, NULL}};
static const char *const override_keys[] = {"source", "ttl", "timeout", NULL};

#define OF_DEFINITION \
	"is set where the credential is defined; an include sets its source, ttl and timeout only"
static const struct tree_refusal override_refused[] = {{"inject", OF_DEFINITION},
        {"header", OF_DEFINITION}, {"prefix", OF_DEFINITION}, {"query", OF_DEFINITION},
        {"cookie", OF_DEFINITION}, {"require", OF_DEFINITION}, {"username", OF_DEFINITION},
        {"in", OF_DEFINITION}, {"sign", OF_DEFINITION}, {"headers", OF_DEFINITION},
        {"region", OF_DEFINITION}, {"service", OF_DEFINITION}, {"env", OF_DEFINITION},
        {NULL, NULL}};

bool policy_is_preset_name(struct slice name)
{
	bool plain = name.n > 0 && name.n <= POLICY_NAME_MAX;

	for (size_t i = 0; i < name.n; i++)
		plain = plain && ((name.p[i] >= 'a' && name.p[i] <= 'z') || name.p[i] == '-' ||
		                         (name.p[i] >= '0' && name.p[i] <= '9'));
	return plain;
}

/* Takes the name of a preset. Does not check whether the preset exists. */
static bool take_preset(struct loader *l, struct tree *tree, const struct tree_node *node,
        struct slice name, struct load_include *out)
{
	struct load_presets room;
	const struct diag_known known = {
	        load_preset_names(l, &room), "the presets are", NULL, NULL};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];

	tree_quote(name, quoted);
	out->preset = name;
	out->text = arena_printf(tree->arena, "preset:%.*s", SLICE_ARG(name));
	if (!l->reader->preset_dir)
		tree_error(tree, node, "preset %s: there is no directory of presets here", quoted);
	else if (slice_starts_with(name, SLICE("preset:")))
		tree_error(tree, node, "preset %s: write the name alone here, without \"preset:\"",
		        quoted);
	else if (!policy_is_preset_name(name))
		tree_error(tree, node,
		        "preset %s: presets are named with small letters, digits and '-'%s", quoted,
		        diag_hint(name, &known, hint));
	else
		return !tree->arena->failed;
	return false;
}

static bool take_word(struct loader *l, struct tree *tree, const struct tree_node *node,
        const char *what, struct load_include *out)
{
	char quoted[TREE_QUOTE_MAX];

	if (!tree_text(tree, node, what, INCLUDE_TEXT_MAX, &out->text))
		return false;
	out->node = node;
	if (memmem(out->text.p, out->text.n, "://", 3)) {
		tree_error(tree, node, "%s %s: write a path or preset:NAME here, not a URL", what,
		        tree_quote(out->text, quoted));
		return false;
	}
	if (!slice_starts_with(out->text, SLICE("preset:")))
		return true;
	return take_preset(l, tree, node, slice_of(out->text.p + 7, out->text.n - 7), out);
}

static bool take_map(
        struct loader *l, struct tree *tree, const struct tree_node *map, struct load_include *out)
{
	const struct tree_node *preset = tree_get(map, "preset"), *file = tree_get(map, "file");
	struct slice name;

	if (!tree_check_keys(tree, map, entry_keys, entry_refused))
		return false;
	if (!preset == !file) {
		tree_error(tree, map,
		        "an include names one file: {preset: NAME} or {file: PATH}, and what it "
		        "overrides: credentials: {NAME: {source: ...}}");
		return false;
	}
	out->credentials = tree_get(map, "credentials");
	if (file)
		return take_word(l, tree, file, "file", out);
	out->node = preset;
	return tree_text(tree, preset, "preset", POLICY_NAME_MAX + 7, &name) &&
	       take_preset(l, tree, preset, name, out);
}

bool load_include_entry(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct load_include *out)
{
	*out = (struct load_include){.node = node};
	return node->kind == TREE_MAP ? take_map(l, tree, node, out)
	                              : take_word(l, tree, node, "include", out);
}

void load_overrides_keep(struct loader *l, struct tree *tree, size_t from,
        const struct load_include *include, struct slice path)
{
	const struct tree_node *map = include->credentials;
	bool is_map;

	tree->secretive = true;
	is_map = tree_is_map(tree, map, "credentials");
	tree->secretive = false;
	if (!is_map)
		return;
	if (map->count == 0)
		tree_error(tree, map, "credentials is empty: {NAME: {source: ...}}");
	for (const struct tree_item *item = map->first; item; item = item->next) {
		struct load_override o = {
		        .from = from, .path = path, .shown = include->text, .item = item};

		if (l->overrides.n == POLICY_CREDENTIALS_MAX) {
			tree_error(tree, item->key, "more than %d credentials get another source",
			        POLICY_CREDENTIALS_MAX);
			return;
		}
		if (!vec_append(&l->overrides, &o, 1)) {
			l->arena.failed = true;
			return;
		}
	}
}

/* The credential that an override names, or NULL after a report. */
static struct model_credential *find_credential(
        struct loader *l, struct tree *tree, const struct load_override *o)
{
	const char *names[POLICY_CREDENTIALS_MAX + 1] = {NULL};
	const struct diag_known known = {names, "it has", NULL, NULL};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];
	struct model_credential *elsewhere = NULL;
	struct slice name = o->item->key->text;
	size_t n = 0;

	for (size_t i = 0; i < l->model.credential_count; i++) {
		struct model_credential *c = &l->model.credentials[i];
		bool mine = slice_equals(slice_from_string(c->mark.file), o->path);

		if (mine && slice_equals(c->c.name, name))
			return c;
		if (mine)
			names[n++] = c->c.name.p;
		else if (slice_equals(c->c.name, name))
			elsewhere = c;
	}
	tree_quote(name, quoted);
	if (elsewhere)
		tree_error(tree, o->item->key,
		        "credential %s is defined at %s:%u, not in %.*s: its source is overridden "
		        "where that file is included",
		        quoted, elsewhere->mark.file, elsewhere->mark.line, SLICE_ARG(o->shown));
	else if (n == 0)
		tree_error(tree, o->item->key, "%.*s has no credentials, so none named %s",
		        SLICE_ARG(o->shown), quoted);
	else
		tree_error(tree, o->item->key, "%.*s has no credential %s%s", SLICE_ARG(o->shown),
		        quoted, diag_hint(name, &known, hint));
	return NULL;
}

static void apply(struct loader *l, struct load_file *file, const struct load_override *o)
{
	struct model_credential *c = find_credential(l, &file->tree, o), now;

	if (!c || !tree_is_map(&file->tree, o->item->value, "what overrides a credential") ||
	        !tree_check_keys(&file->tree, o->item->value, override_keys, override_refused))
		return;
	if (c->overridden) {
		tree_error(&file->tree, o->item->key,
		        "the source of credential \"%.*s\" is already overridden at %s:%u",
		        SLICE_ARG(c->c.name), c->source.file, c->source.line);
		return;
	}
	now = *c;
	now.overridden = true;
	now.c.location = SLICE("");
	now.c.argc = 0;
	now.c.ttl_s = 0;
	load_source(&file->tree, o->item, file->path, &now);
	load_source_times(&file->tree, o->item->value, &now.c);
	if ((now.c.source == POLICY_SOURCE_SEALED) != (c->c.source == POLICY_SOURCE_SEALED))
		tree_error(&file->tree, o->item->key,
		        "credential \"%.*s\" is either of a login inside (source: sealed) or has a "
		        "value from outside: an include cannot change that",
		        SLICE_ARG(c->c.name));
	*c = now;
}

void load_overrides_apply(struct loader *l)
{
	for (size_t i = 0; i < l->overrides.n && !l->arena.failed; i++) {
		const struct load_override *o = vec_at(&l->overrides, i);
		struct load_file *file = vec_at(&l->files, o->from);

		file->tree.secretive = true;
		apply(l, file, o);
		file->tree.secretive = false;
	}
}
