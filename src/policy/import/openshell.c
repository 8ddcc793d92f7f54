/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a sandbox policy of NVIDIA OpenShell (network_policies). An endpoint becomes rules if a
 * policy can say all that it says: a host, ports, no protocol or tcp or rest, access or rules of
 * method and path, and deny_rules. Otherwise it is left out, with a comment. A policy cannot say
 * which program may use an endpoint: the rules hold for the whole sandbox, and a comment names the
 * programs.
 */
#include <stdio.h>

#include "policy/import/import.h"

#define PORTS_MAX 64

static const char *const top_keys[] = {
        "version", "network_policies", "filesystem_policy", "landlock", "process", NULL};
static const char *const endpoint_keys[] = {"host", "port", "ports", "protocol", "tls",
        "enforcement", "access", "rules", "deny_rules", "allow_encoded_slash", NULL};
static const char *const rule_keys[] = {"method", "path", NULL};

struct endpoint {
	struct import *im;
	const struct tree_node *node;
	struct import_host host;
	uint16_t ports[PORTS_MAX];
	size_t port_count;
	bool rest, skip, good;
};

static bool is_word(const struct tree_node *node, const char *word)
{
	return node && node->kind == TREE_SCALAR &&
	       slice_equals(node->text, slice_from_string(word));
}

/* Leaves the endpoint out, with a comment. */
static void leave_out(struct endpoint *e, const struct tree_node *node, const char *why)
{
	import_note(e->im, import_at(node), "%s; the endpoint is left out", why);
	e->good = false;
}

/* True if the map has no other keys. Otherwise leaves the endpoint out. */
static bool has_only(struct endpoint *e, const struct tree_node *map, const char *const known[])
{
	char quoted[TREE_QUOTE_MAX], why[TREE_QUOTE_MAX + 64];

	for (const struct tree_item *item = map->first; item; item = item->next) {
		bool is_known = false;

		for (size_t i = 0; known[i] && !is_known; i++)
			is_known = slice_equals(item->key->text, slice_from_string(known[i]));
		if (is_known)
			continue;
		snprintf(why, sizeof(why), "a policy cannot express %s",
		        tree_quote(item->key->text, quoted));
		leave_out(e, item->key, why);
		return false;
	}
	return true;
}

static void take_port(struct endpoint *e, const struct tree_node *node)
{
	uint64_t port;

	if (!tree_uint(&e->im->tree, node, "port", 1, UINT16_MAX, &port))
		e->good = false;
	else if (e->port_count == PORTS_MAX)
		leave_out(e, node, "more than 64 ports");
	else
		e->ports[e->port_count++] = (uint16_t)port;
}

static void read_destination(struct endpoint *e)
{
	struct tree_node *host = tree_get(e->node, "host"), *port = tree_get(e->node, "port");
	struct tree_node *ports = tree_get(e->node, "ports");
	struct tree_item single;
	struct slice text;

	if (!host) {
		leave_out(e, e->node, "there is no host");
		return;
	}
	e->good &= import_text(e->im, host, "host", &text) &&
	           import_read_host(e->im, import_at(host), text, false, &e->host);
	if (e->good && e->host.kind == IMPORT_ANY)
		leave_out(e, host, "a policy cannot allow every host");
	if (port)
		take_port(e, port);
	for (const struct tree_item *item =
	                ports ? tree_items(&e->im->tree, ports, "ports", &single) : NULL;
	        item; item = item->next)
		take_port(e, item->value);
	if (e->good && e->port_count == 0)
		leave_out(e, e->node, "there is no port");
}

static void read_kind(struct endpoint *e)
{
	const struct tree_node *protocol = tree_get(e->node, "protocol");
	const struct tree_node *tls = tree_get(e->node, "tls");
	const struct tree_node *enforcement = tree_get(e->node, "enforcement");

	e->rest = is_word(protocol, "rest");
	e->skip = is_word(tls, "skip");
	if (protocol && !e->rest && !is_word(protocol, "tcp"))
		leave_out(e, protocol, "a policy can express only the protocols rest and tcp");
	else if (tls && (!e->skip || e->rest))
		leave_out(e, tls, "a policy cannot express this value of tls");
	else if (enforcement && !is_word(enforcement, "enforce") && !is_word(enforcement, "audit"))
		leave_out(e, enforcement, "this value of enforcement is not known");
	else if (e->rest && !is_word(enforcement, "enforce"))
		import_note(e->im, import_at(e->node),
		        "enforcement: audit lets pass what no rule allows; here the rules hold");
}

/* Adds the endpoint's destinations to the newest rule. */
static void add_destinations(struct endpoint *e)
{
	for (size_t i = 0; i < e->port_count; i++) {
		struct import_host host = e->host;
		uint16_t port = e->ports[i];

		host.port = port;
		if (e->rest && e->host.kind != IMPORT_BELOW && port != 80 && port != 443) {
			import_add(e->im, import_at(e->node), POLICY_HTTPS, &host, port);
			import_add(e->im, import_at(e->node), POLICY_HTTP, &host, port);
		} else {
			import_add_web(e->im, import_at(e->node), &host, true);
		}
	}
}

