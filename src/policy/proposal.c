/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each part is checked against a short alphabet in which nothing has a meaning
 * for YAML, for variables of policies or for terminals. So the rule can be written as text and
 * loaded like any other, and the loader judges it again.
 */
#include "vethguard/policy/proposal.h"

#include <errno.h>
#include <stdio.h>

#include "vethguard/base/buf.h"
#include "vethguard/policy/expose.h"
#include "vethguard/policy/json_find.h"
#include "vethguard/policy/method.h"
#include "vethguard/policy/url.h"

static const char bad_to[] =
        "\"to\" has to be https://HOST, http://HOST or one of them with a port; HOST is a name, or "
        "*.NAME for the names below it; an address, vethguard itself and other sandboxes cannot be "
        "proposed";
static const char bad_methods[] =
        "\"methods\" has to list 1 to 8 methods in capital letters, without CONNECT and TRACE";
static const char bad_paths[] =
        "\"paths\" has to list 1 to 8 path patterns such as /v1/items/*, each of at most 256 bytes "
        "and without spaces, quotes, backslashes, '$', '{', '?' and '#'";
static const char bad_reason[] =
        "\"reason\" has to be a text of 1 to 500 bytes without control characters";
static const char bad_members[] =
        "the body has to be an object with \"to\", \"methods\", \"paths\" and \"reason\" and "
        "nothing else";

static bool is_text(const struct json_tree *tree, const struct json_value *value, struct slice *out)
{
	return value && json_tree_string_of(tree, value, out);
}

/* True for a host that a proposal may name: a name, perhaps with "*." before it. */
static bool host_is_fine(struct slice host)
{
	char canonical[POLICY_HOST_MAX + 1];
	bool below = slice_starts_with(host, SLICE("*."));
	size_t n;

	if (below)
		host = slice_of(host.p + 2, host.n - 2);
	if (!url_canonical_host(host, canonical, &n) ||
	        !slice_equals(host, slice_of(canonical, n)) || slice_find_byte(host, '.') < 0)
		return false;
	return !slice_equals(host, SLICE(POLICY_OWN_HOST)) &&
	       !slice_equals(host, SLICE("sandbox.internal")) &&
	       !slice_ends_with(host, SLICE(POLICY_SANDBOX_SUFFIX));
}

static bool to_is_fine(struct slice to)
{
	struct slice scheme =
	        slice_starts_with(to, SLICE("https://")) ? SLICE("https://") : SLICE("http://");
	struct slice host;
	ptrdiff_t colon;
	uint64_t port = 1;

	if (to.n > PROPOSAL_TO_MAX || !slice_starts_with(to, scheme))
		return false;
	host = slice_of(to.p + scheme.n, to.n - scheme.n);
	colon = slice_find_byte(host, ':');
	if (colon >= 0) {
		struct slice digits = slice_of(host.p + colon + 1, host.n - (size_t)colon - 1);

		if (digits.n > 5 || !slice_to_u64(digits, UINT16_MAX, &port))
			return false;
		host.n = (size_t)colon;
	}
	return port > 0 && host_is_fine(host);
}

static bool method_is_fine(struct slice method)
{
	for (size_t i = 0; i < method.n; i++)
		if ((method.p[i] < 'A' || method.p[i] > 'Z') && method.p[i] != '-')
			return false;
	return policy_method_of(method) == POLICY_METHOD_FINE &&
	       !slice_equals(method, SLICE("CONNECT"));
}

static bool path_is_fine(struct slice path)
{
	static const char others[] = "/-._~!&'()*+,;=:@%";

	if (!path.n || path.n > PROPOSAL_PATH_MAX || path.p[0] != '/')
		return false;
	for (size_t i = 0; i < path.n; i++) {
		char c = path.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		        (!c || !strchr(others, c)))
			return false;
	}
	return true;
}

/* The JSON reader has checked that the reason is UTF-8; one from another process need not be. */
static bool reason_is_fine(struct slice reason)
{
	for (size_t i = 0; i < reason.n; i++)
		if ((uint8_t)reason.p[i] < ' ' || reason.p[i] == 0x7f)
			return false;
	return reason.n > 0 && reason.n <= PROPOSAL_REASON_MAX;
}

static void copy(char *out, struct slice text)
{
	memcpy(out, text.p, text.n);
	out[text.n] = 0;
}

/* --- from JSON --- */

