/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: "[scheme://]host[:port]" is split from the left: the scheme, then the part
 * before the port, then the port. The part before the port is a host, "*." and a host, an address,
 * a prefix or "[public]". Every form that people write by mistake (a path, a user, a bare IPv6
 * address, a wildcard elsewhere) has its own message.
 */
#include <stdio.h>

#include "policy/load/variables.h"

static bool fail(struct tree *tree, const struct tree_node *node, const char *message)
{
	char quoted[TREE_QUOTE_MAX];

	tree_error(tree, node, "destination %s: %s", tree_quote(node->text, quoted), message);
	return false;
}

/* rest begins with the first slash. */
static bool refuse_path(struct tree *tree, const struct tree_node *node, struct slice rest)
{
	return fail(tree, node,
	        rest.n == 1 ? "a destination has no path; remove the \"/\" at its end"
	                    : "a destination has no path; write it under paths: [/...]");
}

/* Suggests a known scheme if word looks like a typing error of one, else tcp://. */
static bool refuse_scheme(struct tree *tree, const struct tree_node *node, struct slice word)
{
	static const char *const known[] = {"https", "http", "tcp", "udp", NULL};
	char message[160], small[8];
	const char *nearest;

	if (slice_equals(word, SLICE("wss")) || slice_equals(word, SLICE("ws")))
		return fail(tree, node,
		        word.n == 3 ? "a WebSocket is asked for by a GET: write https://"
		                    : "a WebSocket is asked for by a GET: write http://");
	for (size_t i = 0; i < word.n && i < sizeof(small); i++)
		small[i] = (char)(word.p[i] >= 'A' && word.p[i] <= 'Z' ? word.p[i] - 'A' + 'a'
		                                                       : word.p[i]);
	nearest = word.n <= sizeof(small) ? diag_nearest(slice_of(small, word.n), known) : NULL;
	snprintf(message, sizeof(message),
	        "unknown scheme; known are https, http, tcp and udp%s%s%s",
	        nearest ? "; did you mean \"" : "; another protocol over TCP is tcp://host:port",
	        nearest ? nearest : "", nearest ? "\"?" : "");
	return fail(tree, node, message);
}

/* Takes "scheme://" off text; without one the scheme is https. */
static bool take_scheme(struct tree *tree, const struct tree_node *node, struct slice *text,
        enum policy_scheme *scheme)
{
	const char *mark = memmem(text->p, text->n, "://", 3);
	struct slice word;

	*scheme = POLICY_HTTPS;
	if (!mark)
		return true;
	word = slice_of(text->p, (size_t)(mark - text->p));
	*text = slice_of(mark + 3, text->n - word.n - 3);
	for (int s = 0; s < POLICY_SCHEME_COUNT; s++) {
		*scheme = (enum policy_scheme)s;
		if (slice_equals(word, slice_from_string(policy_scheme_name(*scheme))))
			return true;
	}
	return refuse_scheme(tree, node, word);
}

static bool take_port(
        struct tree *tree, const struct tree_node *node, struct slice text, uint16_t *port)
{
	ptrdiff_t slash = slice_find_byte(text, '/');
	uint64_t value;

	if (slash >= 0)
		return refuse_path(tree, node, slice_of(text.p + slash, text.n - (size_t)slash));
	if (text.n > 5 || !slice_to_u64(text, UINT16_MAX, &value) || value == 0)
		return fail(tree, node,
		        "the port must be a number from 1 to 65535 (ranges go into ports: "
		        "[8000-8100])");
	*port = (uint16_t)value;
	return true;
}

/* True for "user:password@host". Its colon does not precede a port, even if the password has a
 * slash. */
static bool names_user(struct slice text)
{
	ptrdiff_t at = slice_find_byte(text, '@'), slash = slice_find_byte(text, '/');
	ptrdiff_t colon = slice_find_byte(text, ':');
	uint64_t port;

	if (at < 0 || slash < 0 || at < slash)
		return at >= 0;
	return colon >= 0 && colon < slash && text.p[0] != '[' &&
	       !slice_to_u64(slice_of(text.p + colon + 1, (size_t)(slash - colon) - 1), UINT16_MAX,
	               &port);
}

