/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a source is a word, an address, a network, a sandbox's name or a label. A
 * source that could never connect is an error, because its author meant it to.
 */
#include "policy/load/expose.h"

#define SOURCE_TEXT_MAX (POLICY_EXPOSE_LABEL_MAX + 8)

/* Reports a network with bits set after its prefix length, or an invalid length. */
static void refuse_network(
        struct expose_parse *p, const struct tree_node *node, const struct ip *ip)
{
	ptrdiff_t slash = slice_find_byte(node->text, '/');
	struct slice bits = slice_of(node->text.p + slash + 1, node->text.n - (size_t)slash - 1);
	unsigned most = ip->family == 6 ? 128 : 32;
	char quoted[TREE_QUOTE_MAX], text[IP_TEXT_MAX];
	struct ip base = *ip;
	uint64_t n;

	tree_quote(node->text, quoted);
	if (!slice_to_u64(bits, most, &n)) {
		tree_error(p->tree, node,
		        "from %s: not a network: write a number of bits from 0 to %u", quoted,
		        most);
		return;
	}
	for (unsigned i = (unsigned)n; i < most; i++)
		base.bytes[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	tree_error(p->tree, node,
	        "from %s: not a network: bits are set behind the first %u; write %s/%u", quoted,
	        (unsigned)n, ip_format(&base, text), (unsigned)n);
}

/* True if the text is an address, perhaps with a prefix length. An invalid length is reported, and
 * *good is false. */
static bool take_network(
        struct expose_parse *p, const struct tree_node *node, struct policy_from *out, bool *good)
{
	ptrdiff_t slash = slice_find_byte(node->text, '/');
	struct slice address = slash < 0 ? node->text : slice_of(node->text.p, (size_t)slash);
	char text[IP_TEXT_MAX];
	struct ip ip;

	*good = false;
	if (!ip_parse(address, &ip))
		return false;
	if (!ip_prefix_parse(node->text, &out->network)) {
		refuse_network(p, node, &ip);
		return true;
	}
	out->kind = POLICY_FROM_NETWORK;
	out->text = ip_network_is_one(&out->network)
	                    ? arena_printf(&p->l->arena, "%s", ip_format(&ip, text))
	                    : arena_printf(&p->l->arena, "%s/%u", ip_format(&ip, text),
	                              out->network.bits);
	*good = true;
	return true;
}

/* Returns a node with the text after "sandbox:" or "label:". */
static struct tree_node behind(const struct tree_node *node, size_t n)
{
	struct tree_node rest = *node;

	rest.text = slice_of(node->text.p + n, node->text.n - n);
	rest.column += (unsigned)n;
	return rest;
}

static bool take_label(
        struct expose_parse *p, const struct tree_node *node, struct policy_from *out)
{
	ptrdiff_t equals = slice_find_byte(node->text, '=');
	char quoted[TREE_QUOTE_MAX];

	out->kind = POLICY_FROM_LABEL;
	out->text = node->text;
	if (equals > (ptrdiff_t)SLICE("label:").n && (size_t)equals + 1 < node->text.n)
		return true;
	tree_error(p->tree, node, "from %s: write label:KEY=VALUE, as in label:team=search",
	        tree_quote(node->text, quoted));
	return false;
}

/* Reports a text that is not a source. */
static void refuse_source(struct expose_parse *p, const struct tree_node *node)
{
	static const char *const words[] = {"host", "sandbox", "label", NULL};
	char quoted[TREE_QUOTE_MAX];
	struct slice word = node->text;
	ptrdiff_t colon = slice_find_byte(word, ':');
	const char *nearest;

	tree_quote(node->text, quoted);
	if (slice_equals(word, SLICE("localhost"))) {
		tree_error(p->tree, node, "from %s: write host for this machine", quoted);
		return;
	}
	if (slice_equals(word, SLICE("any")) || slice_equals(word, SLICE("*"))) {
		tree_error(p->tree, node,
		        "from %s: no word means everybody: name who is meant; every address is "
		        "0.0.0.0/0",
		        quoted);
		return;
	}
	if (colon > 0)
		word.n = (size_t)colon;
	nearest = diag_nearest(word, words);
	tree_error(p->tree, node,
	        "from %s: write host, an address, a network (10.0.0.0/8), sandbox:NAME or "
	        "label:KEY=VALUE%s%s%s",
	        quoted, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
	        nearest ? "\"?" : "");
}

static bool take_source(
        struct expose_parse *p, const struct tree_node *node, struct policy_from *out)
{
	struct slice text;
	struct tree_node rest;
	bool good;

