/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each reader checks one node for one type and reports at the node's position.
 * Messages go to terminals, logs and callers, so they never contain what may be a secret: not the
 * user part of a URL, and under a credential nothing that is longer or less plain than a name.
 */
#include <stdarg.h>
#include <stdio.h>

#include "policy/yaml/yaml_tree.h"

#define QUOTED_BYTES 64
#define SCHEME_BYTES 16
#define PLAIN_BYTES 16 /* bytes that a name may have in a place where a secret could stand */

static const char *const kind_names[] = {"a single value", "a list", "a mapping"};

void tree_error(struct tree *tree, const struct tree_node *node, const char *format, ...)
{
	char message[DIAG_MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	tree->wrong = true;
	diag_add(tree->diags, tree->file, node->line, node->column, "%s", message);
}

/* Finds the user part of a URL ("https://user:password@host", or without the scheme): returns its
 * length, or 0 for none; *before is the number of bytes before it. A password may have any byte in
 * it. */
static size_t find_user(struct slice s, size_t *before)
{
	const char *mark = memmem(s.p, s.n, "://", 3), *at = memrchr(s.p, '@', s.n);
	size_t n;

	*before = mark ? (size_t)(mark + 3 - s.p) : 0;
	if (!at || at < s.p + *before)
		return 0;
	n = (size_t)(at - s.p) - *before;
	if (!mark && (!memchr(s.p, ':', n) || memchr(s.p, '/', n)))
		return 0;
	return n;
}

static bool is_name_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

const char *tree_quote(struct slice s, char out[TREE_QUOTE_MAX])
{
	char text[QUOTED_BYTES + 1], scheme[SCHEME_BYTES + 1];
	size_t before, user = find_user(s, &before);

	if (user == 0) {
		slice_escape(s, text, sizeof(text));
		snprintf(out, TREE_QUOTE_MAX, "\"%s\"", text);
	} else {
		slice_escape(slice_of(s.p, before), scheme, sizeof(scheme));
		slice_escape(
		        slice_of(s.p + before + user, s.n - before - user), text, sizeof(text));
		snprintf(out, TREE_QUOTE_MAX, "\"%s...%s\"", scheme, text);
	}
	return out;
}

/* The length of the name that s begins with, or 0 if s begins with none. */
static size_t name_length(struct slice s)
{
	size_t n = 0;

	while (n < s.n && n <= PLAIN_BYTES && is_name_byte(s.p[n]))
		n++;
	return n <= PLAIN_BYTES && (n == s.n || slice_find_byte(SLICE(" :="), s.p[n]) >= 0) ? n : 0;
}

const char *tree_quote_value(const struct tree *tree, struct slice s, char out[TREE_QUOTE_MAX])
{
	size_t n;

	if (!tree->secretive)
		return tree_quote(s, out);
	n = name_length(s);
	if (n == 0)
		snprintf(out, TREE_QUOTE_MAX, "(not shown, as it may be a secret)");
	else
		snprintf(out, TREE_QUOTE_MAX, "\"%.*s%s\"", (int)n, s.p, n < s.n ? "..." : "");
	return out;
}

bool tree_is_null(const struct tree_node *node)
{
	return node->kind == TREE_SCALAR && node->plain &&
	       (node->text.n == 0 || slice_equals(node->text, SLICE("~")) ||
	               slice_equals(node->text, SLICE("null")));
}

/* "nothing", "a list" and so on, or the text itself. */
static const char *describe(
        const struct tree *tree, const struct tree_node *node, char out[TREE_QUOTE_MAX])
{
	if (tree_is_null(node))
		return "nothing";
	return node->kind == TREE_SCALAR ? tree_quote_value(tree, node->text, out)
	                                 : kind_names[node->kind];
}

struct tree_node *tree_get(const struct tree_node *map, const char *key)
{
	struct slice want = slice_from_string(key);

	if (map->kind != TREE_MAP)
		return NULL;
	for (const struct tree_item *item = map->first; item; item = item->next)
		if (slice_equals(item->key->text, want))
			return item->value;
	return NULL;
}

bool tree_is_map(struct tree *tree, const struct tree_node *node, const char *what)
{
	char quoted[TREE_QUOTE_MAX];

	if (node->kind == TREE_MAP)
		return true;
	tree_error(tree, node, "%s must be a mapping (\"key: value\" lines), not %s", what,
	        describe(tree, node, quoted));
	return false;
}

bool tree_is_list(struct tree *tree, const struct tree_node *node, const char *what)
{
	char quoted[TREE_QUOTE_MAX];

	if (node->kind == TREE_LIST)
		return true;
	if (node->kind == TREE_MAP && node->first &&
	        slice_starts_with(node->first->key->text, SLICE("-")))
		tree_error(tree, node,
		        "%s must be a list (\"- item\" lines): write a space after \"-\", which %s "
		        "lacks",
		        what, tree_quote(node->first->key->text, quoted));
	else
		tree_error(tree, node, "%s must be a list (\"- item\" lines), not %s", what,
		        describe(tree, node, quoted));
	return false;
}

static bool is_known(struct slice word, const char *const known[])
{
	for (size_t i = 0; known[i]; i++)
		if (slice_equals(word, slice_from_string(known[i])))
			return true;
	return false;
}

static const char *why_refused(struct slice word, const struct tree_refusal *refused)
{
	for (; refused && refused->key; refused++)
		if (slice_equals(word, slice_from_string(refused->key)))
			return refused->why;
	return NULL;
}

static void report_key(struct tree *tree, const struct tree_node *key, const char *const known[],
        const struct tree_refusal *refused)
{
	const struct diag_known all = {known, "known here", NULL, NULL};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];
	const char *why = why_refused(key->text, refused);
	ptrdiff_t colon = slice_find_byte(key->text, ':');
	struct slice before = slice_of(key->text.p, colon < 0 ? 0 : (size_t)colon);

	tree_quote(key->text, quoted);
	if (is_known(before, known))
		tree_error(tree, key, "unknown key %s; write a space after the colon of \"%.*s:\"",
		        quoted, SLICE_ARG(before));
	else if (why)
		tree_error(tree, key, "%s %s", quoted, why);
	else
		tree_error(tree, key, "unknown key %s%s", quoted, diag_hint(key->text, &all, hint));
}

