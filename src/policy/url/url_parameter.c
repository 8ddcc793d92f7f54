/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a query, as servers read them (application/x-www-form-urlencoded). Some servers
 * separate them by ';' too, as HTML 4 proposed. */
#include "vethguard/policy/url.h"

static bool separates(char c)
{
	return c == '&' || c == ';';
}

bool url_parameter_next(struct slice *rest, struct slice *pair)
{
	while (rest->n) {
		size_t n = 0;

		while (n < rest->n && !separates(rest->p[n]))
			n++;
		*pair = slice_of(rest->p, n);
		n += n < rest->n;
		*rest = slice_of(rest->p + n, rest->n - n);
		if (pair->n)
			return true;
	}
	return false;
}

/* PHP reads "access token" and "access.token" as "access_token". */
static char alike(char c)
{
	if (c == '_' || c == '.' || c == ' ')
		return '-';
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Takes one decoded byte off the pair. */
static char next_byte(struct slice pair, size_t *at)
{
	char c = pair.p[(*at)++];

	if (c == '+')
		return ' ';
	if (c != '%' || pair.n - *at < 2 || slice_hex_digit(pair.p[*at]) < 0 ||
	        slice_hex_digit(pair.p[*at + 1]) < 0)
		return c;
	c = (char)(slice_hex_digit(pair.p[*at]) << 4 | slice_hex_digit(pair.p[*at + 1]));
	*at += 2;
	return c;
}

struct slice url_parameter_value(struct slice pair)
{
	ptrdiff_t at = slice_find_byte(pair, '=');

	return at < 0 ? SLICE("") : slice_of(pair.p + at + 1, pair.n - (size_t)at - 1);
}

struct slice url_parameter_decode(struct slice text, char *out)
{
	size_t n = 0;

	for (size_t at = 0; at < text.n;)
		out[n++] = next_byte(text, &at);
	return slice_of(out, n);
}

bool url_escapes_are_sound(struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		int high, low;

		if (text.p[i] != '%')
			continue;
		if (text.n - i < 3)
			return false;
		high = slice_hex_digit(text.p[i + 1]);
		low = slice_hex_digit(text.p[i + 2]);
		if (high < 0 || low < 0 || (high | low) == 0)
			return false;
	}
	return true;
}

bool url_parameter_is(struct slice pair, struct slice name)
{
	size_t at = 0, i = 0;

	while (at < pair.n && pair.p[at] != '=')
		if (i == name.n || next_byte(pair, &at) != name.p[i++])
			return false;
	return i == name.n;
}

bool url_parameter_resembles(struct slice pair, struct slice name)
{
	size_t at = 0, i = 0;

	while (at < pair.n && pair.p[at] != '=') {
		char c = next_byte(pair, &at);

		if (c == '[' && i > 0) /* the first of several: "key[]" */
			break;
		if (c == ' ' && i == 0)
			continue;
		if (i == name.n || alike(c) != alike(name.p[i++]))
			return false;
	}
	return i == name.n;
}
