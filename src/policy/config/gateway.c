/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway, where the connections of sessions arrive:
 *
 *   gateway: {listen: "0.0.0.0:8443", certificate: gateway.pem, key: gateway.key}
 *   gateway: {listen_plain: ["127.0.0.1:8080", "[::1]:8080"]}
 *
 *   gateway: {..., base_urls: {openai.gateway.example: "https://api.openai.com"}}
 *   gateway: {..., signers: [...]}  (signer.c)
 *
 * Without TLS only loopback addresses are accepted, because others on the network could read the
 * tokens. plain_anywhere permits other addresses.
 */
#include <stdio.h>
#include <string.h>

#include "policy/config/read.h"
#include "policy/load/loader.h"

#define ORIGIN_TEXT_MAX (CONFIG_GATEWAY_AUTHORITY_MAX + 16)
#define LISTENER_TEXT_MAX (IP_TEXT_MAX + 8)
#define UNAUTHENTICATED_DEFAULT 1024
#define UNAUTHENTICATED_MIN 16
#define UNAUTHENTICATED_MAX 16384
#define PER_ADDRESS_DEFAULT 64
#define HANDSHAKE_DEFAULT_MS 10000
#define HANDSHAKE_MIN_MS 100
#define HANDSHAKE_MAX_MS 60000
#define KEEP_WORKER_DEFAULT_MS 60000
#define KEEP_WORKER_MIN_MS 100
#define KEEP_WORKER_MAX_MS 86400000

void config_gateway_init(struct config_gateway *g)
{
	g->unauthenticated = UNAUTHENTICATED_DEFAULT;
	g->unauthenticated_per_address = PER_ADDRESS_DEFAULT;
	g->handshake_ms = HANDSHAKE_DEFAULT_MS;
	g->keep_worker_ms = KEEP_WORKER_DEFAULT_MS;
}

static bool is_there(const struct config_gateway *g, const struct config_gateway_listener *l)
{
	for (size_t i = 0; i < g->listener_count; i++)
		if (g->listeners[i].port == l->port &&
		        ip_equals(&g->listeners[i].address, &l->address))
			return true;
	return false;
}

static void add(struct tree *tree, const struct tree_node *node, const char *what,
        enum config_gateway_kind kind, bool anywhere, struct config_gateway *g)
{
	struct config_gateway_listener listener = {.kind = kind};
	struct url_authority authority;
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(tree, node, what, LISTENER_TEXT_MAX, &text))
		return;
	if (!url_parse_authority(text, &authority) || authority.address.family == 0 ||
	        authority.port == 0) {
		tree_error(tree, node,
		        "%s %s must be an address of this host and a port: 0.0.0.0:8443 or "
		        "[::]:8443",
		        what, tree_quote(text, quoted));
		return;
	}
	listener.address = authority.address;
	listener.port = authority.port;
	if (kind == CONFIG_GATEWAY_PLAIN && !anywhere &&
	        ip_classify(&listener.address) != IP_LOOPBACK)
		tree_error(tree, node,
		        "%s %s is not a loopback address: tokens would cross the network "
		        "unencrypted. Use listen with a certificate, or write plain_anywhere: true "
		        "if something else encrypts what comes there",
		        what, tree_quote(text, quoted));
	else if (is_there(g, &listener))
		tree_error(tree, node, "%s is listened on already", tree_quote(text, quoted));
	else if (g->listener_count == CONFIG_GATEWAY_LISTENERS_MAX)
		tree_error(tree, node, "more than %d addresses to listen on",
		        CONFIG_GATEWAY_LISTENERS_MAX);
	else
		g->listeners[g->listener_count++] = listener;
}

static void read_listeners(struct tree *tree, const struct tree_node *map, const char *key,
        enum config_gateway_kind kind, bool anywhere, struct config_gateway *g)
{
	struct tree_node *node = tree_get(map, key);
	struct tree_item single;

