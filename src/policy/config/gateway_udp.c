/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads where clients of the gateway may send datagrams (SOCKS5 UDP ASSOCIATE):
 *
 *   gateway: {..., udp_ports: 40000-40999, udp_address: 203.0.113.7}
 */
#include "policy/config/read.h"

#define UDP_PORT_MIN 1024
#define UDP_PORTS_TEXT_MAX 11 /* "65535-65535" */

/* Reads up to five digits at *at, and moves *at past them. Returns 0 if there are none. */
static uint32_t read_port(struct slice text, size_t *at)
{
	const size_t begin = *at;
	uint32_t value = 0;

	while (*at < text.n && *at - begin < 5 && text.p[*at] >= '0' && text.p[*at] <= '9')
		value = value * 10 + (uint32_t)(text.p[(*at)++] - '0');
	return value;
}

/* Reads "FIRST-LAST". */
static void read_ports(struct tree *tree, const struct tree_node *node, struct config_gateway *g)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;
	uint32_t first, last = 0;
	size_t at = 0;

	if (!tree_text(tree, node, "udp_ports", UDP_PORTS_TEXT_MAX, &text))
		return;
	first = read_port(text, &at);
	if (at < text.n && text.p[at] == '-') {
		at++;
		last = read_port(text, &at);
	}
	if (at != text.n || first < UDP_PORT_MIN || last < first || last > UINT16_MAX) {
		tree_error(tree, node,
		        "udp_ports %s must be the first and the last port, from %d on: 40000-40999",
		        tree_quote(text, quoted), UDP_PORT_MIN);
		return;
	}
	g->udp_first = (uint16_t)first;
	g->udp_last = (uint16_t)last;
}

static void read_address(struct tree *tree, const struct tree_node *node, struct config_gateway *g)
{
	char quoted[TREE_QUOTE_MAX];
	struct ip address, *out;
	struct slice text;

	if (!tree_text(tree, node, "udp_address", IP_TEXT_MAX, &text))
		return;
	if (!ip_parse(text, &address) || ip_classify(&address) == IP_UNSPECIFIED) {
		tree_error(tree, node,
		        "udp_address %s must be the IPv4 or IPv6 address, without a port, by which "
		        "clients reach this host",
		        tree_quote(text, quoted));
		return;
	}
	out = address.family == 4 ? &g->udp_address4 : &g->udp_address6;
	if (out->family)
		tree_error(tree, node, "udp_address %s is a second one of IPv%u: one per family",
		        tree_quote(text, quoted), address.family);
	else
		*out = address;
}

void config_read_gateway_udp(
        struct tree *tree, const struct tree_node *map, struct config_gateway *gateway)
{
	struct tree_node *node = tree_get(map, "udp_ports");
	struct tree_item single;

	if (node)
		read_ports(tree, node, gateway);
	node = tree_get(map, "udp_address");
	for (const struct tree_item *item = node ? tree_items(tree, node, "udp_address", &single)
	                                         : NULL;
	        item; item = item->next)
		read_address(tree, item->value, gateway);
}
