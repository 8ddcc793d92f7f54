/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical request: the text that both sides of a signature must write byte for byte. Fields
 * and parameters are sorted as slices; nothing is copied before it is written to the caller's
 * buffer.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/sign/sigv4.h"

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

static int escape_byte(struct buf *out, char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char escape[3] = {'%', digits[(uint8_t)c >> 4], digits[(uint8_t)c & 15]};

	return buf_append(out, escape, sizeof(escape));
}

int sigv4_escape(struct buf *out, struct slice bytes, bool slash)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < bytes.n;) {
		size_t n = 0;

		while (i + n < bytes.n &&
		        (is_unreserved(bytes.p[i + n]) || (slash && bytes.p[i + n] == '/')))
			n++;
		if (n)
			rc = buf_append(out, bytes.p + i, n);
		else
			rc = escape_byte(out, bytes.p[i++]);
		i += n;
	}
	return rc;
}

static bool is_escape(struct slice s, size_t at)
{
	return s.p[at] == '%' && s.n - at > 2 && slice_hex_digit(s.p[at + 1]) >= 0 &&
	       slice_hex_digit(s.p[at + 2]) >= 0;
}

/* --- the path --- */

/* Writes the path as it was sent; bytes that need an escape and have none get one. */
static int put_s3_path(struct buf *out, struct slice path)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < path.n; i++)
		if (is_escape(path, i))
			rc = buf_append(out, path.p + i, 1);
		else
			rc = sigv4_escape(out, slice_of(path.p + i, 1), true);
	return rc;
}

struct segments {
	size_t n;
	bool slash; /* the path ends with one */
	struct slice items[SIGV4_PARAMETERS_MAX];
};

/* Splits the path into segments, without empty and dot segments. Returns -E2BIG if there are too
 * many. */
static int split_path(struct segments *out, struct slice path)
{
	out->n = 0;
	out->slash = path.n && path.p[path.n - 1] == '/';
	while (path.n) {
		ptrdiff_t slash = slice_find_byte(path, '/');
		size_t n = slash < 0 ? path.n : (size_t)slash;
		struct slice segment = slice_of(path.p, n);

		n += slash >= 0;
		path = slice_of(path.p + n, path.n - n);
		if (slice_equals(segment, SLICE("..")))
			out->n -= out->n > 0;
		else if (segment.n && !slice_equals(segment, SLICE("."))) {
			if (out->n == SIGV4_PARAMETERS_MAX)
				return -E2BIG;
			out->items[out->n++] = segment;
		}
		out->slash |= !path.n && (slice_equals(segment, SLICE(".")) ||
		                                 slice_equals(segment, SLICE("..")));
	}
	return 0;
}

static int put_path(struct buf *out, struct slice path)
{
	struct segments segments;
	int rc = split_path(&segments, path);

	for (size_t i = 0; rc == 0 && i < segments.n; i++) {
		rc = buf_append(out, "/", 1);
		if (rc == 0)
			rc = sigv4_escape(out, segments.items[i], false);
	}
	if (rc == 0 && (segments.slash || !segments.n))
		rc = buf_append(out, "/", 1);
	return rc;
}

/* --- the query --- */

static int put_decoded(struct buf *out, struct slice part)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < part.n; i++) {
		char c = part.p[i] == '+' ? ' ' : part.p[i];

		if (is_escape(part, i)) {
			c = (char)((unsigned)slice_hex_digit(part.p[i + 1]) << 4 |
			           (unsigned)slice_hex_digit(part.p[i + 2]));
			i += 2;
		}
		rc = sigv4_escape(out, slice_of(&c, 1), false);
	}
	return rc;
}

/* Takes the next parameter off the query; empty ones included. */
static struct slice next_parameter(struct slice *rest)
{
	ptrdiff_t end = slice_find_byte(*rest, '&');
	size_t n = end < 0 ? rest->n : (size_t)end;
	struct slice pair = slice_of(rest->p, n);

	n += end >= 0;
	*rest = slice_of(rest->p + n, rest->n - n);
	return pair;
}

int sigv4_write_query(struct buf *out, struct slice query)
{
	bool first = true;
	int rc = 0;

	while (rc == 0 && query.n) {
		struct slice pair = next_parameter(&query);
		ptrdiff_t equals = slice_find_byte(pair, '=');
		size_t n = equals < 0 ? pair.n : (size_t)equals;

		if (!pair.n)
			continue;
		if (!first)
			rc = buf_append(out, "&", 1);
		first = false;
		if (rc == 0)
			rc = put_decoded(out, slice_of(pair.p, n));
		if (rc == 0 && equals >= 0)
			rc = buf_append(out, "=", 1);
		if (rc == 0 && equals >= 0)
			rc = put_decoded(out, slice_of(pair.p + n + 1, pair.n - n - 1));
	}
	return rc;
}