bool tree_check_keys(struct tree *tree, const struct tree_node *map, const char *const known[],
        const struct tree_refusal *refused)
{
	bool good = true;

	for (const struct tree_item *item = map->first; item; item = item->next) {
		if (is_known(item->key->text, known))
			continue;
		good = false;
		report_key(tree, item->key, known, refused);
	}
	return good;
}

static bool has_control(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	return false;
}

bool tree_text(struct tree *tree, const struct tree_node *node, const char *what, size_t max,
        struct slice *out)
{
	char quoted[TREE_QUOTE_MAX];

	if (tree_is_null(node))
		tree_error(tree, node, "%s has no value", what);
	else if (node->kind != TREE_SCALAR)
		tree_error(tree, node, "%s must be a single value, not %s", what,
		        kind_names[node->kind]);
	else if (node->text.n == 0)
		tree_error(tree, node, "%s is empty", what);
	else if (node->text.n > max)
		tree_error(tree, node, "%s %s has %zu bytes; at most %zu are possible", what,
		        tree_quote_value(tree, node->text, quoted), node->text.n, max);
	else if (has_control(node->text))
		tree_error(tree, node, "%s %s holds a control character or a line break", what,
		        tree_quote_value(tree, node->text, quoted));
	else {
		*out = node->text;
		return true;
	}
	return false;
}