/* True if only bytes of an address occur; text has several colons. */
static bool looks_like_ipv6(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (slice_find_byte(SLICE("0123456789abcdefABCDEF:./"), text.p[i]) < 0)
			return false;
	return true;
}

/* Splits "before[:port]". Colons inside of brackets do not count. */
static bool split_port(
        struct tree *tree, const struct tree_node *node, struct slice *text, uint16_t *port)
{
	ptrdiff_t at;
	struct slice rest;
	bool ipv6;

	if (names_user(*text))
		return fail(tree, node,
		        "a destination names no user; credentials have their own section");
	if (text->n > 0 && text->p[0] == '[') {
		at = slice_find_byte(*text, ']');
		if (at < 0)
			return fail(tree, node, "the bracket is not closed");
		at++;
	} else {
		at = slice_find_byte(*text, ':');
		if (at < 0)
			at = (ptrdiff_t)text->n;
	}
	rest = slice_of(text->p + at, text->n - (size_t)at);
	ipv6 = looks_like_ipv6(*text);
	text->n = (size_t)at;
	if (rest.n == 0)
		return true;
	if (ipv6 && text->n > 0 && text->p[0] != '[' &&
	        slice_find_byte(slice_of(rest.p + 1, rest.n - 1), ':') >= 0)
		return fail(tree, node, "write an IPv6 address in brackets: [2001:db8::1]:443");
	if (rest.p[0] == '/')
		return fail(tree, node,
		        "the number of bits belongs inside of the brackets: [fd00::/8]:443");
	if (rest.p[0] != ':')
		return fail(tree, node, "after \"]\" only \":port\" may follow");
	return take_port(tree, node, slice_of(rest.p + 1, rest.n - 1), port);
}

static struct slice make_key(
        struct arena *arena, enum image_target_kind kind, const void *key, size_t n)
{
	char *p = arena_take(arena, n + 1);

	if (!p)
		return SLICE("");
	p[0] = (char)kind;
	memcpy(p + 1, key, n);
	return slice_of(p, n + 1);
}

static void set_prefix(
        struct arena *arena, const struct ip_prefix *prefix, struct model_destination *out)
{
	uint8_t key[IMAGE_PREFIX_KEY] = {prefix->base.family, prefix->bits};

	memcpy(key + 2, prefix->base.bytes, 16);
	out->key = make_key(arena, TARGET_PREFIX, key, sizeof(key));
}

/* Reports what would be right: the network that contains the address, or the permitted number of
 * bits. bits: the text behind the slash. */
static void refuse_prefix(
        struct tree *tree, const struct tree_node *node, const struct ip *ip, struct slice bits)
{
	unsigned most = ip->family == 6 ? 128 : 32;
	char message[160], text[IP_TEXT_MAX];
	struct ip base = *ip;
	uint64_t n;

	if (!slice_to_u64(bits, most, &n)) {
		snprintf(message, sizeof(message),
		        "not a network: write a number of bits from 0 to %u", most);
	} else {
		for (unsigned i = (unsigned)n; i < most; i++)
			base.bytes[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
		snprintf(message, sizeof(message),
		        "not a network: bits are set behind the first %u; write %s/%u", (unsigned)n,
		        ip_format(&base, text), (unsigned)n);
	}
	fail(tree, node, message);
}

/* True if text is an address or a prefix, or was meant as one; *good tells whether it is valid. */
static bool take_address(struct tree *tree, const struct tree_node *node, struct slice text,
        struct model_destination *out, bool *good)
{
	bool bracket = text.n >= 2 && text.p[0] == '[';
	struct slice inner = bracket ? slice_of(text.p + 1, text.n - 2) : text;
	ptrdiff_t slash = slice_find_byte(inner, '/');
	struct ip_prefix prefix;
	struct ip ip;

