/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress: the configuration's key for the way from this host to upstreams. Nothing here asks the
 * system: whether the host has an address or interface turns out when the program starts.
 */
#include <string.h>

#include "policy/config/read.h"
#include "policy/load/loader.h"

#define PROXY_TEXT_MAX (POLICY_HOST_MAX + 2 * CONFIG_EGRESS_ENCODED_MAX)

/* A message here quotes nothing, because anything may be next to a password. */
static bool complain(struct tree *tree, const struct tree_node *node, const char *why)
{
	tree_error(tree, node, "proxy holds a user or a password, %s", why);
	return false;
}

static bool take_user(
        struct tree *tree, const struct tree_node *node, struct slice user, struct config *config)
{
	size_t n = user.n;

	if (n == 0 || n > CONFIG_EGRESS_USER_MAX)
		return complain(tree, node, "but its user is empty or too long");
	memcpy(config->egress_user, user.p, n);
	if (!config_decode(config->egress_user, &n) || memchr(config->egress_user, ':', n) ||
	        memchr(config->egress_user, 0, n))
		return complain(tree, node,
		        "but its user has a malformed escape, a control or a colon (RFC 7617)");
	config->egress_user[n] = 0;
	return true;
}

/* Reads what stands before the "@". Its password is already in config->egress_password; the tree
 * has "x" in its place. */
static bool take_user_info(struct tree *tree, const struct tree_node *node, struct slice info,
        bool is_private, struct config *config)
{
	struct secret *password = &config->egress_password;
	ptrdiff_t colon = slice_find_byte(info, ':');

	if (!is_private)
		return complain(tree, node,
		        "but this file is not private to root or to you: chmod 600 it, or write "
		        "egress.user and egress.password_file");
	if (colon < 0 || (size_t)colon + 1 == info.n)
		return complain(tree, node, "but not both: http://user:password@host:port");
	if (password->n != info.n - (size_t)colon - 1)
		return complain(tree, node,
		        "which must stand there once, as plain text with %XX for other bytes than "
		        "letters, digits and -._~!$&'()*+,;=");
	if (!config_decode((char *)password->p, &password->n))
		return complain(tree, node, "but its password has a malformed escape or a control");
	return take_user(tree, node, slice_of(info.p, (size_t)colon), config);
}

/* Reads "http://[user:password@]host:port" without anything behind it. */
static void read_egress_proxy(
        struct tree *tree, const struct tree_node *node, bool is_private, struct config *config)
{
	static const char scheme[] = "http://";
	struct config_egress *egress = &config->egress;
	struct url_authority authority;
	char quoted[TREE_QUOTE_MAX];
	struct slice text, rest;
	const char *at;

	if (!tree_text(tree, node, "proxy", PROXY_TEXT_MAX, &text))
		return;
	rest = slice_starts_with(text, SLICE(scheme))
	               ? slice_of(text.p + sizeof(scheme) - 1, text.n - (sizeof(scheme) - 1))
	               : SLICE("");
	at = memrchr(text.p, '@', text.n);
	if (at && rest.n == 0) {
		complain(tree, node, "but is not of the form http://user:password@host:port");
		return;
	}
	if (at) {
		struct slice info = slice_of(rest.p, (size_t)(at - rest.p));

		rest = slice_of(at + 1, rest.n - info.n - 1);
		text = rest;
		if (!take_user_info(tree, node, info, is_private, config))
			return;
	}
	if (rest.n && rest.p[rest.n - 1] == '/')
		rest.n--;
	if (!url_parse_authority(rest, &authority) || authority.port == 0) {
		tree_error(tree, node,
		        "proxy %s must be http://host:port, with the port, such as "
		        "http://proxy.example:3128",
		        tree_quote(text, quoted));
		return;
	}
	memcpy(egress->proxy_host, authority.host, authority.host_n);
	egress->proxy_host[authority.host_n] = 0;
	egress->proxy_address = authority.address;
	egress->proxy_port = authority.port;
}

static void read_egress_user(
        struct tree *tree, const struct tree_node *node, char out[CONFIG_EGRESS_USER_MAX + 1])
{
	struct slice text;

