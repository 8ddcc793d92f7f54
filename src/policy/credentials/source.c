/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: reads where a credential's value comes from and how long it may be used. The
 * credential's definition says it; a file that includes that file may give another source. No
 * source is read here.
 */
#include "policy/credentials/source.h"

#define LOCATION_MAX 4096 /* bytes of a path or of one argument */
#define VARIABLE_MAX 64
#define FILE_TTL_S 60
#define SYSTEMD_NAME_MAX 255
#define EXEC_TTL_S 300
#define TTL_MAX_MS (UINT64_C(30) * 24 * 3600 * 1000)
#define TIMEOUT_DEFAULT_MS 10000
#define TIMEOUT_MIN_MS 100
#define TIMEOUT_MAX_MS 600000

static const char *const sources[] = {"file", "env", "exec", "systemd", "vault", "oauth2",
        "token-exchange", "github-app", "gcp-service-account", "1password-connect",
        "gcp-secretmanager", "azure-keyvault", "aws-secretsmanager", "aws-ssm", "aws-role",
        "sealed", NULL};
/* Words near these are slips. "value" is near "vault", and means that somebody wrote the value
 * itself. */
static const char *const slips[] = {"file", "env", "exec", "systemd", "oauth2", "token-exchange",
        "github-app", "gcp-service-account", "1password-connect", "gcp-secretmanager",
        "azure-keyvault", "aws-secretsmanager", "aws-ssm", "aws-role", "sealed", NULL};

bool load_is_among(struct slice word, const char *const words[])
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

bool load_check_variable(
        struct tree *tree, const struct tree_node *node, const char *what, struct slice name)
{
	char quoted[TREE_QUOTE_MAX];

	if (name.n <= VARIABLE_MAX && is_variable(name))
		return true;
	tree_error(tree, node,
	        "%s %s is not a variable's name (letters, digits and '_', at most %d)", what,
	        tree_quote_value(tree, name, quoted), VARIABLE_MAX);
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
		tree_error(
		        tree, node, "source file: write file:PATH without a space after the colon");
	else
		out->location = load_join(tree->arena, policy, path);
}

static void take_env(struct tree *tree, const struct tree_node *node, struct slice name,
        struct policy_credential *out)
{
	out->source = POLICY_SOURCE_ENV;
	if (load_check_variable(tree, node, "source env:", name))
		out->location = name;
}

/* Takes a file name in the directory that systemd fills from LoadCredential= and the like. */
static void take_systemd(struct tree *tree, const struct tree_node *node, struct slice name,
        struct policy_credential *out)
{
	bool good = name.n > 0 && name.n <= SYSTEMD_NAME_MAX && name.p[0] != '.';

