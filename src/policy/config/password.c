/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a password in a URL is taken out of the file's text before anything else
 * reads that text. It goes into locked memory, and "x" bytes replace it, so neither the parser's
 * memory nor any message can contain it. A password is recognized by its shape alone,
 * "://user:password@", with the bytes that RFC 3986 section 3.2.1 permits there. A URL written with
 * YAML escapes is not recognized, and is refused later for the text before its "@".
 */
#include <string.h>

#include "policy/config/read.h"
#include "policy/load/loader.h"

static bool is_user_info(char c)
{
	bool alnum = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

	return alnum || (c != '\0' && strchr("-._~%!$&'()*+,;=:", c));
}

/* Finds the password of the URL whose "://" ends at from: returns its length, or 0 for none; *at is
 * its first byte. */
static size_t find_password(const char *text, size_t n, size_t from, size_t *at)
{
	size_t end = from, colon = SIZE_MAX;

	for (; end < n && is_user_info(text[end]); end++)
		if (text[end] == ':' && colon == SIZE_MAX)
			colon = end;
	if (end == n || text[end] != '@' || colon == SIZE_MAX)
		return 0;
	*at = colon + 1;
	return end - *at;
}

int config_take_password(char *text, size_t n, struct secret *out)
{
	const char *mark;
	size_t from = 0;

	while ((mark = memmem(text + from, n - from, "://", 3))) {
		size_t at, length;
		int rc;

		from = (size_t)(mark - text) + 3;
		length = find_password(text, n, from, &at);
		if (length == 0)
			continue;
		if (!out->p && length <= CONFIG_EGRESS_ENCODED_MAX) {
			rc = secret_copy(out, text + at, length);
			if (rc < 0) {
				secret_wipe(text + at, length);
				return rc;
			}
		} else if (out->p) {
			out->n = 0; /* two passwords: it is unknown which one is meant */
		}
		memset(text + at, 'x', length);
	}
	return 0;
}

bool config_decode(char *p, size_t *n)
{
	size_t out = 0;

	for (size_t i = 0; i < *n; i++, out++) {
		int high, low;

		p[out] = p[i];
		if (p[i] != '%')
			continue;
		if (*n - i < 3 || (high = slice_hex_digit(p[i + 1])) < 0 ||
		        (low = slice_hex_digit(p[i + 2])) < 0)
			return false;
		p[out] = (char)(high << 4 | low);
		if ((unsigned char)p[out] < 0x20 || p[out] == 0x7f)
			return false;
		i += 2;
	}
	memset(p + out, 0, *n - out);
	*n = out;
	return true;
}
