/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: hosts, authorities and URLs are read once, strictly, into a canonical
 * struct. Whatever two readers could understand differently (userinfo, numbers that look like
 * hosts, empty ports, raw controls) is refused, not repaired. Paths are in url_path.c.
 */
#include "vethguard/policy/url.h"

#define LABEL_MAX 63 /* RFC 1035 section 2.3.4 */
#define PORT_DIGITS_MAX 5

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* A byte of a host name in lower case, or 0 if the byte is not allowed there. */
static char host_byte(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	if ((c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '.')
		return c;
	return 0;
}

/* True for a last label that some resolver would read as a number: "10", "0x7f", "0x". No top-level
 * domain looks like that. */
static bool label_is_number(const char *p, size_t n)
{
	size_t i = 0;
	bool hex = n >= 2 && p[0] == '0' && p[1] == 'x';

	if (hex)
		i = 2;
	for (; i < n; i++)
		if (hex ? !is_hex(p[i]) : !is_digit(p[i]))
			return false;
	return true;
}

bool url_canonical_host(struct slice host, char out[POLICY_HOST_MAX + 1], size_t *n)
{
	size_t label = 0; /* where the current label starts */
	size_t i;

	if (host.n > 0 && host.p[host.n - 1] == '.')
		host.n--;
	if (host.n == 0 || host.n > POLICY_HOST_MAX)
		return false;
	for (i = 0; i < host.n; i++) {
		out[i] = host_byte(host.p[i]);
		if (out[i] == 0)
			return false;
		if (out[i] != '.')
			continue;
		if (i == label || i - label > LABEL_MAX)
			return false;
		label = i + 1;
	}
	if (i == label || i - label > LABEL_MAX || label_is_number(out + label, i - label))
		return false;
	out[i] = '\0';
	*n = i;
	return true;
}

/* "1" to "65535", without leading zeros. */
static bool parse_port(struct slice text, uint16_t *port)
{
	uint64_t value;

	if (text.n > PORT_DIGITS_MAX || text.n == 0 || text.p[0] == '0')
		return false;
	if (!slice_to_u64(text, UINT16_MAX, &value))
		return false;
	*port = (uint16_t)value;
	return true;
}

/* Splits off what follows the host; *rest then should be empty or ":port". */
static bool split_authority(struct slice text, struct slice *host, struct slice *rest)
{
	ptrdiff_t at;

	if (text.n > 0 && text.p[0] == '[')
		at = slice_find_byte(text, ']') + 1;
	else
		at = slice_find_byte(text, ':');
	if (at == 0)
		return false; /* "[" without "]", or an empty host */
	if (at < 0)
		at = (ptrdiff_t)text.n;
	*host = slice_of(text.p, (size_t)at);
	*rest = slice_of(text.p + at, text.n - (size_t)at);
	return true;
}

static bool parse_host_or_address(struct slice host, struct url_authority *out)
{
	if (host.n > 2 && host.p[0] == '[')
		return ip_parse(slice_of(host.p + 1, host.n - 2), &out->address) &&
		       out->address.family == 6 && host.p[1] != '[';
	if (ip_parse(host, &out->address) && out->address.family == 4)
		return true;
	out->address = (struct ip){0};
	return url_canonical_host(host, out->host, &out->host_n);
}

bool url_parse_authority(struct slice text, struct url_authority *out)
{
	struct slice host, rest;

	memset(out, 0, sizeof(*out));
	if (text.n == 0 || !split_authority(text, &host, &rest))
		return false;
	if (!parse_host_or_address(host, out))
		return false;
	if (rest.n == 0)
		return true;
	return rest.p[0] == ':' && parse_port(slice_of(rest.p + 1, rest.n - 1), &out->port);
}

/* Takes "scheme://" off the front of text. */
static bool take_scheme(struct slice *text, enum policy_scheme *scheme)
{
	for (int s = 0; s < POLICY_SCHEME_COUNT; s++) {
		struct slice name = slice_from_string(policy_scheme_name((enum policy_scheme)s));

		if (text->n < name.n + 3 || memcmp(text->p + name.n, "://", 3) != 0)
			continue;
		if (!slice_equals_ignoring_case(slice_of(text->p, name.n), name))
			continue;
		*scheme = (enum policy_scheme)s;
		*text = slice_of(text->p + name.n + 3, text->n - name.n - 3);
		return true;
	}
	return false;
}

static bool has_only_visible_ascii(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] >= 0x7f || text.p[i] == '#')
			return false;
	return true;
}

/* Sets path and query from what follows the authority. */
static void split_path(struct slice rest, struct url *out)
{
	ptrdiff_t mark = slice_find_byte(rest, '?');

	out->path = rest;
	out->query = slice_of(rest.p + rest.n, 0);
	if (mark >= 0) {
		out->path = slice_of(rest.p, (size_t)mark);
		out->query = slice_of(rest.p + mark + 1, rest.n - (size_t)mark - 1);
	}
	if (out->path.n == 0)
		out->path = SLICE("/");
}

bool url_parse(struct slice text, struct url *out)
{
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	if (!has_only_visible_ascii(text) || !take_scheme(&text, &out->scheme))
		return false;
	while (n < text.n && text.p[n] != '/' && text.p[n] != '?')
		n++;
	if (!url_parse_authority(slice_of(text.p, n), &out->authority))
		return false;
	split_path(slice_of(text.p + n, text.n - n), out);
	if (out->authority.port == 0)
		out->authority.port = policy_scheme_default_port(out->scheme);
	if (out->scheme == POLICY_HTTPS || out->scheme == POLICY_HTTP)
		return true;
	/* tcp and udp have no path, and a port must have been given */
	return out->authority.port != 0 && out->path.n == 1 && text.n <= n + 1 && out->query.n == 0;
}