static int compare(struct slice a, struct slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Compares by name, then by value. */
static int compare_parameters(const void *a, const void *b)
{
	const struct sigv4_field *x = a, *y = b;
	int order = compare(x->name, y->name);

	return order ? order : compare(x->value, y->value);
}

static int put_query(struct buf *out, struct slice query)
{
	struct sigv4_field parameters[SIGV4_PARAMETERS_MAX];
	size_t count = 0;
	int rc = 0;

	while (query.n) {
		struct slice pair = next_parameter(&query);
		ptrdiff_t equals = slice_find_byte(pair, '=');
		size_t n = equals < 0 ? pair.n : (size_t)equals;

		if (count == SIGV4_PARAMETERS_MAX)
			return -E2BIG;
		parameters[count].name = slice_of(pair.p, n);
		parameters[count++].value =
		        equals < 0 ? SLICE("") : slice_of(pair.p + n + 1, pair.n - n - 1);
	}
	if (count)
		qsort(parameters, count, sizeof(*parameters), compare_parameters);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (i)
			rc = buf_append(out, "&", 1);
		if (rc == 0)
			rc = buf_append_slice(out, parameters[i].name);
		if (rc == 0)
			rc = buf_append(out, "=", 1);
		if (rc == 0)
			rc = buf_append_slice(out, parameters[i].value);
	}
	return rc;
}

/* --- the fields --- */

struct sorted {
	size_t n;
	const struct sigv4_field *items[SIGV4_FIELDS_MAX];
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static int compare_names(struct slice a, struct slice b)
{
	for (size_t i = 0; i < a.n && i < b.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return (uint8_t)lower(a.p[i]) < (uint8_t)lower(b.p[i]) ? -1 : 1;
	return (a.n > b.n) - (a.n < b.n);
}

/* Sorts by name; fields of one name stay in their order. There are few, and most come sorted. */
static int sort(struct sorted *out, const struct sigv4_field *fields, size_t count)
{
	if (count > SIGV4_FIELDS_MAX)
		return -E2BIG;
	out->n = count;
	for (size_t i = 0; i < count; i++) {
		size_t at = i;

		while (at > 0 && compare_names(out->items[at - 1]->name, fields[i].name) > 0) {
			out->items[at] = out->items[at - 1];
			at--;
		}
		out->items[at] = &fields[i];
	}
	return 0;
}

static bool repeats(const struct sorted *fields, size_t i)
{
	return i > 0 && !compare_names(fields->items[i - 1]->name, fields->items[i]->name);
}

static int put_name(struct buf *out, struct slice name)
{
	uint8_t *p = buf_reserve(out, name.n);

	if (!p)
		return -ENOBUFS;
	for (size_t i = 0; i < name.n; i++)
		p[i] = (uint8_t)lower(name.p[i]);
	buf_commit(out, name.n);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Writes the value without blanks at the ends; each run of blanks inside becomes one space. */
static int put_value(struct buf *out, struct slice value)
{
	struct slice s = slice_trim(value);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s.n;) {
		size_t n = 0;

		while (i + n < s.n && !is_blank(s.p[i + n]))
			n++;
		rc = buf_append(out, s.p + i, n);
		i += n;
		if (rc == 0 && i < s.n)
			rc = buf_append(out, " ", 1);
		while (i < s.n && is_blank(s.p[i]))
			i++;
	}
	return rc;
}

static int put_fields(struct buf *out, const struct sorted *fields)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < fields->n; i++) {
		bool more = i + 1 < fields->n && repeats(fields, i + 1);

		if (repeats(fields, i)) {
			rc = buf_append(out, ",", 1);
		} else {
			rc = put_name(out, fields->items[i]->name);
			if (rc == 0)
				rc = buf_append(out, ":", 1);
		}
		if (rc == 0)
			rc = put_value(out, fields->items[i]->value);
		if (rc == 0 && !more)
			rc = buf_append(out, "\n", 1);
	}
	return rc;
}

static int put_names(struct buf *out, const struct sorted *fields)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < fields->n; i++) {
		if (repeats(fields, i))
			continue;
		if (i)
			rc = buf_append(out, ";", 1);
		if (rc == 0)
			rc = put_name(out, fields->items[i]->name);
	}
	return rc;
}

int sigv4_names(struct buf *out, const struct sigv4_field *fields, size_t count)
{
	struct sorted sorted;
	int rc = sort(&sorted, fields, count);

	return rc ? rc : put_names(out, &sorted);
}

int sigv4_canonical(struct buf *out, const struct sigv4_request *r)
{
	struct sorted fields;
	int rc = sort(&fields, r->fields, r->field_count);

	if (rc == 0)
		rc = buf_append_slice(out, r->method);
	if (rc == 0)
		rc = buf_append(out, "\n", 1);
	if (rc == 0)
		rc = r->s3 ? put_s3_path(out, r->path) : put_path(out, r->path);
	if (rc == 0)
		rc = buf_append(out, "\n", 1);
	if (rc == 0)
		rc = put_query(out, r->query);
	if (rc == 0)
		rc = buf_append(out, "\n", 1);
	if (rc == 0)
		rc = put_fields(out, &fields);
	if (rc == 0)
		rc = buf_append(out, "\n", 1);
	if (rc == 0)
		rc = put_names(out, &fields);
	if (rc == 0)
		rc = buf_append(out, "\n", 1);
	return rc ? rc : buf_append_slice(out, r->payload);
}