	out->source = POLICY_SOURCE_SYSTEMD;
	out->ttl_s = FILE_TTL_S;
	for (size_t i = 0; i < name.n; i++)
		good = good && (load_is_token(slice_of(name.p + i, 1)) && name.p[i] != '%');
	if (good)
		out->location = name;
	else
		tree_error(tree, node,
		        "source systemd: needs the name of a credential of vethguardd's unit "
		        "(LoadCredential=NAME:...), at most %d letters, digits, '.', '_' and '-'",
		        SYSTEMD_NAME_MAX);
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

/* Reads "exec:[gh, auth, token]": the brackets are a YAML list inside of a scalar. */
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

/* Quotes kind only if it is like a source's name, because it may be the value itself. */
static void report_source(struct tree *tree, const struct tree_node *node, struct slice kind)
{
	const struct diag_known known = {sources, "known here", NULL, NULL};
	char hint[DIAG_HINT_MAX];

	if (slice_equals(kind, SLICE("sealed")))
		tree_error(tree, node,
		        "source: sealed stands alone: what logins inside the sandbox get is the "
		        "value");
	else if (diag_nearest(kind, slips))
		tree_error(tree, node, "unknown source \"%.*s\"%s", SLICE_ARG(kind),
		        diag_hint(kind, &known, hint));
	else
		tree_error(tree, node,
		        "source must say where the value is: file:PATH, env:NAME or "
		        "exec:[program, ...]; %s",
		        slice_starts_with(kind, SLICE("/")) ? "a file is written file:/PATH"
		        : slice_starts_with(kind, SLICE("$"))
		                ? "a variable is written env:NAME"
		                : "a policy never holds the value itself");
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
	if (slice_equals(text, SLICE("sealed")) && colon < 0)
		out->source = POLICY_SOURCE_SEALED;
	else if (load_is_fetched(text))
		tree_error(tree, node,
		        "source %.*s needs a mapping: source: {%.*s: {...}}, with the keys of "
		        "docs/credentials.md",
		        SLICE_ARG(text), SLICE_ARG(text));
	else if (colon >= 0 && slice_equals(text, SLICE("file")))
		take_file(tree, node, rest, policy, out);
	else if (colon >= 0 && slice_equals(text, SLICE("env")))
		take_env(tree, node, rest, out);
	else if (colon >= 0 && slice_equals(text, SLICE("systemd")))
		take_systemd(tree, node, rest, out);
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
		tree_error(tree, node,
		        "source needs exactly one of file, env, exec and the services of "
		        "docs/credentials.md");
		return;
	}
	if (!load_is_among(item->key->text, sources) ||
	        slice_equals(item->key->text, SLICE("sealed")))
		report_source(tree, item->key, item->key->text);
	else if (slice_equals(item->key->text, SLICE("exec")))
		take_exec(tree, item->value, out);
	else if (load_is_fetched(item->key->text))
		load_fetch(tree, item, policy, out);
	else if (!tree_text(tree, item->value, "source", LOCATION_MAX, &text))
		return;
	else if (slice_equals(item->key->text, SLICE("systemd")))
		take_systemd(tree, item->value, text, out);
	else if (slice_equals(item->key->text, SLICE("file")))
		take_file(tree, item->value, text, policy, out);
	else
		take_env(tree, item->value, text, out);
}

void load_source_value(struct tree *tree, const struct tree_node *node, struct slice policy,
        struct policy_credential *out)
{
	take_source(tree, node, policy, out);
}

void load_source(struct tree *tree, const struct tree_item *item, struct slice policy,
        struct model_credential *out)
{
	const struct tree_node *source = tree_get(item->value, "source");

	if (!source) {
		tree_error(tree, item->key,
		        "source is missing: file:PATH, env:NAME or exec:[program, ...]");
		return;
	}
	out->source = mark_of(tree, source);
	take_source(tree, source, policy, &out->c);
}

void load_source_times(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *ttl = tree_get(map, "ttl"), *timeout = tree_get(map, "timeout");
	uint64_t ms;

	if (ttl && out->source == POLICY_SOURCE_SEALED)
		tree_error(tree, ttl,
		        "ttl cannot be used with source: sealed: tokens are kept until the sandbox "
		        "ends");
	else if (ttl && tree_duration(tree, ttl, "ttl", 0, TTL_MAX_MS, &ms)) {
		if (ms % 1000 != 0)
			tree_error(tree, ttl,
			        "ttl counts whole seconds (0s: the value is kept for the whole "
			        "run)");
		out->ttl_s = (uint32_t)(ms / 1000);
	}
	out->timeout_ms = TIMEOUT_DEFAULT_MS;
	if (!timeout)
		return;
	if (out->source != POLICY_SOURCE_EXEC && out->source != POLICY_SOURCE_FETCH)
		tree_error(tree, timeout,
		        "timeout is for exec and services (vault, oauth2, ...) only");
	else if (tree_duration(tree, timeout, "timeout", TIMEOUT_MIN_MS, TIMEOUT_MAX_MS, &ms))
		out->timeout_ms = (uint32_t)ms;
}
