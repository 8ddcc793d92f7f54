/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a credential says where its value comes from (source) and how it is put into
 * a request (inject.c). Only what this version supports is accepted. Sources and injections that a
 * later version may support get their own error text, so that nobody looks for a spelling mistake.
 * No source is read here.
 */
#include <stdio.h>

#include "policy/credentials/source.h"

#define ENV_MAX 64

static void take_placeholder(struct loader *l, struct tree *tree, const struct tree_node *map,
        struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "env");

	if (!node || !tree_text(tree, node, "env", ENV_MAX, &out->env) ||
	        !load_check_variable(tree, node, "env", out->env))
		return;
	for (size_t i = 0; i < l->model.credential_count; i++) {
		const struct model_credential *other = &l->model.credentials[i];

		if (slice_equals(other->c.env, out->env))
			tree_error(tree, node,
			        "env \"%.*s\" is already the variable of credential \"%.*s\" "
			        "(%s:%u)",
			        SLICE_ARG(out->env), SLICE_ARG(other->c.name), other->mark.file,
			        other->mark.line);
	}
}

/* A later file that defines the credential as well, or NULL. *line is set if it is found. */
static const struct load_file *defined_below(struct loader *l, const struct load_file *file,
        const struct tree_item *item, unsigned *line)
{
	for (size_t i = 0; i < l->files.n; i++) {
		const struct load_file *other = vec_at(&l->files, i);
		const struct tree_node *map = tree_get(other->tree.root, "credentials");

		if (other <= file || !map || map->kind != TREE_MAP)
			continue;
		for (const struct tree_item *at = map->first; at; at = at->next)
			if (slice_equals(at->key->text, item->key->text)) {
				*line = at->key->line;
				return other;
			}
	}
	return NULL;
}

/* Reports an item that gives only a source for a credential which an included file defines: the
 * override belongs at the include. */
static bool is_misplaced_override(
        struct loader *l, struct load_file *file, const struct tree_item *item)
{
	const struct load_file *other = NULL;
	unsigned line;

	if (!tree_get(item->value, "inject"))
		other = defined_below(l, file, item, &line);
	if (!other)
		return false;
	tree_error(&file->tree, item->key,
	        "credential \"%.*s\" is defined at %s:%u; give it another source where that file "
	        "is included: include: [{%s: %.*s, credentials: {%.*s: {source: ...}}}]",
	        SLICE_ARG(item->key->text), other->tree.file, line,
	        other->is_preset ? "preset" : "file", SLICE_ARG(other->label),
	        SLICE_ARG(item->key->text));
	return true;
}

static void take_require(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	static const char *const words[] = {"false", "true", NULL};
	const struct tree_node *node = tree_get(map, "require");

	if (node)
		out->require = tree_word(tree, node, "require", words) == 1;
}

/* Each token that a login gives has a placeholder of its own; the credential has no other. */
static void check_sealed(
        struct tree *tree, const struct tree_node *map, const struct policy_credential *credential)
{
	static const char *const keys[] = {"env", "placeholder", "placeholder-length"};
	const struct tree_node *inject = tree_get(map, "inject");

	if (credential->source != POLICY_SOURCE_SEALED)
		return;
	if (inject && credential->inject != POLICY_INJECT_PLACEHOLDER &&
	        credential->inject != POLICY_INJECT_SIGV4)
		tree_error(tree, inject,
		        "source: sealed needs inject: placeholder, because the program that has "
		        "logged in puts the token where it belongs; or inject: sigv4 for keys of "
		        "AWS");
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (tree_get(map, keys[i]))
			tree_error(tree, tree_get(map, keys[i]),
			        "%s cannot be used with source: sealed: there is nothing to show "
			        "before a login",
			        keys[i]);
}

/* A certificate has no text that a program could send in its place. */
static void check_certificate(
        struct tree *tree, const struct tree_node *map, const struct policy_credential *credential)
{
	const struct tree_node *env = tree_get(map, "env");

	if (env && credential->inject == POLICY_INJECT_CLIENT_CERTIFICATE)
		tree_error(tree, env,
		        "env does not go with inject: client-certificate: the handshake with the "
		        "upstream is not the sandbox's, so nothing inside stands for it");
}

/* Refuses require for a login at a database: a connection has one login, so it can bring no other
 * credential. */
static void check_postgres(
        struct tree *tree, const struct tree_node *map, const struct policy_credential *credential)
{
	const struct tree_node *require = tree_get(map, "require");

	if (require && credential->inject == POLICY_INJECT_POSTGRES)
		tree_error(tree, require,
		        "require does not go with inject: postgres: the user of the login is "
		        "always the one of username");
}

static void load_credential(struct loader *l, struct load_file *file, const struct tree_item *item)
{
	static const char *const known[] = {"source", "inject", "header", "prefix", "query",
	        "headers", "cookie", "username", "region", "service", "sign", "encoding",
	        "secret-encoding", "in", "realm", "repositories", "actions", "require", "env",
	        "placeholder", "placeholder-length", "ttl", "timeout", NULL};
	struct model_credential credential = {.mark = mark_of(&file->tree, item->key)};
	struct tree *tree = &file->tree;
	bool added;
	uint32_t id;

	if (!load_name(tree, item->key, "a credential's name", &credential.c.name) ||
	        !tree_is_map(tree, item->value, "a credential") ||
	        is_misplaced_override(l, file, item))
		return;
	tree_check_keys(tree, item->value, known, NULL);
	load_source(tree, item, file->path, &credential);
	load_inject(tree, item->value, &credential.c);
	take_require(tree, item->value, &credential.c);
	check_sealed(tree, item->value, &credential.c);
	check_certificate(tree, item->value, &credential.c);
	check_postgres(tree, item->value, &credential.c);
	load_source_times(tree, item->value, &credential.c);
	take_placeholder(l, tree, item->value, &credential.c);
	load_placeholder(tree, item->value, &credential.c);
	id = intern_put(&l->credential_names, credential.c.name, &added);
	if (id == UINT32_MAX)
		l->arena.failed = true;
	else if (!added)
		tree_error(tree, item->key, "credential \"%.*s\" is already defined at %s:%u",
		        SLICE_ARG(credential.c.name), l->model.credentials[id].mark.file,
		        l->model.credentials[id].mark.line);
	else
		l->model.credentials[l->model.credential_count++] = credential;
}

static void load_all(struct loader *l, struct load_file *file)
{
	const struct tree_node *map = tree_get(file->tree.root, "credentials");

	if (map && map->kind == TREE_LIST) {
		tree_error(&file->tree, map,
		        "credentials must be a mapping, not a list: the name is the key: NAME: "
		        "{source: ..., inject: ...}");
		return;
	}
	if (!map || !tree_is_map(&file->tree, map, "credentials"))
		return;
	for (const struct tree_item *item = map->first; item && !l->arena.failed;
	        item = item->next) {
		if (l->model.credential_count == POLICY_CREDENTIALS_MAX) {
			tree_error(&file->tree, item->key, "more than %d credentials",
			        POLICY_CREDENTIALS_MAX);
			return;
		}
		load_credential(l, file, item);
	}
}

void load_credentials(struct loader *l, struct load_file *file)
{
	file->tree.secretive = true;
	load_all(l, file);
	file->tree.secretive = false;
}
