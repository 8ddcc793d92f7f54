/* SPDX-License-Identifier: Apache-2.0 */
/* Reads hosts, ports, methods, paths and lines as other programs write them. */
#include <stdio.h>

#include "policy/import/import.h"
#include "policy/load/loader.h"
#include "vethguard/base/ip.h"
#include "vethguard/policy/method.h"
#include "vethguard/policy/url.h"

#define WRITE_HOST "write a host (example.com), a wildcard (*.example.com), an address or a network"

/* Takes ":port" off the end, if it is there. False after a report. */
static bool take_port(struct import *im, struct import_place at, struct slice *text, uint16_t *out)
{
	size_t colon = text->n;
	char quoted[TREE_QUOTE_MAX];
	uint64_t port;

	while (colon > 0 && text->p[colon - 1] != ':' && text->p[colon - 1] != ']')
		colon--;
	if (colon == 0 || text->p[colon - 1] != ':')
		return true;
	/* More than one colon without brackets is an IPv6 address. */
	if (text->p[0] != '[' && memchr(text->p, ':', colon - 1))
		return true;
	if (!slice_to_u64(slice_of(text->p + colon, text->n - colon), UINT16_MAX, &port) ||
	        port == 0) {
		import_fault(im, at, "%s: a port is a number from 1 to 65535",
		        tree_quote(*text, quoted));
		return false;
	}
	*out = (uint16_t)port;
	text->n = colon - 1;
	return true;
}

/* True if no address of the network is public. */
static bool is_inner(const struct ip_prefix *network)
{
	enum ip_class class = ip_classify(&network->base);
	struct ip last = network->base;

	for (unsigned i = network->bits; i < (network->base.family == 4 ? 32u : 128u); i++)
		last.bytes[i / 8] |= (uint8_t)(0x80 >> (i % 8));
	if (class == IP_PUBLIC)
		return false;
	/* Each of these is one range, so the network's first and last address tell. */
	if (class == IP_LOOPBACK || class == IP_LINK_LOCAL)
		return ip_classify(&last) == class;
	return ip_network_means(network, &network->base);
}

static bool read_network(struct import *im, struct slice text, struct import_host *out)
{
	char written[IP_TEXT_MAX];
	struct ip_prefix network;
	struct slice bare = text;
	bool one;

	if (bare.n > 1 && bare.p[0] == '[' && bare.p[bare.n - 1] == ']')
		bare = slice_of(bare.p + 1, bare.n - 2);
	if (!ip_prefix_parse(bare, &network))
		return false;
	ip_format(&network.base, written);
	one = network.bits == (network.base.family == 4 ? 32 : 128);
	out->kind = IMPORT_NETWORK;
	out->is_public = !is_inner(&network);
	if (network.base.family == 6 && one)
		out->text = arena_printf(&im->arena, "[%s]", written);
	else if (network.base.family == 6)
		out->text = arena_printf(&im->arena, "[%s/%u]", written, network.bits);
	else if (one)
		out->text = arena_printf(&im->arena, "%s", written);
	else
		out->text = arena_printf(&im->arena, "%s/%u", written, network.bits);
	return true;
}

/* True if the last label is a number: some programs take such a name for an address. */
static bool ends_in_number(struct slice name)
{
	size_t at = name.n;

	while (at > 0 && name.p[at - 1] >= '0' && name.p[at - 1] <= '9')
		at--;
	return at < name.n && (at == 0 || name.p[at - 1] == '.');
}

static bool read_name(struct import *im, struct slice text, struct import_host *out)
{
	char host[POLICY_HOST_MAX + 1];
	size_t n;

	out->kind = IMPORT_NAME;
	if (slice_starts_with(text, SLICE("**."))) {
		out->kind = IMPORT_DEEP;
		text = slice_of(text.p + 3, text.n - 3);
	} else if (slice_starts_with(text, SLICE("*."))) {
		out->kind = IMPORT_BELOW;
		text = slice_of(text.p + 2, text.n - 2);
	}
	if (!url_canonical_host(text, host, &n) || n == 0 || ends_in_number(slice_of(host, n)))
		return false;
	out->text = arena_copy(&im->arena, slice_of(host, n));
	return true;
}

bool import_read_host(struct import *im, struct import_place at, struct slice text, bool port,
        struct import_host *out)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice whole = text;

	*out = (struct import_host){.kind = IMPORT_ANY};
	if (port && !take_port(im, at, &text, &out->port))
		return false;
	if (slice_equals(text, SLICE("*")) || slice_equals(text, SLICE("**")))
		return true;
	if (read_network(im, text, out) || read_name(im, text, out))
		return true;
	if (memchr(text.p, '*', text.n))
		import_note(im, at,
		        "%s: a wildcard stands only for whole labels at the front of a host; left "
		        "out",
		        tree_quote(whole, quoted));
	else
		import_fault(im, at, "%s is no host: " WRITE_HOST, tree_quote(whole, quoted));
	return false;
}