	*out = (struct policy_from){.kind = POLICY_FROM_HOST};
	if (!tree_text(p->tree, node, "from", SOURCE_TEXT_MAX, &text))
		return false;
	out->text = text;
	if (slice_equals(text, SLICE("host")))
		return true;
	if (slice_starts_with(text, SLICE("sandbox:"))) {
		out->kind = POLICY_FROM_SANDBOX;
		rest = behind(node, SLICE("sandbox:").n);
		return load_name(p->tree, &rest, "a sandbox's name", &text);
	}
	if (slice_starts_with(text, SLICE("label:")))
		return take_label(p, node, out);
	if (take_network(p, node, out, &good))
		return good;
	refuse_source(p, node);
	return false;
}

static bool is_loopback(const struct ip *ip)
{
	return ip_classify(ip) == IP_LOOPBACK;
}

/* Checks that the source can reach the address where the host listens. */
static bool check_source(
        struct expose_parse *p, const struct tree_node *node, const struct policy_from *from)
{
	const struct ip *at = &p->out->at;
	char quoted[TREE_QUOTE_MAX], text[IP_TEXT_MAX];

	if (from->kind != POLICY_FROM_HOST && from->kind != POLICY_FROM_NETWORK)
		return true;
	tree_quote(node->text, quoted);
	if (!p->at) {
		tree_error(p->tree, node,
		        "from %s: the host has to listen for it: add at: 127.0.0.1:%u", quoted,
		        p->out->port ? p->out->port : 8080u);
		return false;
	}
	if (!at->family || from->kind == POLICY_FROM_HOST)
		return true;
	if (from->network.base.family != at->family) {
		tree_error(p->tree, node,
		        "from %s: at: is an IPv%u address, to which nobody connects from there",
		        quoted, at->family);
		return false;
	}
	if (is_loopback(at) && !is_loopback(&from->network.base)) {
		tree_error(p->tree, node,
		        "from %s: only this machine connects to %s: write host, or another "
		        "address at:",
		        quoted, ip_format(at, text));
		return false;
	}
	return true;
}

static bool is_there(const struct model_expose *e, struct slice text)
{
	for (size_t i = 0; i < e->from_count; i++)
		if (slice_equals(e->from[i].text, text))
			return true;
	return false;
}

void load_expose_from(struct expose_parse *p, struct tree_node *list)
{
	struct model_expose *e = p->out;
	char quoted[TREE_QUOTE_MAX];
	struct policy_from from;
	struct tree_item single;
	bool outside = false, good = true;

	for (const struct tree_item *item = tree_items(p->tree, list, "from", &single); item;
	        item = item->next) {
		if (e->from_count == POLICY_EXPOSE_FROM_MAX) {
			tree_error(p->tree, item->value, "from has more than %d entries",
			        POLICY_EXPOSE_FROM_MAX);
			return;
		}
		if (!take_source(p, item->value, &from) || !check_source(p, item->value, &from)) {
			good = false;
			continue;
		}
		if (is_there(e, from.text)) {
			tree_error(p->tree, item->value, "from %s appears twice",
			        tree_quote(from.text, quoted));
			continue;
		}
		outside |= from.kind == POLICY_FROM_HOST || from.kind == POLICY_FROM_NETWORK;
		e->from[e->from_count++] = from;
	}
	if (good && e->from_count && p->at && !outside)
		tree_error(p->tree, p->at,
		        "at: has no use: sandboxes reach each other without an address of the "
		        "host; remove it, or add host or a network to from");
}
