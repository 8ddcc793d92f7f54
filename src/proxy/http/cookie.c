/* SPDX-License-Identifier: Apache-2.0 */
/* The pairs of a Cookie field (RFC 6265 section 5.4), as a server may read them. */
#include "proxy/http/cookie.h"

bool cookie_next(struct slice *rest, struct slice *pair)
{
	while (rest->n) {
		ptrdiff_t end = slice_find_byte(*rest, ';');
		size_t n = end < 0 ? rest->n : (size_t)end;

		*pair = slice_trim(slice_of(rest->p, n));
		n += end >= 0;
		*rest = slice_of(rest->p + n, rest->n - n);
		if (pair->n)
			return true;
	}
	return false;
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* The name that begins at the byte at. */
static bool is_named(struct slice pair, size_t at, struct slice name)
{
	size_t i = 0;

	while (at < pair.n && pair.p[at] != '=' && pair.p[at] != ' ' && pair.p[at] != '\t') {
		char c = pair.p[at++];

		if (c == '%' && pair.n - at >= 2 && slice_hex_digit(pair.p[at]) >= 0 &&
		        slice_hex_digit(pair.p[at + 1]) >= 0) {
			c = (char)(slice_hex_digit(pair.p[at]) << 4 |
			           slice_hex_digit(pair.p[at + 1]));
			at += 2;
		}
		if (i == name.n || lower(name.p[i++]) != lower(c))
			return false;
	}
	return i == name.n;
}

/* Python's http.cookies begins a new pair after white space, and RFC 2965 after a comma. */
static bool begins_pair(char before)
{
	return before == ' ' || before == '\t' || before == ',';
}

bool cookie_is(struct slice pair, struct slice name)
{
	for (size_t at = 0; at < pair.n; at++)
		if ((at == 0 || begins_pair(pair.p[at - 1])) && is_named(pair, at, name))
			return true;
	return false;
}
