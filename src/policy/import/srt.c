/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads settings of Anthropic's sandbox-runtime:
 *
 *   {"network": {"allowedDomains": ["*.github.com", "api.example.com:443"],
 *                "deniedDomains": ["bad.example.com", "*:22"]}}
 *
 * Nothing is allowed but what is named; deny beats allow. "*.x" means every name below x. An entry
 * without a port means every port and protocol over TCP; in the policy an allowed one has https and
 * http.
 */
#include "policy/import/import.h"

static const char *const network_keys[] = {"allowedDomains", "deniedDomains", NULL};

/* True if the port is denied for all hosts. */
static bool is_shut(const struct vec *ports, uint16_t port)
{
	for (size_t i = 0; i < ports->n; i++)
		if (*(uint16_t *)vec_at(ports, i) == port)
			return true;
	return false;
}

static void allow(struct import *im, const struct tree_node *node, const struct vec *shut)
{
	struct import_host host;
	struct slice text;

	if (!import_text(im, node, "allowedDomains", &text) ||
	        !import_read_host(im, import_at(node), text, true, &host))
		return;
	if (host.kind == IMPORT_ANY)
		import_note(
		        im, import_at(node), "a policy cannot allow every host: name the hosts");
	else if (host.kind == IMPORT_NAME && slice_equals(host.text, SLICE("localhost")))
		import_note(im, import_at(node),
		        "localhost is the sandbox itself under a policy; left out");
	else if (host.port && is_shut(shut, host.port))
		import_note(im, import_at(node), "deniedDomains closes port %u of every host",
		        host.port);
	else if (host.port || (!is_shut(shut, 443) && !is_shut(shut, 80)))
		import_add_web(im, import_at(node), &host, false);
	else if (!is_shut(shut, 443) || !is_shut(shut, 80))
		import_add(im, import_at(node), is_shut(shut, 443) ? POLICY_HTTP : POLICY_HTTPS,
		        &host, 0);
}

/* Adds what an entry denies. Returns false if everything is denied. */
static bool deny(struct import *im, const struct tree_node *node, struct vec *shut)
{
	struct import_host host;
	struct slice text;

	if (!import_text(im, node, "deniedDomains", &text) ||
	        !import_read_host(im, import_at(node), text, true, &host))
		/* An entry that is not understood may deny anything. */
		return im->wrong || im->tree.wrong;
	if (host.kind == IMPORT_ANY && !host.port)
		return false;
	if (host.kind == IMPORT_ANY) {
		if (!vec_append(shut, &host.port, 1))
			im->no_memory = true;
		return true;
	}
	if (host.port) {
		import_begin(im, true);
		import_add(im, import_at(node), POLICY_TCP, &host, host.port);
	} else {
		import_begin(im, true)->any_port = true;
		import_add(im, import_at(node), POLICY_TCP, &host, 0);
	}
	return true;
}

static void read_lists(
        struct import *im, struct tree_node *allowed, struct tree_node *denied, struct vec *shut)
{
	bool open = true;

	if (denied && tree_is_list(&im->tree, denied, "deniedDomains"))
		for (const struct tree_item *item = denied->first; item; item = item->next)
			open &= deny(im, item->value, shut);
	if (!allowed || !tree_is_list(&im->tree, allowed, "allowedDomains"))
		return;
	if (denied && !open) {
		import_note(im, import_at(denied),
		        "deniedDomains closes everything, or has an entry that is not understood, "
		        "so nothing is allowed");
		return;
	}
	if (allowed->first)
		import_note(im, import_at(allowed),
		        "an entry without a port means every port and protocol there, and https "
		        "on 443 and http on 80 here");
	import_begin(im, false);
	for (const struct tree_item *item = allowed->first; item; item = item->next)
		allow(im, item->value, shut);
}

void import_srt(struct import *im)
{
	struct tree_node *root = im->tree.root, *network;
	struct vec shut;

	if (!tree_is_map(&im->tree, root, "settings of sandbox-runtime"))
		return;
	network = tree_get(root, "network");
	if (!network) {
		import_fault(im, import_at(root),
		        "there is no \"network\": expected are "
		        "settings of sandbox-runtime, with "
		        "network.allowedDomains");
		return;
	}
	if (!tree_is_map(&im->tree, network, "network"))
		return;
	import_note_others(im, network, network_keys);
	vec_init(&shut, sizeof(uint16_t));
	read_lists(
	        im, tree_get(network, "allowedDomains"), tree_get(network, "deniedDomains"), &shut);
	vec_fini(&shut);
}