	*good = false;
	if (!ip_parse(slash < 0 ? inner : slice_of(inner.p, (size_t)slash), &ip)) {
		if (bracket)
			fail(tree, node,
			        "the brackets hold no IPv6 address and not the word \"public\"");
		return bracket;
	}
	if (bracket != (ip.family == 6)) {
		fail(tree, node,
		        "brackets are for IPv6 addresses, which always need them: [fd00::/8]:443");
	} else if (!ip_prefix_parse(inner, &prefix)) {
		refuse_prefix(tree, node, &ip,
		        slice_of(inner.p + slash + 1, inner.n - (size_t)slash - 1));
	} else {
		set_prefix(tree->arena, &prefix, out);
		*good = true;
	}
	return true;
}

static bool take_host(struct tree *tree, const struct tree_node *node, struct slice text,
        struct model_destination *out)
{
	bool glob = text.n >= 2 && text.p[0] == '*' && text.p[1] == '.';
	char host[POLICY_HOST_MAX + 1];
	ptrdiff_t slash;
	size_t n;

	if (glob)
		text = slice_of(text.p + 2, text.n - 2);
	if (text.n == 0)
		return fail(tree, node, "the host is empty");
	slash = slice_find_byte(text, '/');
	if (slash >= 0)
		return refuse_path(tree, node, slice_of(text.p + slash, text.n - (size_t)slash));
	if (slice_equals(text, SLICE("*")))
		return fail(tree, node,
		        "no pattern means every host: name the hosts that are needed; a run with "
		        "\"mode: observe\" shows which");
	if (slice_find_byte(text, '*') >= 0)
		return fail(tree, node,
		        "a wildcard stands only at the front, for whole labels: *.example.com");
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] >= 0x80)
			return fail(
			        tree, node, "host names are written in their ASCII form (xn--...)");
	if (text.p[0] == '.' && text.n > 1)
		return fail(tree, node,
		        "for the names below a domain write *.example.com, for the domain itself "
		        "its name alone");
	if (slice_find_byte(text, ',') >= 0)
		return fail(tree, node,
		        "this is one host; write several as a list: [a.example, b.example]");
	if (!url_canonical_host(text, host, &n))
		return fail(tree, node,
		        "not a host name: labels of 1 to 63 letters, digits, '-' or '_', 253 bytes "
		        "in all, the last label not a number");
	out->key = make_key(tree->arena, glob ? TARGET_GLOB : TARGET_HOST, host, n);
	return true;
}

/* "[public]" becomes the networks of all addresses, which mean only public ones
 * (ip_network_means). */
static void set_public(struct arena *arena, struct model_destination out[LOAD_DESTINATIONS_EACH])
{
	const struct ip_prefix all4 = {.base.family = 4}, all6 = {.base.family = 6};

	out[0].is_public = true;
	out[1] = out[0];
	set_prefix(arena, &all4, &out[0]);
	set_prefix(arena, &all6, &out[1]);
}

size_t load_destination(struct loader *l, struct tree *tree, const struct tree_node *written,
        struct model_destination out[LOAD_DESTINATIONS_EACH])
{
	struct tree_node replaced = *written;
	const struct tree_node *node = &replaced;
	struct slice text;
	bool good;

	memset(out, 0, LOAD_DESTINATIONS_EACH * sizeof(*out));
	if (!tree_text(tree, node, "a destination", LOAD_DESTINATION_MAX, &text) ||
	        !variables_in_destination(l, tree, written, &text))
		return 0;
	replaced.text = text;
	out->text = text;
	out->mark = mark_of(tree, node);
	if (!take_scheme(tree, node, &text, &out->scheme) ||
	        !split_port(tree, node, &text, &out->port))
		return 0;
	if (slice_equals(text, SLICE("[public]"))) {
		set_public(tree->arena, out);
		return 2;
	}
	if (take_address(tree, node, text, out, &good))
		return good;
	return take_host(tree, node, text, out);
}
