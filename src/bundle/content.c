/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a bundle says. Each member has its type, and each text its bound. A bundle with an
 * unknown member is refused: an older gateway must not take half of what a newer command has
 * written. The JSON reader refuses keys that an object has twice.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bundle/content.h"
#include "vethguard/policy/json_find.h"

#define SHOWN_MAX 96

struct reading {
	struct signed_bundle *b;
	char *why;
};

__attribute__((format(printf, 2, 3))) static bool refuse(
        const struct reading *r, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(r->why, SIGNED_BUNDLE_WHY_MAX, format, arguments);
	va_end(arguments);
	return false;
}

/* --- names --- */

bool signed_bundle_is_policy(struct slice name)
{
	return slice_ends_with(name, SLICE(".yaml"));
}

static const char *show(struct slice text, char out[SHOWN_MAX])
{
	return slice_escape(text, out, SHOWN_MAX);
}

/* --- members --- */

/* Returns the index of what follows the member whose key has this index. */
static uint32_t behind(const struct json_tree *tree, uint32_t key)
{
	return json_at(tree, key + 1)->next;
}

static uint32_t index_of(const struct json_tree *tree, const struct json_value *value)
{
	return (uint32_t)(value - tree->values);
}

/* Checks that the value is an object with these members and no others. where ends with a space. */
static bool check_members(const struct reading *r, const struct json_value *object,
        const char *where, const char *const known[])
{
	const struct json_tree *tree = &r->b->tree;
	char shown[SHOWN_MAX];

	if (object->kind != JSON_IS_OBJECT)
		return refuse(r, "%sis not a JSON object", where);
	for (uint32_t at = index_of(tree, object) + 1; at < object->next; at = behind(tree, at)) {
		const struct slice key = json_text(tree, json_at(tree, at));
		size_t i = 0;

		while (known[i] && !slice_equals(key, slice_from_string(known[i])))
			i++;
		if (!known[i])
			return refuse(r, "%shas a member \"%s\", which this version does not know",
			        where, show(key, shown));
	}
	return true;
}

static bool read_head(struct reading *r)
{
	struct signed_bundle *b = r->b;
	const struct json_value *expires = json_tree_find(&b->tree, SLICE("expires"));
	int64_t serial;

	if (!json_tree_find(&b->tree, SLICE("name")))
		return refuse(r, "it has no name");
	if (!json_tree_string(&b->tree, SLICE("name"), &b->name) || !config_bundle_is_name(b->name))
		return refuse(r, "its name is not 1 to %d small letters, digits and '-'",
		        CONFIG_BUNDLE_NAME_MAX);
	if (!json_tree_find(&b->tree, SLICE("serial")))
		return refuse(r, "it has no serial");
	if (!json_tree_whole(&b->tree, json_tree_find(&b->tree, SLICE("serial")), &serial) ||
	        serial < 1)
		return refuse(r, "its serial is not a whole number from 1 on");
	b->serial = (uint64_t)serial;
	if (expires && (!json_tree_whole(&b->tree, expires, &b->expires_s) || b->expires_s < 1))
		return refuse(r, "expires is not a time in seconds since 1970");
	return true;
}

/* --- files --- */

static bool add_file(struct reading *r, struct slice name, const struct json_value *value)
{
	struct signed_bundle *b = r->b;
	struct signed_bundle_file *f = &b->files[b->file_count];
	char shown[SHOWN_MAX];

	if (b->file_count == SIGNED_BUNDLE_FILES_MAX)
		return refuse(r, "it has more than %d files", SIGNED_BUNDLE_FILES_MAX);
	if (!config_bundle_is_file(name))
		return refuse(r,
		        "file %s: a name has at most %d letters, digits, '-', '_' and '.', and "
		        "ends with .yaml (a policy) or .jwks (a key set)",
		        show(name, shown), CONFIG_BUNDLE_FILE_MAX);
	f->name = name;
	if (!json_tree_string_of(&b->tree, value, &f->text))
		return refuse(r, "file %s is not a string", show(name, shown));
	if (memchr(f->text.p, 0, f->text.n))
		return refuse(r, "file %s has a NUL", show(name, shown));
	b->file_count++;
	return true;
}

static bool read_files(struct reading *r)
{
	const struct json_tree *tree = &r->b->tree;
	const struct json_value *files = json_tree_find(tree, SLICE("files"));

	if (!files)
		return true;
	if (files->kind != JSON_IS_OBJECT)
		return refuse(r, "files is not a JSON object");
	for (uint32_t at = index_of(tree, files) + 1; at < files->next; at = behind(tree, at))
		if (!add_file(r, json_text(tree, json_at(tree, at)), json_at(tree, at + 1)))
			return false;
	return true;
}

/* --- revocations --- */

