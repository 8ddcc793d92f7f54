/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http/http_text.h"

size_t http_text_head_end(const uint8_t *p, size_t n, size_t *looked)
{
	for (size_t i = *looked; i < n; i++) {
		if (p[i] != '\n')
			continue;
		if (i == 0 || p[i - 1] != '\r')
			return SIZE_MAX;
		if (i >= 3 && p[i - 2] == '\n')
			return i + 1;
	}
	*looked = n;
	return 0;
}

struct slice http_text_take_line(struct slice *rest)
{
	ptrdiff_t end = slice_find_byte(*rest, '\n');
	struct slice line = slice_of(rest->p, end > 0 ? (size_t)end - 1 : 0);

	*rest = slice_of(rest->p + end + 1, rest->n - (size_t)end - 1);
	return line;
}

bool http_text_read_field(struct slice line, struct slice *name, struct slice *value)
{
	size_t n = slice_token_length(line);

	if (n == 0 || n == line.n || line.p[n] != ':')
		return false;
	*name = slice_of(line.p, n);
	*value = slice_trim(slice_of(line.p + n + 1, line.n - n - 1));
	return http_text_is_value(*value);
}

bool http_text_is_value(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (((uint8_t)s.p[i] < 0x20 && s.p[i] != '\t') || (uint8_t)s.p[i] == 0x7f)
			return false;
	return true;
}

bool http_text_is_visible(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] <= 0x20 || (uint8_t)s.p[i] >= 0x7f)
			return false;
	return s.n > 0;
}