/* Joins the strings of an array with a space between them. */
static bool join(const struct json_tree *tree, const struct json_value *list, size_t max,
        bool (*is_fine)(struct slice), char *out)
{
	size_t count = 0, n = 0;
	struct slice word;

	if (!list || list->kind != JSON_IS_ARRAY)
		return false;
	for (uint32_t i = (uint32_t)(list - tree->values) + 1; i < list->next;
	        i = json_at(tree, i)->next) {
		if (!is_text(tree, json_at(tree, i), &word) || !is_fine(word) || ++count > max)
			return false;
		if (n)
			out[n++] = ' ';
		copy(out + n, word);
		n += word.n;
	}
	return count > 0;
}

static const char *read_members(struct policy_proposal *out, const struct json_tree *tree)
{
	const struct json_value *top = json_at(tree, 0);
	struct slice to, reason;
	uint32_t members = 0;

	for (uint32_t i = 1; top->kind == JSON_IS_OBJECT && i < top->next;
	        i = json_at(tree, i + 1)->next)
		members++;
	if (members != 4)
		return bad_members;
	if (!is_text(tree, json_tree_member(tree, top, SLICE("to")), &to) || !to_is_fine(to))
		return bad_to;
	if (!join(tree, json_tree_member(tree, top, SLICE("methods")), PROPOSAL_METHODS_MAX,
	            method_is_fine, out->methods))
		return bad_methods;
	if (!join(tree, json_tree_member(tree, top, SLICE("paths")), PROPOSAL_PATHS_MAX,
	            path_is_fine, out->paths))
		return bad_paths;
	if (!is_text(tree, json_tree_member(tree, top, SLICE("reason")), &reason) ||
	        !reason_is_fine(reason))
		return bad_reason;
	copy(out->to, to);
	copy(out->reason, reason);
	return NULL;
}

int policy_proposal_read(struct policy_proposal *out, struct slice json, const char **fault)
{
	struct json_tree tree;
	int rc;

	memset(out, 0, sizeof(*out));
	if (json.n > PROPOSAL_BYTES_MAX) {
		*fault = "the body has more than 4096 bytes";
		return -EBADMSG;
	}
	rc = json_read(&tree, json);
	*fault = rc == -EBADMSG ? tree.fault : NULL;
	if (rc == 0)
		*fault = read_members(out, &tree);
	json_fini(&tree);
	return *fault ? -EBADMSG : rc;
}

/* --- from another process --- */

static bool words_are_fine(struct slice words, size_t max, bool (*is_fine)(struct slice))
{
	for (size_t count = 1; count <= max; count++) {
		ptrdiff_t space = slice_find_byte(words, ' ');

		if (!is_fine(space < 0 ? words : slice_of(words.p, (size_t)space)))
			return false;
		if (space < 0)
			return true;
		words = slice_of(words.p + space + 1, words.n - (size_t)space - 1);
	}
	return false;
}

bool policy_proposal_take(struct policy_proposal *out, struct slice to, struct slice methods,
        struct slice paths, struct slice reason)
{
	memset(out, 0, sizeof(*out));
	if (!to_is_fine(to) || !words_are_fine(methods, PROPOSAL_METHODS_MAX, method_is_fine) ||
	        !words_are_fine(paths, PROPOSAL_PATHS_MAX, path_is_fine) || !reason_is_fine(reason))
		return false;
	copy(out->to, to);
	copy(out->methods, methods);
	copy(out->paths, paths);
	copy(out->reason, reason);
	return true;
}

/* --- as a policy --- */

/* Writes the words as a list of quoted texts. */
static int put_list(struct buf *out, const char *key, struct slice words)
{
	const char *separator = "";
	int rc = buf_printf(out, ", %s: [", key);

	while (rc == 0) {
		ptrdiff_t space = slice_find_byte(words, ' ');
		size_t n = space < 0 ? words.n : (size_t)space;

		rc = buf_printf(out, "%s\"%.*s\"", separator, (int)n, words.p);
		separator = ", ";
		if (space < 0)
			break;
		words = slice_of(words.p + n + 1, words.n - n - 1);
	}
	return rc ? rc : buf_append_slice(out, SLICE("]"));
}

int policy_proposal_write(const struct policy_proposal *p, uint64_t id, struct buf *out)
{
	int rc = buf_printf(out, "vethguard: 1\nallow:\n  - {name: proposal-%016llx, to: \"%s\"",
	        (unsigned long long)id, p->to);

	rc = rc ? rc : put_list(out, "methods", slice_from_string(p->methods));
	rc = rc ? rc : put_list(out, "paths", slice_from_string(p->paths));
	return rc ? rc : buf_append_slice(out, SLICE("}\n"));
}
