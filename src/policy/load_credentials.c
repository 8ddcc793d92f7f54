/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a credential says where its value comes from (source) and how it is put into
 * a request (inject). Only what this version can do is taken; sources and injections that a later
 * one may know are named in their refusal, so that nobody wonders about a spelling. Nothing is read
 * from a source here.
 */
#include <stdio.h>

#include "loader.h"

#define LOCATION_MAX 4096 /* bytes of a path or of one argument */
#define FIELD_MAX 64
#define ENV_MAX 64
#define USERNAME_MAX 256
#define FILE_TTL_S 60
#define EXEC_TTL_S 300
#define TTL_MAX_MS (UINT64_C(30) * 24 * 3600 * 1000)
#define TIMEOUT_DEFAULT_MS 10000
#define TIMEOUT_MIN_MS 100
#define TIMEOUT_MAX_MS 600000

static const char later[] = "is not supported by this version";

static const char *const sources[] = {"file", "env", "exec", NULL};
static const char *const later_sources[] = {"systemd", "vault", "oauth2", "github-app", NULL};
static const char *const injects[] = {"bearer", "basic", "header", "query", NULL};
static const char *const later_injects[] = {"sigv4", "client-certificate", "placeholder", NULL};

static bool is_among(struct slice word, const char *const words[])
{
	for (size_t i = 0; words[i]; i++)
		if (slice_equals(word, slice_from_string(words[i])))
			return true;
	return false;
}

static bool is_variable(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return s.n > 0;
}

static bool check_variable(
        struct tree *tree, const struct tree_node *node, const char *what, struct slice name)
{
	char quoted[TREE_QUOTE_MAX];

	if (name.n <= ENV_MAX && is_variable(name))
		return true;
	tree_error(tree, node, "%s %s is no variable's name (letters, digits and '_', at most %d)",
	        what, tree_quote_value(tree, name, quoted), ENV_MAX);
	return false;
}

static void take_file(struct tree *tree, const struct tree_node *node, struct slice path,
        struct slice policy, struct policy_credential *out)
{
	out->source = POLICY_SOURCE_FILE;
	out->ttl_s = FILE_TTL_S;
	if (path.n == 0 || path.n > LOCATION_MAX)
		tree_error(tree, node, "source file: needs a path of 1 to %d bytes", LOCATION_MAX);
	else if (path.p[0] == '~')
		tree_error(tree, node, "\"~\" is not expanded here; write the whole path");
	else if (path.p[0] == ' ')
		tree_error(tree, node,
		        "source file: no space stands behind the colon: file:PATH, all in one");
	else
		out->location = load_join(tree->arena, policy, path);
}

static void take_env(struct tree *tree, const struct tree_node *node, struct slice name,
        struct policy_credential *out)
{
	out->source = POLICY_SOURCE_ENV;
	if (check_variable(tree, node, "source env:", name))
		out->location = name;
}

static void take_exec(
        struct tree *tree, const struct tree_node *list, struct policy_credential *out)
{
	out->source = POLICY_SOURCE_EXEC;
	out->ttl_s = EXEC_TTL_S;
	if (!tree_is_list(tree, list, "exec (the program and its arguments)"))
		return;
	if (list->count == 0 || list->count > POLICY_ARGV_MAX) {
		tree_error(tree, list, "exec needs 1 to %d items: the program and its arguments",
		        POLICY_ARGV_MAX);
		return;
	}
	for (const struct tree_item *item = list->first; item; item = item->next)
		if (tree_text(tree, item->value, "an argument of exec", LOCATION_MAX,
		            &out->argv[out->argc]))
			out->argc++;
}

/* "exec:[gh, auth, token]": the bracket is a YAML list of its own, inside of a scalar. */
static void take_exec_text(struct tree *tree, const struct tree_node *node, struct slice text,
        struct policy_credential *out)
{
	struct diag_list diags = {.count = 0};
	struct tree inner = {
	        .arena = tree->arena, .diags = &diags, .file = tree->file, .secretive = true};

	if (text.n == 0 || text.p[0] != '[' || tree_parse(&inner, text.p, text.n) != 0) {
		out->source = POLICY_SOURCE_EXEC;
		tree_error(tree, node,
		        "source exec: needs a list: exec:[program, argument, ...]; there is no "
		        "shell");
		return;
	}
	for (struct tree_item *item = inner.root->first; item; item = item->next) {
		item->value->line = node->line;
		item->value->column = node->column;
	}
	inner.root->line = node->line;
	inner.root->column = node->column;
	take_exec(tree, inner.root, out);
}