/* Returns how many values the array has, or -1 with why. */
static long count_items(const struct reading *r, const struct json_value *array, const char *what)
{
	const struct json_tree *tree = &r->b->tree;
	long n = 0;

	if (array->kind != JSON_IS_ARRAY) {
		refuse(r, "revoked.%s is not a list", what);
		return -1;
	}
	for (uint32_t at = index_of(tree, array) + 1; at < array->next;
	        at = json_at(tree, at)->next)
		n++;
	if (n <= SIGNED_BUNDLE_REVOKED_MAX)
		return n;
	refuse(r, "revoked.%s has more than %d entries", what, SIGNED_BUNDLE_REVOKED_MAX);
	return -1;
}

static bool take_text(const struct reading *r, const struct json_value *value, const char *what,
        size_t max, struct slice *out)
{
	if (json_tree_string_of(&r->b->tree, value, out) && out->n > 0 && out->n <= max)
		return true;
	return refuse(r, "%s is missing, or not a string of 1 to %zu bytes", what, max);
}

static bool read_sessions(struct reading *r, const struct json_value *array)
{
	struct signed_bundle *b = r->b;
	const long n = count_items(r, array, "sessions");

	if (n < 0)
		return false;
	b->sessions = calloc((size_t)n + 1, sizeof(*b->sessions));
	if (!b->sessions)
		return refuse(r, "no memory");
	for (uint32_t at = index_of(&b->tree, array) + 1; at < array->next;
	        at = json_at(&b->tree, at)->next)
		if (!take_text(r, json_at(&b->tree, at), "a name of revoked.sessions",
		            SIGNED_BUNDLE_SESSION_MAX, &b->sessions[b->session_count++]))
			return false;
	return true;
}

static bool read_token(struct reading *r, const struct json_value *value)
{
	static const char *const known[] = {"signer", "id", NULL};
	struct signed_bundle *b = r->b;
	struct signed_bundle_token *t = &b->tokens[b->token_count++];

	return check_members(r, value, "an entry of revoked.tokens ", known) &&
	       take_text(r, json_tree_member(&b->tree, value, SLICE("signer")),
	               "signer of revoked.tokens", SIGNED_BUNDLE_SIGNER_MAX, &t->signer) &&
	       take_text(r, json_tree_member(&b->tree, value, SLICE("id")), "id of revoked.tokens",
	               SIGNED_BUNDLE_ID_MAX, &t->id);
}

static bool read_tokens(struct reading *r, const struct json_value *array)
{
	struct signed_bundle *b = r->b;
	const long n = count_items(r, array, "tokens");

	if (n < 0)
		return false;
	b->tokens = calloc((size_t)n + 1, sizeof(*b->tokens));
	if (!b->tokens)
		return refuse(r, "no memory");
	for (uint32_t at = index_of(&b->tree, array) + 1; at < array->next;
	        at = json_at(&b->tree, at)->next)
		if (!read_token(r, json_at(&b->tree, at)))
			return false;
	return true;
}

static bool read_revoked(struct reading *r)
{
	static const char *const known[] = {"sessions", "tokens", NULL};
	const struct json_tree *tree = &r->b->tree;
	const struct json_value *revoked = json_tree_find(tree, SLICE("revoked")), *array;

	if (!revoked)
		return true;
	if (!check_members(r, revoked, "revoked ", known))
		return false;
	array = json_tree_member(tree, revoked, SLICE("sessions"));
	if (array && !read_sessions(r, array))
		return false;
	array = json_tree_member(tree, revoked, SLICE("tokens"));
	return !array || read_tokens(r, array);
}

/* --- all --- */

enum signed_bundle_fault bundle_content_read(
        struct signed_bundle *b, char why[SIGNED_BUNDLE_WHY_MAX])
{
	static const char *const known[] = {"name", "serial", "expires", "files", "revoked", NULL};
	struct reading r = {b, why};
	int rc = json_read(&b->tree,
	        slice_of(b->memory + SIGNED_BUNDLE_HEAD_BYTES, b->n - SIGNED_BUNDLE_HEAD_BYTES));

	if (rc) {
		refuse(&r, "its content is not JSON: %s",
		        b->tree.fault ? b->tree.fault : "no memory");
		return SIGNED_BUNDLE_CONTENT;
	}
	return check_members(&r, json_at(&b->tree, 0), "it ", known) && read_head(&r) &&
	                       read_files(&r) && read_revoked(&r)
	               ? SIGNED_BUNDLE_GOOD
	               : SIGNED_BUNDLE_CONTENT;
}

const struct signed_bundle_file *signed_bundle_find(
        const struct signed_bundle *b, struct slice name)
{
	for (size_t i = 0; i < b->file_count; i++)
		if (slice_equals(b->files[i].name, name))
			return &b->files[i];
	return NULL;
}

bool signed_bundle_has_expired(const struct signed_bundle *b, int64_t now_s)
{
	return b->expires_s && b->expires_s <= now_s;
}