bool tree_uint(struct tree *tree, const struct tree_node *node, const char *what, uint64_t min,
        uint64_t max, uint64_t *out)
{
	char quoted[TREE_QUOTE_MAX];

	if (node->kind == TREE_SCALAR && node->text.n <= 20 && slice_to_u64(node->text, max, out) &&
	        *out >= min)
		return true;
	tree_error(tree, node, "%s must be a number from %llu to %llu, not %s", what,
	        (unsigned long long)min, (unsigned long long)max, describe(tree, node, quoted));
	return false;
}

static bool parse_duration(struct slice text, uint64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		struct slice unit = slice_from_string(units[i].unit);
		uint64_t count;

		if (!slice_ends_with(text, unit))
			continue;
		if (!slice_to_u64(slice_of(text.p, text.n - unit.n), UINT32_MAX, &count))
			continue;
		*ms = count * units[i].ms;
		return true;
	}
	return false;
}

bool tree_duration(struct tree *tree, const struct tree_node *node, const char *what,
        uint64_t min_ms, uint64_t max_ms, uint64_t *out_ms)
{
	char quoted[TREE_QUOTE_MAX];

	if (node->kind != TREE_SCALAR || !parse_duration(node->text, out_ms)) {
		tree_error(tree, node, "%s must be a duration such as 500ms, 10s, 5m or 1h, not %s",
		        what, describe(tree, node, quoted));
		return false;
	}
	if (*out_ms >= min_ms && *out_ms <= max_ms)
		return true;
	tree_error(tree, node, "%s must be from %llums to %llus, not %s", what,
	        (unsigned long long)min_ms, (unsigned long long)(max_ms / 1000),
	        describe(tree, node, quoted));
	return false;
}

static bool parse_bytes(struct slice text, uint64_t *bytes)
{
	unsigned shift = slice_ends_with(text, SLICE("KiB"))   ? 10
	                 : slice_ends_with(text, SLICE("MiB")) ? 20
	                                                       : 0;

	if (shift)
		text.n -= 3;
	if (!slice_to_u64(text, UINT32_MAX, bytes))
		return false;
	*bytes <<= shift;
	return true;
}

bool tree_bytes(struct tree *tree, const struct tree_node *node, const char *what, uint64_t min,
        uint64_t max, uint64_t *out)
{
	char quoted[TREE_QUOTE_MAX];

	if (node->kind == TREE_SCALAR && parse_bytes(node->text, out) && *out >= min && *out <= max)
		return true;
	tree_error(tree, node, "%s must be a size from %lluKiB to %lluMiB, such as 256KiB, not %s",
	        what, (unsigned long long)min >> 10, (unsigned long long)max >> 20,
	        describe(tree, node, quoted));
	return false;
}

int tree_word(struct tree *tree, const struct tree_node *node, const char *what,
        const char *const words[])
{
	char quoted[TREE_QUOTE_MAX], list[256];
	const char *nearest;

	for (int i = 0; words[i]; i++)
		if (node->kind == TREE_SCALAR &&
		        slice_equals(node->text, slice_from_string(words[i])))
			return i;
	diag_words(words, "or", list, sizeof(list));
	nearest = node->kind == TREE_SCALAR ? diag_nearest(node->text, words) : NULL;
	if (nearest)
		tree_error(tree, node, "%s must be %s, not %s; did you mean \"%s\"?", what, list,
		        describe(tree, node, quoted), nearest);
	else
		tree_error(tree, node, "%s must be %s, not %s", what, list,
		        describe(tree, node, quoted));
	return -1;
}

const struct tree_item *tree_items(
        struct tree *tree, struct tree_node *node, const char *what, struct tree_item *single)
{
	if (tree_is_null(node)) {
		tree_error(tree, node, "%s has no value", what);
		return NULL;
	}
	if (node->kind == TREE_SCALAR) {
		*single = (struct tree_item){.value = node};
		return single;
	}
	if (node->kind != TREE_LIST) {
		tree_error(
		        tree, node, "%s must be a value or a list of values, not a mapping", what);
		return NULL;
	}
	if (!node->first)
		tree_error(tree, node, "%s is an empty list", what);
	return node->first;
}
