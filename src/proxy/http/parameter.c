/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a query, as servers read them (application/x-www-form-urlencoded). */
#include "proxy/http/http.h"

bool http_parameter_next(struct slice *rest, struct slice *pair)
{
	while (rest->n) {
		ptrdiff_t amp = slice_find_byte(*rest, '&');
		size_t n = amp < 0 ? rest->n : (size_t)amp;

		*pair = slice_of(rest->p, n);
		n += amp >= 0;
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

bool http_parameter_is(struct slice pair, struct slice name, bool any_case)
{
	size_t at = 0, i = 0;

	while (at < pair.n && pair.p[at] != '=') {
		char c = pair.p[at++];

		if (c == '%' && pair.n - at >= 2 && slice_hex_digit(pair.p[at]) >= 0 &&
		        slice_hex_digit(pair.p[at + 1]) >= 0) {
			c = (char)(slice_hex_digit(pair.p[at]) << 4 |
			           slice_hex_digit(pair.p[at + 1]));
			at += 2;
		} else if (c == '+') {
			c = ' ';
		}
		if (i == name.n || name.p[i++] != (any_case ? lower(c) : c))
			return false;
	}
	return i == name.n;
}