	if (!node)
		return;
	for (const struct tree_item *item = tree_items(tree, node, key, &single); item;
	        item = item->next)
		add(tree, item->value, key, kind, anywhere, g);
}

static void read_balancers(struct tree *tree, struct tree_node *node, struct config_gateway *g)
{
	struct tree_item single;
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	for (const struct tree_item *item = node ? tree_items(tree, node, "balancers", &single)
	                                         : NULL;
	        item; item = item->next) {
		if (!tree_text(tree, item->value, "balancers", IP_TEXT_MAX + 8, &text))
			return;
		if (g->balancer_count == CONFIG_BALANCERS_MAX) {
			tree_error(tree, item->value, "more than %d networks in balancers",
			        CONFIG_BALANCERS_MAX);
			return;
		}
		if (ip_prefix_parse(text, &g->balancers[g->balancer_count]))
			g->balancer_count++;
		else
			tree_error(tree, item->value,
			        "balancers %s must be a network such as 10.20.0.5/32, without bits "
			        "behind it",
			        tree_quote(text, quoted));
	}
}

static void read_name(
        struct tree *tree, const struct tree_node *node, struct config_gateway *gateway)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;
	size_t n;

	if (!tree_text(tree, node, "name", POLICY_HOST_MAX, &text))
		return;
	if (!url_canonical_host(text, gateway->name, &n))
		tree_error(tree, node, "name %s is not a host name", tree_quote(text, quoted));
}

/* Returns false after a report. */
static bool read_origin(
        struct tree *tree, const struct tree_node *node, struct config_gateway_base *b)
{
	char quoted[TREE_QUOTE_MAX], port[7] = "";
	struct slice text;
	struct url url;

	if (!tree_text(tree, node, "base_urls", ORIGIN_TEXT_MAX, &text))
		return false;
	if (!url_parse(text, &url) || (url.scheme != POLICY_HTTP && url.scheme != POLICY_HTTPS) ||
	        !url.authority.host_n || url.path.n != 1 || url.query.n ||
	        slice_find_byte(text, '#') >= 0 || slice_find_byte(text, '?') >= 0) {
		tree_error(tree, node,
		        "%s must be a scheme, a host name and perhaps a port: "
		        "https://api.example.com",
		        tree_quote(text, quoted));
		return false;
	}
	b->https = url.scheme == POLICY_HTTPS;
	if (url.authority.port && url.authority.port != policy_scheme_default_port(url.scheme))
		snprintf(port, sizeof(port), ":%u", url.authority.port);
	snprintf(b->authority, sizeof(b->authority), "%s%s", url.authority.host, port);
	return true;
}

static bool is_taken(const struct config_gateway *g, const char *name)
{
	for (size_t i = 0; i < g->base_count; i++)
		if (strcmp(g->bases[i].name, name) == 0)
			return true;
	return strcmp(g->name, name) == 0;
}

static void read_bases(struct tree *tree, const struct tree_node *map, struct config_gateway *g)
{
	char quoted[TREE_QUOTE_MAX];

	if (!tree_is_map(tree, map, "base_urls"))
		return;
	for (const struct tree_item *item = map->first; item; item = item->next) {
		struct config_gateway_base base = {.https = false};
		const struct slice name = item->key->text;
		size_t n;

		if (!url_canonical_host(name, base.name, &n)) {
			tree_error(
			        tree, item->key, "%s is not a host name", tree_quote(name, quoted));
		} else if (is_taken(g, base.name)) {
			tree_error(tree, item->key, "%s is given twice", tree_quote(name, quoted));
		} else if (g->base_count == CONFIG_GATEWAY_BASES_MAX) {
			tree_error(tree, item->key, "more than %d names in base_urls",
			        CONFIG_GATEWAY_BASES_MAX);
			return;
		} else if (read_origin(tree, item->value, &base)) {
			g->bases[g->base_count++] = base;
		}
	}
}

