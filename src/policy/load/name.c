/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a policy gives: of itself, of rules, groups and credentials; and tokens of HTTP. */
#include "policy/load/loader.h"

bool load_is_token(struct slice s)
{
	return s.n > 0 && slice_token_length(s) == s.n;
}

bool load_header_is_free(struct slice name)
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

static bool is_name_byte(char c, size_t at)
{
	bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

	return alnum || (at > 0 && (c == '.' || c == '_' || c == '-'));
}

bool load_name(struct tree *tree, const struct tree_node *node, const char *what, struct slice *out)
{
	char quoted[TREE_QUOTE_MAX], better[POLICY_NAME_MAX];
	bool spaces = true, good = true;

	if (!tree_text(tree, node, what, POLICY_NAME_MAX, out))
		return false;
	for (size_t i = 0; i < out->n; i++) {
		bool fits = is_name_byte(out->p[i], i);

		better[i] = fits ? out->p[i] : '-';
		good = good && fits;
		spaces = spaces && (fits || (i > 0 && out->p[i] == ' '));
	}
	if (!good)
		tree_error(tree, node,
		        "%s %s: names have letters, digits, '.', '_' and '-', and begin with a "
		        "letter or digit%s%.*s%s",
		        what, tree_quote(*out, quoted), spaces ? "; write \"" : "",
		        spaces ? (int)out->n : 0, better, spaces ? "\"" : "");
	return good;
}