	if (!tree_text(tree, node, "user", CONFIG_EGRESS_USER_MAX, &text))
		return;
	if (memchr(text.p, ':', text.n)) { /* RFC 7617 section 2 */
		tree_error(tree, node, "user must not hold a colon");
		return;
	}
	memcpy(out, text.p, text.n);
	out[text.n] = 0;
}

static void read_interface(
        struct tree *tree, const struct tree_node *node, char out[CONFIG_INTERFACE_MAX + 1])
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(tree, node, "interface", 64, &text))
		return;
	if (text.n > CONFIG_INTERFACE_MAX || memchr(text.p, '/', text.n) ||
	        memchr(text.p, ' ', text.n)) {
		tree_error(tree, node, "interface %s is not the name of a network interface",
		        tree_quote(text, quoted));
		return;
	}
	memcpy(out, text.p, text.n);
	out[text.n] = 0;
}

/* True for an address that connections to other hosts can come from. */
static bool is_source(const struct ip *address)
{
	switch (ip_classify(address)) {
	case IP_PUBLIC:
	case IP_PRIVATE:
	case IP_CGNAT:
	case IP_RESERVED: /* documentation addresses, which laboratories use */
		return true;
	default:
		return false;
	}
}

static void read_address(struct tree *tree, const struct tree_node *node, struct config *config)
{
	char quoted[TREE_QUOTE_MAX];
	struct config_place *place;
	struct slice text;
	struct ip address, *out;

	if (!tree_text(tree, node, "an address", 128, &text))
		return;
	if (!ip_parse(text, &address)) {
		tree_error(tree, node,
		        "address must be an IPv4 or IPv6 address of this host, without a port, not "
		        "%s",
		        tree_quote(text, quoted));
		return;
	}
	if (!is_source(&address)) {
		tree_error(tree, node, "address %s is %s: connections cannot be made from it",
		        tree_quote(text, quoted), ip_class_name(ip_classify(&address)));
		return;
	}
	out = address.family == 4 ? &config->egress.address4 : &config->egress.address6;
	place = address.family == 4 ? &config->egress_place4 : &config->egress_place6;
	if (out->family) {
		tree_error(tree, node, "address %s is a second one of IPv%u: one per family",
		        tree_quote(text, quoted), address.family);
		return;
	}
	*out = address;
	*place = (struct config_place){node->line, node->column};
}

static void read_addresses(struct tree *tree, struct tree_node *node, struct config *config)
{
	struct tree_item single;

	for (const struct tree_item *item = tree_items(tree, node, "address", &single); item;
	        item = item->next)
		read_address(tree, item->value, config);
}

void config_read_egress(
        struct tree *tree, const struct tree_node *map, bool is_private, struct config *config)
{
	static const char *const known[] = {
	        "proxy", "user", "password_file", "resolve", "interface", "address", NULL};
	static const char *const resolve[] = {"proxy", "local", NULL};
	struct config_egress *egress = &config->egress;
	const struct tree_node *proxy = tree_get(map, "proxy"), *user = tree_get(map, "user"),
	                       *file = tree_get(map, "password_file"),
	                       *where = tree_get(map, "resolve"), *node;
	struct tree_node *list;

	if (!tree_is_map(tree, map, "egress"))
		return;
	tree_check_keys(tree, map, known, NULL);
	node = user ? user : file ? file : where;
	if (node && !proxy)
		tree_error(tree, node, "user, password_file and resolve belong to egress.proxy");
	else if (!user != !file)
		tree_error(tree, node, "user and password_file belong together");
	if (proxy)
		read_egress_proxy(tree, proxy, is_private, config);
	if (config->egress_user[0] && (user || file))
		tree_error(tree, user ? user : file,
		        "the user and the password stand in proxy already: write them once");
	else if (user)
		read_egress_user(tree, user, config->egress_user);
	if (file)
		config_read_path(tree, file, "password_file", config->egress_password_file);
	if (where)
		egress->resolve_local = tree_word(tree, where, "resolve", resolve) == 1;
	if ((node = tree_get(map, "interface")))
		read_interface(tree, node, egress->interface);
	if ((list = tree_get(map, "address")))
		read_addresses(tree, list, config);
}
