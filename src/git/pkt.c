/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pkt-lines. The hex digits of a length may have either case, those of an id are lower
 * case. */
#include "git/pkt.h"

#define LENGTH_DIGITS 4u

static bool read_length(struct slice rest, size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < LENGTH_DIGITS; i++) {
		int digit = rest.n < LENGTH_DIGITS ? -1 : slice_hex_digit(rest.p[i]);

		if (digit < 0)
			return false;
		*n = *n << 4 | (size_t)digit;
	}
	return true;
}

enum pkt pkt_next(struct slice *rest, struct slice *line)
{
	size_t n;

	*line = SLICE("");
	if (rest->n == 0)
		return PKT_END;
	if (!read_length(*rest, &n) || n == 2 || n == 3 || n == LENGTH_DIGITS || n > PKT_MAX ||
	        n > rest->n)
		return PKT_BAD;
	if (n < LENGTH_DIGITS) {
		*rest = slice_of(rest->p + LENGTH_DIGITS, rest->n - LENGTH_DIGITS);
		return n == 0 ? PKT_FLUSH : PKT_DELIM;
	}
	*line = slice_of(rest->p + LENGTH_DIGITS, n - LENGTH_DIGITS);
	*rest = slice_of(rest->p + n, rest->n - n);
	return PKT_LINE;
}

struct slice pkt_chomp(struct slice line)
{
	if (line.n && line.p[line.n - 1] == '\n')
		line.n--;
	return line;
}

bool pkt_id(struct slice *line, size_t n, uint8_t *out)
{
	if (line->n < 2 * n)
		return false;
	for (size_t i = 0; i < 2 * n; i++) {
		char c = line->p[i];
		int digit = c >= 'A' && c <= 'F' ? -1 : slice_hex_digit(c);

		if (digit < 0)
			return false;
		out[i / 2] = (uint8_t)(out[i / 2] << 4 | digit);
	}
	*line = slice_of(line->p + 2 * n, line->n - 2 * n);
	return true;
}

bool pkt_is_text(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return false;
	return true;
}