static bool is_plain(struct slice segment)
{
	for (size_t i = 0; i < segment.n; i++) {
		char c = segment.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            (c && strchr("-._~@:+=,*", c))))
			return false;
	}
	return true;
}

bool import_path(struct import *im, struct slice pattern, bool deny, struct slice *out)
{
	char text[2 * POLICY_PATH_MAX];
	size_t n = 0, at = 0;

	if (pattern.n == 0 || pattern.n > POLICY_PATH_MAX / 2 || pattern.p[0] != '/')
		return false;
	while (at < pattern.n) {
		const char *slash = memchr(pattern.p + at + 1, '/', pattern.n - at - 1);
		size_t end = slash ? (size_t)(slash - pattern.p) : pattern.n;
		struct slice segment = slice_of(pattern.p + at + 1, end - at - 1);
		bool all = slice_equals(segment, SLICE("**"));

		if (!is_plain(segment) || slice_equals(segment, SLICE(".")) ||
		        slice_equals(segment, SLICE("..")) || (segment.n == 0 && end < pattern.n) ||
		        (!all && segment.n > 0 && memmem(segment.p, segment.n, "**", 2)))
			return false;
		/* "**" stands for one segment or more there, and for none or more in a policy. */
		n += (size_t)snprintf(text + n, sizeof(text) - n, "/%s%.*s",
		        all && !deny ? "*/" : "", SLICE_ARG(segment));
		at = end;
	}
	*out = arena_copy(&im->arena, slice_of(text, n));
	return true;
}

bool import_method(struct import *im, struct slice text, struct slice *out)
{
	char upper[POLICY_METHOD_MAX];

	if (text.n == 0 || text.n > sizeof(upper))
		return false;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		upper[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
		if (upper[i] < 'A' || upper[i] > 'Z')
			return false;
	}
	*out = arena_copy(&im->arena, slice_of(upper, text.n));
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Splits a line into words. Quotes hold a word together, and a word's "#" begins a comment. */
static bool split(struct import *im, struct slice text, struct import_place at,
        struct import_word words[IMPORT_WORDS_MAX], size_t *count)
{
	size_t i = 0, n = 0;

	*count = 0;
	for (;;) {
		size_t begin;
		char quote = 0;

		while (i < text.n && is_space(text.p[i]))
			i++;
		if (i == text.n || text.p[i] == '#')
			return true;
		if (*count == IMPORT_WORDS_MAX) {
			import_fault(im, at, "more than %d words in one line", IMPORT_WORDS_MAX);
			return false;
		}
		begin = n;
		words[*count].column = at.column + (unsigned)i;
		for (; i < text.n && (quote || !is_space(text.p[i])); i++)
			if (quote ? text.p[i] == quote : text.p[i] == '"' || text.p[i] == '\'')
				quote = quote ? 0 : text.p[i];
			else
				im->room[n++] = text.p[i];
		if (quote) {
			import_fault(im, (struct import_place){at.line, words[*count].column},
			        "a quote %c begins here and does not end in this line", quote);
			return false;
		}
		words[(*count)++].text = slice_of(im->room + begin, n - begin);
	}
}

bool import_next_line(struct import *im, struct slice *rest, unsigned *line,
        struct import_word words[IMPORT_WORDS_MAX], size_t *count, struct import_place *at)
{
	size_t n = 0;

	if (rest->n == 0 || im->wrong || im->arena.failed || im->no_memory)
		return false;
	*at = (struct import_place){*line + 1, 1};
	for (bool more = true; more && rest->n > 0;) {
		const char *end = memchr(rest->p, '\n', rest->n);
		size_t length = end ? (size_t)(end - rest->p) : rest->n, taken = length;

		++*line;
		if (taken > 0 && rest->p[taken - 1] == '\r')
			taken--;
		more = taken > 0 && rest->p[taken - 1] == '\\';
		if (n + taken >= IMPORT_LINE_MAX) {
			import_fault(
			        im, *at, "the line has more than %d bytes", IMPORT_LINE_MAX - 1);
			return false;
		}
		memcpy(im->joined + n, rest->p, taken - more);
		n += taken - more;
		*rest = slice_of(
		        rest->p + length + (end != NULL), rest->n - length - (end != NULL));
	}
	return split(im, slice_of(im->joined, n), *at, words, count);
}
