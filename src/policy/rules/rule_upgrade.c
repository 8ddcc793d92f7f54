/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the protocols that a request may upgrade its connection to (RFC 9110 section 7.8). What
 * follows such an upgrade is relayed unread, so a protocol that carries further requests is
 * refused. WebSockets are read and need no rule.
 */
#include "policy/rules/rule.h"

#define LIST_MAX (MODEL_UPGRADES_MAX * (POLICY_UPGRADE_MAX + 2))

/* True for "name" or "name/version". */
static bool is_protocol(struct slice s)
{
	ptrdiff_t slash = slice_find_byte(s, '/');

	if (slice_find_byte(s, '*') >= 0)
		return false;
	return slash < 0
	               ? load_is_token(s)
	               : load_is_token(slice_of(s.p, (size_t)slash)) &&
	                         load_is_token(slice_of(s.p + slash + 1, s.n - (size_t)slash - 1));
}

static bool is_named(struct slice protocol, struct slice name)
{
	return slice_starts_with(protocol, name) &&
	       (protocol.n == name.n || protocol.p[name.n] == '/');
}

/* Why the protocol (in lower case) cannot be allowed, or NULL. */
static const char *refusal_of(struct slice protocol)
{
	if (is_named(protocol, SLICE("websocket")))
		return "needs no upgrade key: WebSockets pass wherever the GET that asks for them "
		       "is allowed";
	if (is_named(protocol, SLICE("h2c")) || is_named(protocol, SLICE("http")) ||
	        is_named(protocol, SLICE("tls")))
		return "cannot be allowed: vethguard could not check the requests inside it";
	return NULL;
}

/* Appends the protocol to the list in lower case, or reports a refusal. */
static void take(struct rule_parse *p, const struct tree_node *node, struct slice text, char *list)
{
	char quoted[TREE_QUOTE_MAX];
	size_t n = p->rule.upgrades.n, first = n;
	const char *refusal;

	if (n) {
		list[n++] = ',';
		list[n++] = ' ';
		first = n;
	}
	for (size_t i = 0; i < text.n; i++) {
		bool large = text.p[i] >= 'A' && text.p[i] <= 'Z';

		list[n++] = (char)(large ? text.p[i] - 'A' + 'a' : text.p[i]);
	}
	refusal = refusal_of(slice_of(list + first, n - first));
	if (refusal)
		tree_error(p->tree, node, "upgrade %s %s", tree_quote(text, quoted), refusal);
	else
		p->rule.upgrades = slice_of(list, n);
}

void load_rule_upgrade(struct rule_parse *p, struct tree_node *node)
{
	struct tree_item single;
	char *list = arena_take(p->tree->arena, LIST_MAX);
	char quoted[TREE_QUOTE_MAX];
	struct slice text;
	size_t count = 0;

	for (const struct tree_item *item = tree_items(p->tree, node, "upgrade", &single);
	        item && list; item = item->next) {
		if (count++ == MODEL_UPGRADES_MAX) {
			tree_error(p->tree, item->value, "more than %d protocols in one rule",
			        MODEL_UPGRADES_MAX);
			return;
		}
		if (!tree_text(p->tree, item->value, "a protocol", POLICY_UPGRADE_MAX, &text))
			continue;
		if (is_protocol(text))
			take(p, item->value, text, list);
		else
			tree_error(p->tree, item->value,
			        "upgrade %s: each protocol is named by itself, as in spdy/3.1 or "
			        "tcp",
			        tree_quote(text, quoted));
	}
}