static void read_numbers(struct tree *tree, const struct tree_node *map, struct config_gateway *g)
{
	const struct tree_node *node;
	uint64_t value;

	if ((node = tree_get(map, "unauthenticated")) &&
	        tree_uint(tree, node, "unauthenticated", UNAUTHENTICATED_MIN, UNAUTHENTICATED_MAX,
	                &value))
		g->unauthenticated = (uint32_t)value;
	if ((node = tree_get(map, "unauthenticated_per_address")) &&
	        tree_uint(
	                tree, node, "unauthenticated_per_address", 1, UNAUTHENTICATED_MAX, &value))
		g->unauthenticated_per_address = (uint32_t)value;
	if ((node = tree_get(map, "handshake")) &&
	        tree_duration(tree, node, "handshake", HANDSHAKE_MIN_MS, HANDSHAKE_MAX_MS, &value))
		g->handshake_ms = (uint32_t)value;
	if ((node = tree_get(map, "keep_worker")) &&
	        tree_duration(
	                tree, node, "keep_worker", KEEP_WORKER_MIN_MS, KEEP_WORKER_MAX_MS, &value))
		g->keep_worker_ms = (uint32_t)value;
}

static void check_certificate(
        struct tree *tree, const struct tree_node *map, const struct config_gateway *g)
{
	bool tls = false;

	for (size_t i = 0; i < g->listener_count; i++)
		tls = tls || g->listeners[i].kind == CONFIG_GATEWAY_TLS;
	if (!g->listener_count)
		tree_error(tree, map, "listen is missing: the address that sessions connect to");
	else if (tls && (!g->certificate[0] || !g->key[0]))
		tree_error(tree, map,
		        "%s is missing: listen speaks TLS, with the operator's certificate and key",
		        g->certificate[0] ? "key" : "certificate");
	else if (!tls && (g->certificate[0] || g->key[0]))
		tree_error(tree, map, "certificate and key are for listen, which is missing");
	else if (!tls && g->client_certificates)
		tree_error(tree, map, "client_certificates is for listen, which is missing");
}

void config_read_gateway(
        struct tree *tree, const struct tree_node *map, struct config_gateway *gateway)
{
	static const char *const known[] = {"listen", "listen_plain", "plain_anywhere",
	        "listen_transparent", "certificate", "key", "name", "unauthenticated",
	        "unauthenticated_per_address", "handshake", "keep_worker", "base_urls", "signers",
	        "client_certificates", "balancers", "udp_ports", "udp_address", NULL};
	static const char *const words[] = {"false", "true", NULL};
	const struct tree_node *node;
	bool anywhere = false;

	if (!tree_is_map(tree, map, "gateway"))
		return;
	tree_check_keys(tree, map, known, NULL);
	if ((node = tree_get(map, "plain_anywhere")))
		anywhere = tree_word(tree, node, "plain_anywhere", words) == 1;
	read_listeners(tree, map, "listen", CONFIG_GATEWAY_TLS, false, gateway);
	read_listeners(tree, map, "listen_plain", CONFIG_GATEWAY_PLAIN, anywhere, gateway);
	read_listeners(tree, map, "listen_transparent", CONFIG_GATEWAY_TRANSPARENT, false, gateway);
	read_balancers(tree, tree_get(map, "balancers"), gateway);
	if ((node = tree_get(map, "certificate")))
		config_read_path(tree, node, "certificate", gateway->certificate);
	if ((node = tree_get(map, "key")))
		config_read_path(tree, node, "key", gateway->key);
	if ((node = tree_get(map, "name")))
		read_name(tree, node, gateway);
	if ((node = tree_get(map, "base_urls")))
		read_bases(tree, node, gateway);
	if ((node = tree_get(map, "client_certificates")))
		gateway->client_certificates =
		        tree_word(tree, node, "client_certificates", words) == 1;
	config_read_gateway_udp(tree, map, gateway);
	if ((node = tree_get(map, "signers")))
		config_read_signers(tree, node, gateway);
	read_numbers(tree, map, gateway);
	if (!tree->wrong)
		check_certificate(tree, map, gateway);
}