/* What is near no source may be the value itself. */
static void report_source(struct tree *tree, const struct tree_node *node, struct slice kind)
{
	const char *nearest = diag_nearest(kind, sources);

	if (is_among(kind, later_sources))
		tree_error(tree, node, "source \"%.*s\" %s; use file:PATH, env:NAME or exec:[...]",
		        SLICE_ARG(kind), later);
	else if (nearest)
		tree_error(tree, node, "unknown source \"%.*s\"; did you mean \"%s\"?",
		        SLICE_ARG(kind), nearest);
	else
		tree_error(tree, node,
		        "source must say where the value is: file:PATH, env:NAME or "
		        "exec:[program, ...]; the value itself stands in no policy");
}

static void take_source_text(struct tree *tree, const struct tree_node *node, struct slice policy,
        struct policy_credential *out)
{
	struct slice text, rest;
	ptrdiff_t colon;

	if (!tree_text(tree, node, "source", LOCATION_MAX, &text))
		return;
	colon = slice_find_byte(text, ':');
	rest = colon < 0 ? SLICE("") : slice_of(text.p + colon + 1, text.n - (size_t)colon - 1);
	if (colon >= 0)
		text.n = (size_t)colon;
	if (colon >= 0 && slice_equals(text, SLICE("file")))
		take_file(tree, node, rest, policy, out);
	else if (colon >= 0 && slice_equals(text, SLICE("env")))
		take_env(tree, node, rest, out);
	else if (colon >= 0 && slice_equals(text, SLICE("exec")))
		take_exec_text(tree, node, rest, out);
	else
		report_source(tree, node, text);
}

static void take_source(struct tree *tree, const struct tree_node *node, struct slice policy,
        struct policy_credential *out)
{
	const struct tree_item *item = node->first;
	struct slice text;

	if (node->kind != TREE_MAP) {
		take_source_text(tree, node, policy, out);
		return;
	}
	if (node->count != 1) {
		tree_error(tree, node, "source needs exactly one of file, env or exec");
		return;
	}
	if (!is_among(item->key->text, sources))
		report_source(tree, item->key, item->key->text);
	else if (slice_equals(item->key->text, SLICE("exec")))
		take_exec(tree, item->value, out);
	else if (!tree_text(tree, item->value, "source", LOCATION_MAX, &text))
		return;
	else if (slice_equals(item->key->text, SLICE("file")))
		take_file(tree, item->value, text, policy, out);
	else
		take_env(tree, item->value, text, out);
}

/* Fields that frame the message or steer the connection: a credential in one of them would break
 * both. */
static bool header_is_free(struct slice name)
{
	static const char *const taken[] = {"host", "content-length", "transfer-encoding",
	        "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
	        "proxy-authorization", "proxy-connection", "content-encoding", "accept-encoding",
	        NULL};

	for (size_t i = 0; taken[i]; i++)
		if (slice_equals_ignoring_case(name, slice_from_string(taken[i])))
			return false;
	return true;
}

static void take_header(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "header"), *prefix = tree_get(map, "prefix");
	char quoted[TREE_QUOTE_MAX];

	if (!node)
		tree_error(tree, map, "inject: header needs the field's name: header: x-api-key");
	else if (!tree_text(tree, node, "header", FIELD_MAX, &out->field))
		return;
	else if (!load_is_token(out->field))
		tree_error(tree, node, "header %s is no field name",
		        tree_quote_value(tree, out->field, quoted));
	else if (!header_is_free(out->field))
		tree_error(tree, node,
		        "header \"%.*s\" steers the connection and cannot carry a credential",
		        SLICE_ARG(out->field));
	if (prefix)
		tree_text(tree, prefix, "prefix", FIELD_MAX, &out->prefix);
}

static void take_query(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "query");
	char quoted[TREE_QUOTE_MAX];

	if (!node)
		tree_error(tree, map, "inject: query needs the parameter's name: query: key");
	else if (tree_text(tree, node, "query", FIELD_MAX, &out->field) &&
	         !load_is_token(out->field))
		tree_error(tree, node, "query %s is no parameter's name",
		        tree_quote_value(tree, out->field, quoted));
}

