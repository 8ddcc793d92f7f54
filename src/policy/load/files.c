/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a file is read and parsed, its top level is checked, then its includes are
 * loaded depth first, each file once. The chain of includes that leads to a file lies on the stack;
 * it reveals cycles and bounds the depth.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "policy/load/loader.h"

static const char *const main_keys[] = {"vethguard", "name", "include", "credentials", "groups",
        "allow", "ask", "deny", "mode", "inspect", "on_leak", "dlp", "variables", "expose",
        "limits", "budget", "internal", NULL};
#define OF_CONFIG "belongs in the configuration (vethguard.yaml), not into a policy"
#define OF_FLOOR "belongs in the floor (floor.yaml), not into a policy"

static const struct tree_refusal main_refused[] = {{"infrastructure", OF_FLOOR},
        {"defaults", OF_FLOOR},
        {"default", "does not exist: what no rule allows is refused, and that cannot be changed"},
        {"rules", "does not exist: write rules under allow: and deny:"},
        {"version", "does not exist: the version of the language is written \"vethguard: 1\""},
        {"<<", "does not exist: keys of another mapping are not merged into this one; write them "
               "out"},
        {"resolver", OF_CONFIG}, {"ca_files", OF_CONFIG}, {"permit", OF_CONFIG},
        {"pools", OF_CONFIG}, {"proxy_port", OF_CONFIG}, {"egress", OF_CONFIG},
        {"audit_file", OF_CONFIG}, {"watch", OF_CONFIG}, {"timeouts", OF_CONFIG}, {NULL, NULL}};

/* A file and the file that includes it, for messages. parent is NULL for the main file. */
struct include {
	const struct include *parent;
	struct slice path;
	unsigned depth;
};

static int load_files(struct loader *l, const struct include *chain, const struct tree *from,
        const struct load_include *include, const char *shown);

static void report_missing_preset(struct loader *l, const struct tree *from,
        const struct tree_node *at, const struct load_include *include)
{
	struct load_presets room;
	const struct diag_known known = {
	        load_preset_names(l, &room), "the presets are", "preset:", NULL};
	char hint[DIAG_HINT_MAX];

	if (load_comes_with_preset(include->preset))
		diag_add(l->model.diags, from->file, at->line, at->column,
		        "%.*s is not in the directory of presets, %s", SLICE_ARG(include->text),
		        l->reader->preset_dir);
	else
		diag_add(l->model.diags, from->file, at->line, at->column, "there is no %.*s%s",
		        SLICE_ARG(include->text), diag_hint(include->preset, &known, hint));
}

/* Handles "pypi", "pypi.yaml" or "pipy" written instead of "preset:pypi". */
static void report_missing_file(struct loader *l, const struct tree *from,
        const struct tree_node *at, const struct load_include *include, struct slice path)
{
	struct load_presets room;
	struct slice word = include->text;
	const char *nearest;

	if (slice_ends_with(word, SLICE(".yaml")))
		word.n -= strlen(".yaml");
	nearest = diag_nearest(word, load_preset_names(l, &room));
	if (nearest)
		diag_add(l->model.diags, from->file, at->line, at->column,
		        "there is no file %.*s; did you mean \"preset:%s\"?",
		        SLICE_ARG(include->text), nearest);
	else
		diag_add(l->model.diags, from->file, at->line, at->column,
		        "there is no file %.*s (looked for as %.*s)", SLICE_ARG(include->text),
		        SLICE_ARG(path));
}

static void report_read(struct loader *l, const struct include *chain, const struct tree *from,
        const struct load_include *include, const char *shown, int rc)
{
	const char *why = rc == -EFBIG    ? "the file is too large"
	                  : rc == -EINVAL ? "not a regular file"
	                                  : strerror(-rc);

	l->wrong = true;
	if (!include)
		diag_add(l->model.diags, shown, 0, 0, "cannot read the policy: %s", why);
	else if (rc == -ENOENT && include->preset.n > 0)
		report_missing_preset(l, from, include->node, include);
	else if (rc == -ENOENT)
		report_missing_file(l, from, include->node, include, chain->path);
	else
		diag_add(l->model.diags, from->file, include->node->line, include->node->column,
		        "cannot read %s: %s", shown, why);
}