/* Adds a rule for method and path. Returns false if a policy cannot say them. */
static bool add_matcher(struct endpoint *e, const struct tree_node *map, bool deny)
{
	const struct tree_node *method = tree_get(map, "method"), *path = tree_get(map, "path");
	struct slice name = SLICE(""), text, pattern;
	struct import_rule *rule;

	if (!method || !path || !import_text(e->im, method, "method", &name) ||
	        !import_text(e->im, path, "path", &text)) {
		leave_out(e, map, "a rule needs method and path");
		return false;
	}
	if (!slice_equals(name, SLICE("*")) && !import_method(e->im, name, &name)) {
		leave_out(e, method, "a policy cannot express this method");
		return false;
	}
	if (!import_path(e->im, text, deny, &pattern)) {
		leave_out(e, path,
		        "a policy cannot express this path: it knows *, ** and plain segments");
		return false;
	}
	rule = import_begin(e->im, deny);
	if (!slice_equals(name, SLICE("*")))
		rule->methods[rule->method_count++] = name;
	rule->path = pattern;
	add_destinations(e);
	return true;
}

static void add_access(struct endpoint *e, const struct tree_node *access)
{
	static const struct slice methods[] = {
	        {"GET", 3}, {"HEAD", 4}, {"OPTIONS", 7}, {"POST", 4}, {"PUT", 3}, {"PATCH", 5}};
	size_t count = is_word(access, "full")         ? 0
	               : is_word(access, "read-only")  ? 3
	               : is_word(access, "read-write") ? 6
	                                               : SIZE_MAX;
	struct import_rule *rule;

	if (count == SIZE_MAX) {
		leave_out(e, access, "this value of access is not known");
		return;
	}
	rule = import_begin(e->im, false);
	for (size_t i = 0; i < count; i++)
		rule->methods[rule->method_count++] = methods[i];
	add_destinations(e);
}

static void add_rules(struct endpoint *e, struct tree_node *list, bool deny)
{
	if (!list || !tree_is_list(&e->im->tree, list, deny ? "deny_rules" : "rules"))
		return;
	for (const struct tree_item *item = list->first; item && e->good; item = item->next) {
		const struct tree_node *map = deny ? item->value : tree_get(item->value, "allow");

		if (!deny && !map)
			leave_out(e, item->value, "a rule is a mapping with allow:");
		else if (tree_is_map(&e->im->tree, map, "a rule") && has_only(e, map, rule_keys))
			add_matcher(e, map, deny);
	}
}

/* Adds the rules of one endpoint, or none if a policy cannot say something of it. */
static void read_endpoint(struct import *im, const struct tree_node *node)
{
	const size_t rules = im->rules.n, destinations = im->to.n;
	struct endpoint e = {.im = im, .node = node, .good = true};
	struct tree_node *access;

	if (!tree_is_map(&im->tree, node, "an endpoint") || !has_only(&e, node, endpoint_keys))
		return;
	read_destination(&e);
	if (e.good)
		read_kind(&e);
	if (!e.good)
		return;
	access = tree_get(node, "access");
	if (!e.rest) {
		import_begin(im, false)->passthrough =
		        e.skip && e.port_count == 1 && e.ports[0] == 443;
		add_destinations(&e);
		return;
	}
	if (access)
		add_access(&e, access);
	else
		add_rules(&e, tree_get(node, "rules"), false);
	add_rules(&e, tree_get(node, "deny_rules"), true);
	if (!e.good) {
		im->rules.n = rules;
		im->to.n = destinations;
	}
}

static void note_programs(struct import *im, const struct tree_node *binaries)
{
	char list[256] = "", quoted[TREE_QUOTE_MAX];
	size_t n = 0;

	for (const struct tree_item *item = binaries->first; item && n < sizeof(list);
	        item = item->next) {
		const struct tree_node *path = tree_get(item->value, "path");

		if (path && path->kind == TREE_SCALAR)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "",
			        tree_quote(path->text, quoted));
	}
	import_note(im, import_at(binaries),
	        "the rules hold for every program of the sandbox, and there only for %s", list);
}

static void read_rule(struct import *im, const struct tree_item *item)
{
	struct tree_node *endpoints, *binaries;

	if (!tree_is_map(&im->tree, item->value, "a network policy"))
		return;
	endpoints = tree_get(item->value, "endpoints");
	binaries = tree_get(item->value, "binaries");
	if (!binaries || binaries->kind != TREE_LIST || !binaries->first) {
		import_note(im, import_at(item->key),
		        "without binaries the policy holds for no program there; left out");
		return;
	}
	note_programs(im, binaries);
	if (endpoints && tree_is_list(&im->tree, endpoints, "endpoints"))
		for (const struct tree_item *e = endpoints->first; e; e = e->next)
			read_endpoint(im, e->value);
}

void import_openshell(struct import *im)
{
	struct tree_node *root = im->tree.root, *policies, *version;

	if (!tree_is_map(&im->tree, root, "a sandbox policy"))
		return;
	policies = tree_get(root, "network_policies");
	version = tree_get(root, "version");
	if (!policies || !version) {
		import_fault(im, import_at(root),
		        "there is no \"version\" or no \"network_policies\": expected is a sandbox "
		        "policy of OpenShell");
		return;
	}
	if (!is_word(version, "1")) {
		import_fault(
		        im, import_at(version), "this version is not known; this program knows 1");
		return;
	}
	import_note_others(im, root, top_keys);
	if (tree_is_map(&im->tree, policies, "network_policies"))
		for (const struct tree_item *item = policies->first; item; item = item->next)
			read_rule(im, item);
}