static void take_username(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "username");
	char quoted[TREE_QUOTE_MAX];

	if (!node || !tree_text(tree, node, "username", USERNAME_MAX, &out->username))
		return;
	if (slice_find_byte(out->username, ':') >= 0)
		tree_error(tree, node, "username %s holds \":\", which ends it (RFC 7617)",
		        tree_quote_value(tree, out->username, quoted));
}

/* Keys that belong to one way of injection only. */
static void check_belonging(
        struct tree *tree, const struct tree_node *map, enum policy_inject inject)
{
	static const struct {
		const char *key;
		enum policy_inject inject;
	} keys[] = {{"header", POLICY_INJECT_HEADER}, {"prefix", POLICY_INJECT_HEADER},
	        {"query", POLICY_INJECT_QUERY}, {"username", POLICY_INJECT_BASIC}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct tree_node *node = tree_get(map, keys[i].key);

		if (node && keys[i].inject != inject)
			tree_error(tree, node, "%s goes with inject: %s, but inject is %s",
			        keys[i].key, injects[keys[i].inject], injects[inject]);
	}
}

static void take_inject(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "inject");
	int word;

	if (!node) {
		tree_error(tree, map, "inject is missing: bearer, basic, header or query");
		return;
	}
	if (node->kind == TREE_SCALAR && is_among(node->text, later_injects)) {
		tree_error(tree, node, "inject \"%.*s\" %s; use bearer, basic, header or query",
		        SLICE_ARG(node->text), later);
		return;
	}
	word = tree_word(tree, node, "inject", injects);
	if (word < 0)
		return;
	out->inject = (enum policy_inject)word;
	check_belonging(tree, map, out->inject);
	if (out->inject == POLICY_INJECT_HEADER)
		take_header(tree, map, out);
	else if (out->inject == POLICY_INJECT_QUERY)
		take_query(tree, map, out);
	else if (out->inject == POLICY_INJECT_BASIC)
		take_username(tree, map, out);
}

static void take_times(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *ttl = tree_get(map, "ttl"), *timeout = tree_get(map, "timeout");
	uint64_t ms;

	if (ttl && tree_duration(tree, ttl, "ttl", 0, TTL_MAX_MS, &ms)) {
		if (ms % 1000 != 0)
			tree_error(tree, ttl,
			        "ttl counts whole seconds (0s: the value is kept for the whole "
			        "run)");
		out->ttl_s = (uint32_t)(ms / 1000);
	}
	out->timeout_ms = TIMEOUT_DEFAULT_MS;
	if (!timeout)
		return;
	if (out->source != POLICY_SOURCE_EXEC)
		tree_error(tree, timeout, "timeout goes with source exec: only");
	else if (tree_duration(tree, timeout, "timeout", TIMEOUT_MIN_MS, TIMEOUT_MAX_MS, &ms))
		out->timeout_ms = (uint32_t)ms;
}

static void take_placeholder(struct loader *l, struct tree *tree, const struct tree_node *map,
        struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "env");

	if (!node || !tree_text(tree, node, "env", ENV_MAX, &out->env) ||
	        !check_variable(tree, node, "env", out->env))
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

static void load_credential(struct loader *l, struct load_file *file, const struct tree_item *item)
{
	static const char *const known[] = {"source", "inject", "header", "prefix", "query",
	        "username", "env", "placeholder", "placeholder-length", "ttl", "timeout", NULL};
	struct model_credential credential = {.mark = mark_of(&file->tree, item->key)};
	struct tree *tree = &file->tree;
	const struct tree_node *source;
	bool added;
	uint32_t id;

	if (!load_name(tree, item->key, "a credential's name", &credential.c.name) ||
	        !tree_is_map(tree, item->value, "a credential"))
		return;
	tree_check_keys(tree, item->value, known, NULL);
	source = tree_get(item->value, "source");
	if (source) {
		credential.source = mark_of(tree, source);
		take_source(tree, source, file->path, &credential.c);
	} else {
		tree_error(tree, item->key,
		        "source is missing: file:PATH, env:NAME or exec:[program, ...]");
	}
	take_inject(tree, item->value, &credential.c);
	take_times(tree, item->value, &credential.c);
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