static int include_one(struct loader *l, const struct include *chain, struct tree *tree,
        size_t index, const struct tree_node *node)
{
	struct include next = {chain, {0}, chain->depth + 1};
	char quoted[TREE_QUOTE_MAX];
	struct load_include include;
	int rc;

	if (!load_include_entry(l, tree, node, &include))
		return 0;
	if (include.preset.n > 0)
		next.path = arena_printf(&l->arena, "%s/%.*s.yaml", l->reader->preset_dir,
		        SLICE_ARG(include.preset));
	else
		next.path = load_join(&l->arena, chain->path, include.text);
	for (const struct include *up = chain; up; up = up->parent)
		if (slice_equals(up->path, next.path)) {
			tree_error(tree, include.node, "include %s: the file includes itself%s",
			        tree_quote(include.text, quoted),
			        up == chain ? "" : " through others");
			return 0;
		}
	if (next.depth > POLICY_INCLUDE_DEPTH_MAX) {
		tree_error(tree, include.node, "include %s: files are nested more than %d deep",
		        tree_quote(include.text, quoted), POLICY_INCLUDE_DEPTH_MAX);
		return 0;
	}
	rc = load_files(l, &next, tree, &include, include.text.p);
	if (include.credentials)
		load_overrides_keep(l, tree, index, &include, next.path);
	return rc;
}

void load_check_version(struct tree *tree)
{
	const struct tree_node *version = tree_get(tree->root, "vethguard");
	char quoted[TREE_QUOTE_MAX];

	if (!version)
		tree_error(tree, tree->root,
		        "the language version is missing; begin with \"vethguard: 1\"");
	else if (version->kind != TREE_SCALAR || !slice_equals(version->text, SLICE("1")))
		tree_error(tree, version, "language version %s is not known; this program knows 1",
		        version->kind == TREE_SCALAR ? tree_quote(version->text, quoted)
		                                     : "of this kind");
}

static void refuse_main_only(struct tree *tree)
{
	static const char *const keys[] = {
	        "inspect", "mode", "on_leak", "dlp", "limits", "budget", "internal"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct tree_node *node = tree_get(tree->root, keys[i]);

		if (node)
			tree_error(tree, node,
			        "%s belongs in the main file, not into one that is included",
			        keys[i]);
	}
}

/* Checks the top level of a file and loads its includes. */
static int read_top(struct loader *l, size_t index, const struct include *chain)
{
	struct load_file *file = vec_at(&l->files, index);
	struct tree tree = file->tree;
	struct tree_node *include;
	struct tree_item single;
	int rc = 0;

	if (!tree_is_map(&tree, tree.root, "a policy"))
		goto out;
	tree_check_keys(&tree, tree.root, main_keys, main_refused);
	load_check_version(&tree);
	if (chain->parent)
		refuse_main_only(&tree);
	include = tree_get(tree.root, "include");
	if (include && include->kind == TREE_MAP)
		rc = include_one(l, chain, &tree, index, include);
	else if (include)
		for (const struct tree_item *item = tree_items(&tree, include, "include", &single);
		        item && rc == 0; item = item->next)
			rc = include_one(l, chain, &tree, index, item->value);
out:
	file = vec_at(&l->files, index);
	file->tree.wrong = tree.wrong;
	return rc;
}

