/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a rule's key git: repositories, refs that may be pushed, and what may be done to these
 * refs. They become one condition. */
#include "policy/load/variables.h"
#include "policy/rules/rule.h"

static bool take_repository(struct rule_parse *p, const struct tree_node *node, struct slice *name)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!variables_in_value(p->l, p->tree, node, name))
		return false;
	text = *name;
	tree_quote(text, quoted);
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i], next = i + 1 < text.n ? text.p[i + 1] : '/';
		bool letter =
		        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		bool empty = c == '/' && (i == 0 || next == '/');

		if (!empty && (letter || slice_find_byte(SLICE("-._~+@/*"), c) >= 0))
			continue;
		tree_error(p->tree, node,
		        "repository %s: write the path of a repository without \"/\" before and "
		        "behind it: acme/site, \"acme/*\", \"group/**\"",
		        quoted);
		return false;
	}
	if (slice_ends_with(text, SLICE(".git"))) {
		tree_error(p->tree, node,
		        "repository %s: leave \".git\" out; the name stands for both forms",
		        quoted);
		return false;
	}
	return true;
}

static bool take_ref(struct rule_parse *p, const struct tree_node *node, struct slice *name)
{
	char quoted[TREE_QUOTE_MAX];

	if (!variables_in_value(p->l, p->tree, node, name))
		return false;
	if (slice_starts_with(*name, SLICE("refs/")) && slice_find_byte(*name, ' ') < 0)
		return true;
	tree_error(p->tree, node,
	        "ref %s: write the whole name: \"refs/heads/agent/*\", \"refs/tags/v*\"",
	        tree_quote(*name, quoted));
	return false;
}

/* Returns the key's value if it is true, or NULL. Reports the key in a deny rule. */
static struct tree_node *take_yes(
        struct rule_parse *p, const struct tree_node *node, const char *key)
{
	static const char *const words[] = {"false", "true", NULL};
	struct tree_node *value = tree_get(node, key);

	if (value && p->rule.deny)
		tree_error(p->tree, value,
		        "%s belongs to allow rules: a deny rule names repositories and refs, and "
		        "holds for whatever is done to them",
		        key);
	else if (value && tree_word(p->tree, value, key, words) == 1)
		return value;
	return NULL;
}

void load_rule_git(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const keys[] = {
	        "repositories", "push", "options", "force", "delete", "tags", NULL};
	struct tree_node *push = tree_get(node, "push"), *options = tree_get(node, "options");
	struct tree_node *repositories = tree_get(node, "repositories"), *yes[3];

	if (!tree_is_map(p->tree, node, "git") || !tree_check_keys(p->tree, node, keys, NULL))
		return;
	yes[0] = take_yes(p, node, "force");
	yes[1] = take_yes(p, node, "delete");
	yes[2] = take_yes(p, node, "tags");
	if (!repositories && (!p->rule.deny || !push)) {
		tree_error(p->tree, node, "git needs repositories: {repositories: [acme/site]}");
	} else if (!push && (yes[0] || yes[1] || yes[2] || options)) {
		tree_error(p->tree, node,
		        "without push nothing is pushed; name the refs too: push: "
		        "[\"refs/heads/agent/*\"]");
	} else if (options && p->rule.deny) {
		tree_error(p->tree, options,
		        "options belongs to allow rules: a deny rule names repositories and refs");
	} else {
		const struct rule_names lists[] = {
		        {repositories, "repositories", "a repository's path", "repository",
		                GIT_VALUE_REPOSITORY, NULL, take_repository},
		        {push, "push", "a ref", "push", GIT_VALUE_PUSH, NULL, take_ref},
		        {options, "options", "a push option", "option", GIT_VALUE_OPTION, NULL,
		                NULL},
		        {yes[0], "force", "force", "force", GIT_VALUE_FORCE, NULL, NULL},
		        {yes[1], "delete", "delete", "delete", GIT_VALUE_DELETE, NULL, NULL},
		        {yes[2], "tags", "tags", "tags", GIT_VALUE_TAGS, NULL, NULL}};

		load_rule_names(p, CONDITION_GIT, lists, 6);
	}
}
