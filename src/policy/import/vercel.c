/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a networkPolicy of Vercel Sandbox, alone or among options, as the SDK writes it:
 *
 *   {"allow": ["ai-gateway.vercel.sh", "*.example.com"],
 *    "subnets": {"allow": ["10.0.0.0/8"], "deny": ["10.1.0.0/16"]}}
 *   {"allow": {"api.example.com": [{"transform": [...]}]}}
 *   "deny-all"
 *
 * or as the API does: {"mode": "custom", "allowedDomains": [...], "allowedCIDRs": [...],
 * "deniedCIDRs": [...]}. Vercel compares a domain with the server name of TLS. How many labels "*"
 * stands for is not documented, so a line with it becomes a comment.
 */
#include "policy/import/import.h"

static const char *const policy_keys[] = {
        "allow", "subnets", "mode", "allowedDomains", "allowedCIDRs", "deniedCIDRs", NULL};
static const char *const rule_keys[] = {"transform", NULL};

static void allow_name(struct import *im, struct import_place at, struct slice text)
{
	struct import_host host;

	if (!import_read_host(im, at, text, false, &host))
		return;
	if (host.kind == IMPORT_ANY) {
		import_note(im, at, "a policy cannot allow every host: name the hosts");
		return;
	}
	host.port = host.kind == IMPORT_NETWORK ? 0 : 443;
	import_add_web(im, at, &host, true);
}

static void allow_list(struct import *im, struct tree_node *list, const char *what)
{
	struct slice text;

	if (!list || !tree_is_list(&im->tree, list, what))
		return;
	import_begin(im, false);
	for (const struct tree_item *item = list->first; item; item = item->next)
		if (import_text(im, item->value, what, &text))
			allow_name(im, import_at(item->value), text);
}

/* True if the rules of a domain only change its requests, so that the domain is as open as without
 * them. */
static bool only_transforms(struct import *im, const struct tree_node *rules)
{
	char quoted[TREE_QUOTE_MAX];

	if (!tree_is_list(&im->tree, rules, "the rules of a domain"))
		return false;
	for (const struct tree_item *item = rules->first; item; item = item->next) {
		if (!tree_is_map(&im->tree, item->value, "a rule of a domain"))
			return false;
		for (const struct tree_item *key = item->value->first; key; key = key->next)
			if (!slice_equals(key->key->text, SLICE("transform"))) {
				import_note(im, import_at(key->key),
				        "%s: what this rule lets pass is not known here; its "
				        "domain is left out",
				        tree_quote(key->key->text, quoted));
				return false;
			}
		import_note_others(im, item->value, rule_keys);
		import_note(im, import_at(item->value),
		        "a transform is no rule: write it as a credential (credentials:) whose "
		        "value "
		        "comes from a file");
	}
	return true;
}

static void read_allow(struct import *im, struct tree_node *node)
{
	if (node->kind != TREE_MAP) {
		allow_list(im, node, "allow");
		return;
	}
	import_begin(im, false);
	for (const struct tree_item *item = node->first; item; item = item->next)
		if (only_transforms(im, item->value))
			allow_name(im, import_at(item->key), item->key->text);
}

static void deny_list(struct import *im, struct tree_node *list, const char *what)
{
	struct import_host host;
	struct slice text;

	if (!list || !tree_is_list(&im->tree, list, what))
		return;
	for (const struct tree_item *item = list->first; item; item = item->next) {
		if (!import_text(im, item->value, what, &text) ||
		        !import_read_host(im, import_at(item->value), text, false, &host))
			continue;
		if (host.kind == IMPORT_ANY) {
			import_fault(im, import_at(item->value),
			        "a network is expected, such as 10.1.0.0/16");
			continue;
		}
		import_begin(im, true)->any_port = true;
		import_add(im, import_at(item->value), POLICY_TCP, &host, 0);
		import_note(im, import_at(item->value),
		        "a deny rule for a network is about addresses that the sandbox dials; the "
		        "address that a name leads to is judged by its class");
	}
}

static void read_word(struct import *im, const struct tree_node *node)
{
	char quoted[TREE_QUOTE_MAX];

	if (slice_equals(node->text, SLICE("allow-all")))
		import_note(im, import_at(node),
		        "allow-all: a policy cannot allow every host: name the hosts");
	else if (!slice_equals(node->text, SLICE("deny-all")))
		import_fault(im, import_at(node),
		        "%s is no network policy: write allow-all, deny-all or a mapping",
		        tree_quote(node->text, quoted));
}

static void read_policy(struct import *im, struct tree_node *node)
{
	const struct tree_node *mode = tree_get(node, "mode");
	struct tree_node *allow = tree_get(node, "allow"), *subnets = tree_get(node, "subnets");

	import_note_others(im, node, policy_keys);
	if (mode && mode->kind == TREE_SCALAR && !slice_equals(mode->text, SLICE("custom"))) {
		read_word(im, mode);
		return;
	}
	if (allow)
		read_allow(im, allow);
	allow_list(im, tree_get(node, "allowedDomains"), "allowedDomains");
	allow_list(im, tree_get(node, "allowedCIDRs"), "allowedCIDRs");
	deny_list(im, tree_get(node, "deniedCIDRs"), "deniedCIDRs");
	if (subnets && tree_is_map(&im->tree, subnets, "subnets")) {
		allow_list(im, tree_get(subnets, "allow"), "subnets.allow");
		deny_list(im, tree_get(subnets, "deny"), "subnets.deny");
	}
}

void import_vercel(struct import *im)
{
	struct tree_node *root = im->tree.root, *policy = tree_get(root, "networkPolicy");

	policy = policy ? policy : root;
	if (policy->kind == TREE_SCALAR)
		read_word(im, policy);
	else if (tree_is_map(&im->tree, policy, "a networkPolicy"))
		read_policy(im, policy);
	if (policy == root && policy->kind == TREE_MAP && !tree_get(root, "allow") &&
	        !tree_get(root, "subnets") && !tree_get(root, "mode"))
		import_fault(im, import_at(root),
		        "there is neither \"networkPolicy\" nor \"allow\", \"subnets\" or "
		        "\"mode\"");
}