static int parse_file(struct loader *l, struct slice path, const struct load_include *include,
        const char *shown, const char *text, size_t n)
{
	struct load_file file = {.path = path, .is_preset = include && include->preset.n > 0};
	int rc;

	if (include)
		file.label =
		        arena_copy(&l->arena, file.is_preset ? include->preset : include->text);
	/* Only rules of the floor's file may be named floor:... or infrastructure:... */
	if (slice_equals(file.label, SLICE("floor")) ||
	        slice_equals(file.label, SLICE("infrastructure")))
		file.label = arena_printf(&l->arena, "./%.*s", SLICE_ARG(file.label));
	file.tree.arena = &l->arena;
	file.tree.diags = l->model.diags;
	file.tree.file = arena_copy(&l->arena, slice_from_string(shown)).p;
	rc = tree_parse(&file.tree, text, n);
	if (rc == 0 && !vec_append(&l->files, &file, 1))
		rc = -ENOMEM;
	return rc;
}

/* Returns true from the second call for a path on: a file that two others include is read once. */
static bool is_loaded(struct loader *l, struct slice path)
{
	bool added;

	if (intern_put(&l->paths, path, &added) == UINT32_MAX)
		l->arena.failed = true;
	return !added;
}

/* Notes who else can write the file. This is not a fault: on some file systems everybody can write
 * everything, and a restarted daemon would cut a sandbox off because of permissions that may have
 * been so for years. */
static void note_writers(struct loader *l, const struct include *chain, const char *shown)
{
	const struct policy_writers *writers = NULL;
	char text[POLICY_WRITERS_TEXT_MAX];

	if (l->options && l->options->notes && l->reader->writers &&
	        !(chain->parent && slice_starts_with(slice_from_string(shown), SLICE("preset:"))))
		writers = l->reader->writers(l->reader->context);
	if (writers)
		diag_add(l->options->notes, chain->parent ? chain->path.p : shown, 0, 0, "%s",
		        policy_writers_text(writers, text));
}

/* Reads the file of chain and everything it includes. include: the entry that names the file, in
 * the file from; NULL for the main file. Returns 0 or -ENOMEM; faults are reported. */
static int load_files(struct loader *l, const struct include *chain, const struct tree *from,
        const struct load_include *include, const char *shown)
{
	char *text = NULL;
	size_t n = 0;
	int rc;

	if (l->arena.failed)
		return -ENOMEM;
	if (is_loaded(l, chain->path))
		return 0;
	if (include && l->paths.keys.n > POLICY_INCLUDE_FILES_MAX) {
		diag_add(l->model.diags, from->file, include->node->line, include->node->column,
		        "more than %d files in one policy", POLICY_INCLUDE_FILES_MAX);
		l->wrong = true;
		return 0;
	}
	if (l->options && l->options->each_file)
		l->options->each_file(l->options->each_file_context, chain->path.p);
	rc = l->reader->read(l->reader->context, chain->path.p, &text, &n);
	if (rc == -ENOMEM)
		return rc;
	if (rc != 0) {
		report_read(l, chain, from, include, shown, rc);
		return 0;
	}
	note_writers(l, chain, shown);
	if (include)
		shown = chain->path.p;
	rc = parse_file(l, chain->path, include, shown, text, n);
	free(text);
	if (rc == -EINVAL) {
		l->wrong = true;
		return 0;
	}
	return rc ? rc : read_top(l, l->files.n - 1, chain);
}

/* Parses a policy that the caller holds in memory. Its rules have no label. */
static int load_more(struct loader *l, const struct include *top, const struct policy_more *more)
{
	struct include chain = {top, slice_from_string(more->name), 1};
	int rc = parse_file(l, chain.path, NULL, more->name, more->text.p, more->text.n);

	if (rc == -EINVAL) {
		l->wrong = true;
		return 0;
	}
	return rc ? rc : read_top(l, l->files.n - 1, &chain);
}

int load_all_files(struct loader *l, const char *path)
{
	struct include top = {.path = load_absolute(&l->arena, path)};
	int rc = load_files(l, &top, NULL, NULL, path);

	for (size_t i = 0; rc == 0 && l->options && l->files.n && i < l->options->more_count; i++)
		rc = load_more(l, &top, &l->options->more[i]);
	return rc;
}
