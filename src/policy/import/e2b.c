/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the options of an E2B sandbox, with the names of any of its SDKs, or their network alone:
 *
 *   {"allowInternetAccess": false,
 *    "network": {"allowOut": ["*.github.com", "1.1.1.1"], "denyOut": ["0.0.0.0/0"]}}
 *
 * E2B allows everything that denyOut does not name, and allowOut beats denyOut. So only allowOut
 * becomes rules: a policy refuses everything else anyway. E2B compares a name with the server name
 * of TLS on port 443 and with Host on port 80; "*.x" means every name below x.
 */
#include "policy/import/import.h"

static const char *const network_keys[] = {"allowOut", "allow_out", "denyOut", "deny_out", "egress",
        "allowInternetAccess", "allow_internet_access", NULL};

/* Returns the value of a key in either spelling, or NULL. */
static struct tree_node *get(const struct tree_node *map, const char *camel, const char *snake)
{
	struct tree_node *node = tree_get(map, camel);

	return node ? node : tree_get(map, snake);
}

static bool is_every_host(const struct import_host *host)
{
	return host->kind == IMPORT_ANY || slice_equals(host->text, SLICE("0.0.0.0/0")) ||
	       slice_equals(host->text, SLICE("[::/0]"));
}

static void allow(struct import *im, const struct tree_node *node)
{
	struct import_host host;
	struct slice text;

	if (!import_text(im, node, "allowOut", &text) ||
	        !import_read_host(im, import_at(node), text, false, &host))
		return;
	if (is_every_host(&host))
		import_note(
		        im, import_at(node), "a policy cannot allow every host: name the hosts");
	else
		import_add_web(im, import_at(node), &host, false);
}

/* True if the list holds all addresses. */
static bool closes(struct import *im, struct tree_node *list)
{
	struct import_host host;
	struct slice text;
	bool all = false;

	if (!list || !tree_is_list(&im->tree, list, "denyOut"))
		return false;
	for (const struct tree_item *item = list->first; item; item = item->next) {
		if (!import_text(im, item->value, "denyOut", &text) ||
		        !import_read_host(im, import_at(item->value), text, false, &host))
			continue;
		all |= is_every_host(&host);
	}
	return all;
}

static bool is_off(const struct tree_node *map)
{
	const struct tree_node *node = get(map, "allowInternetAccess", "allow_internet_access");

	return node && node->kind == TREE_SCALAR && slice_equals(node->text, SLICE("false"));
}

static void read_network(struct import *im, struct tree_node *network, bool off)
{
	struct tree_node *allowed = get(network, "allowOut", "allow_out");
	struct tree_node *denied = get(network, "denyOut", "deny_out");

	import_note_others(im, network, network_keys);
	off |= is_off(network);
	if (!closes(im, denied) && !off)
		import_note(im, import_at(network),
		        "what no list names is allowed there, and refused here: name the hosts");
	if (denied && denied->kind == TREE_LIST && denied->first)
		import_note(im, import_at(denied),
		        "denyOut needs no rule: what no rule allows is refused, and allowOut beats "
		        "it there too");
	if (!allowed || !tree_is_list(&im->tree, allowed, "allowOut"))
		return;
	if (allowed->first)
		import_note(im, import_at(allowed),
		        "an address means every port and protocol "
		        "there, and https on 443 and http on 80 here");
	import_begin(im, false);
	for (const struct tree_item *item = allowed->first; item; item = item->next)
		allow(im, item->value);
}

void import_e2b(struct import *im)
{
	struct tree_node *root = im->tree.root, *network, *egress;
	bool off;

	if (!tree_is_map(&im->tree, root, "options of a sandbox"))
		return;
	off = is_off(root);
	network = tree_get(root, "network");
	if (!network && !get(root, "allowOut", "allow_out") && !get(root, "denyOut", "deny_out") &&
	        !tree_get(root, "egress") &&
	        !get(root, "allowInternetAccess", "allow_internet_access")) {
		import_fault(im, import_at(root),
		        "there is neither \"network\" nor \"allowOut\", \"denyOut\" or "
		        "\"allowInternetAccess\": expected are options of Sandbox.create()");
		return;
	}
	network = network ? network : root;
	if (!tree_is_map(&im->tree, network, "network"))
		return;
	egress = tree_get(network, "egress");
	if (egress && tree_is_map(&im->tree, egress, "egress"))
		network = egress;
	read_network(im, network, off);
}
