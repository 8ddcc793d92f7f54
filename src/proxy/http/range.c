/* SPDX-License-Identifier: Apache-2.0 */
/* Range and Content-Range, read strictly: a value that another program could read differently is
 * refused. */
#include "proxy/http/range.h"

#include <inttypes.h>
#include <stdio.h>

/* Takes the unit, in capital or small letters, off the front of s. */
static bool take_unit(struct slice *s, struct slice unit)
{
	if (s->n < unit.n || !slice_equals_ignoring_case(slice_of(s->p, unit.n), unit))
		return false;
	*s = slice_of(s->p + unit.n, s->n - unit.n);
	return true;
}

/* Splits s at its first c. Returns false if it has none. */
static bool split(struct slice s, char c, struct slice *before, struct slice *after)
{
	ptrdiff_t at = slice_find_byte(s, c);

	if (at < 0)
		return false;
	*before = slice_of(s.p, (size_t)at);
	*after = slice_of(s.p + at + 1, s.n - (size_t)at - 1);
	return true;
}

bool http_range_read(struct slice value, struct http_range *r)
{
	struct slice first, last;

	*r = (struct http_range){0};
	if (!take_unit(&value, SLICE("bytes=")) || !split(slice_trim(value), '-', &first, &last))
		return false;
	if (!first.n)
		return slice_to_u64(last, HTTP_POSITION_MAX, &r->suffix) && r->suffix;
	if (!slice_to_u64(first, HTTP_POSITION_MAX, &r->first))
		return false;
	r->open = !last.n;
	return r->open || (slice_to_u64(last, HTTP_POSITION_MAX, &r->last) && r->last >= r->first);
}

bool http_content_range_read(struct slice value, struct http_content_range *r)
{
	struct slice part, total, first, last;

	*r = (struct http_content_range){0};
	if (!take_unit(&value, SLICE("bytes ")) || !split(value, '/', &part, &total) ||
	        !split(part, '-', &first, &last) ||
	        !slice_to_u64(first, HTTP_POSITION_MAX, &r->first) ||
	        !slice_to_u64(last, HTTP_POSITION_MAX, &r->last) || r->last < r->first)
		return false;
	r->has_total = !slice_equals(total, SLICE("*"));
	return !r->has_total ||
	       (slice_to_u64(total, HTTP_POSITION_MAX, &r->total) && r->last < r->total);
}

struct slice http_range_text(const struct http_range *r, char text[HTTP_RANGE_TEXT_MAX])
{
	int n;

	if (r->suffix)
		n = snprintf(text, HTTP_RANGE_TEXT_MAX, "bytes=-%" PRIu64, r->suffix);
	else if (r->open)
		n = snprintf(text, HTTP_RANGE_TEXT_MAX, "bytes=%" PRIu64 "-", r->first);
	else
		n = snprintf(
		        text, HTTP_RANGE_TEXT_MAX, "bytes=%" PRIu64 "-%" PRIu64, r->first, r->last);
	return slice_of(text, (size_t)n);
}

struct slice http_content_range_text(
        const struct http_content_range *r, char text[HTTP_RANGE_TEXT_MAX])
{
	char total[24] = "*";
	int n;

	if (r->has_total)
		snprintf(total, sizeof(total), "%" PRIu64, r->total);
	n = snprintf(text, HTTP_RANGE_TEXT_MAX, "bytes %" PRIu64 "-%" PRIu64 "/%s", r->first,
	        r->last, total);
	return slice_of(text, (size_t)n);
}
