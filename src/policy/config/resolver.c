/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver: the configuration's key for the servers to ask for names, and for names that are not
 * asked for.
 */
#include "policy/config/read.h"
#include "policy/load/loader.h"

#define DNS_PORT 53

/* "9.9.9.9", "9.9.9.9:53", "2620:fe::fe", "[2620:fe::fe]:53" */
static bool parse_server(struct slice text, struct config_server *out)
{
	struct url_authority authority;

	out->port = DNS_PORT;
	if (ip_parse(text, &out->address))
		return true;
	if (!url_parse_authority(text, &authority) || authority.address.family == 0)
		return false;
	out->address = authority.address;
	if (authority.port)
		out->port = authority.port;
	return true;
}

static void read_servers(struct tree *tree, struct tree_node *node, struct config *config)
{
	struct tree_item single;
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	config->server_count = 0;
	for (const struct tree_item *item = tree_items(tree, node, "servers", &single); item;
	        item = item->next) {
		if (config->server_count == CONFIG_SERVERS_MAX) {
			tree_error(tree, item->value, "more than %d servers", CONFIG_SERVERS_MAX);
			return;
		}
		if (!tree_text(tree, item->value, "a server", IP_TEXT_MAX + 16, &text))
			continue;
		if (parse_server(text, &config->servers[config->server_count]))
			config->server_count++;
		else
			tree_error(tree, item->value,
			        "server %s must be an address, with a port where it is not 53: "
			        "9.9.9.9:53 or [2620:fe::fe]:53",
			        tree_quote(text, quoted));
	}
}

static void add_host(
        struct tree *tree, const struct tree_node *node, const char *name, struct config *config)
{
	struct config_host *host = &config->hosts[config->host_count];
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (config->host_count == CONFIG_HOSTS_MAX) {
		tree_error(tree, node, "more than %d addresses of hosts", CONFIG_HOSTS_MAX);
	} else if (!tree_text(tree, node, "an address", IP_TEXT_MAX, &text)) {
		return;
	} else if (!ip_parse(text, &host->address)) {
		tree_error(
		        tree, node, "%s is not an IPv4 or IPv6 address", tree_quote(text, quoted));
	} else {
		memcpy(host->name, name, sizeof(host->name));
		config->host_count++;
	}
}

static void read_hosts(struct tree *tree, const struct tree_node *map, struct config *config)
{
	char name[POLICY_HOST_MAX + 1] = {0}, quoted[TREE_QUOTE_MAX];
	struct tree_item single;
	size_t n;

	if (!tree_is_map(tree, map, "hosts"))
		return;
	for (const struct tree_item *item = map->first; item; item = item->next) {
		const struct tree_item *address;

		if (!url_canonical_host(item->key->text, name, &n)) {
			tree_error(tree, item->key, "%s is not a host name",
			        tree_quote(item->key->text, quoted));
			continue;
		}
		for (address = tree_items(tree, item->value, "the host's addresses", &single);
		        address && config->host_count <= CONFIG_HOSTS_MAX; address = address->next)
			add_host(tree, address->value, name, config);
	}
}

void config_read_resolver(struct tree *tree, const struct tree_node *map, struct config *config)
{
	static const char *const known[] = {"servers", "hosts", NULL};
	struct tree_node *node;

	if (!tree_is_map(tree, map, "resolver"))
		return;
	tree_check_keys(tree, map, known, NULL);
	if ((node = tree_get(map, "servers")))
		read_servers(tree, node, config);
	if ((node = tree_get(map, "hosts")))
		read_hosts(tree, node, config);
}
