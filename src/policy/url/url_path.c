/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a path is rewritten in one pass. Each input byte (raw or escaped) is decoded
 * to its value and written in the one form that value may have. At the end of each segment a dot
 * segment is removed again. The output is never something that a second pass would write
 * differently. url_path_is_canonical() checks a path with the same table and writes nothing.
 */
#include "policy/decide/reading.h"
#include "policy/url/url_path.h"

/* How a byte value may stand in a canonical path. */
enum form {
	FORM_RAW,     /* unreserved: never escaped */
	FORM_BOTH,    /* sub-delimiters, ':', '@': raw and escaped mean different things to
	                 servers, so they are kept as written */
	FORM_ESCAPED, /* escaped only: delimiters that RFC 3986 keeps out of pchar, and bytes
	                 beyond ASCII */
	FORM_SLASH,   /* '/': an escaped one stays escaped; no wildcard of a rule matches it */
	FORM_NEVER    /* controls, '\\': odd forms of these serve to smuggle paths */
};

/* forms[c] for the bytes of ASCII; all other bytes are FORM_ESCAPED. N: never, S: slash, r: raw, b:
 * both, e: escaped. */
static const char forms[128] = "NNNNNNNNNNNNNNNN"
                               "NNNNNNNNNNNNNNNN"
                               "ebeebebbbbbbbrrS"
                               "rrrrrrrrrrbbebee"
                               "brrrrrrrrrrrrrrr"
                               "rrrrrrrrrrreNeer"
                               "errrrrrrrrrrrrrr"
                               "rrrrrrrrrrreeer";

static enum form form_of(unsigned c)
{
	switch (c < sizeof(forms) ? forms[c] : 'e') {
	case 'r':
		return FORM_RAW;
	case 'b':
		return FORM_BOTH;
	case 'e':
		return FORM_ESCAPED;
	case 'S':
		return FORM_SLASH;
	default:
		return FORM_NEVER; /* 'N', and the NUL in the place of DEL */
	}
}

/* Raw bytes that are escaped instead of refused: clients do send them, and their meaning is not in
 * doubt. */
static bool is_mended(unsigned c)
{
	return c > ' ' && c < 0x7f && strchr("\"<>[]^`{|}", (int)c);
}

/* The value of the escape at p ("%XX"), or -1. */
static int escape_value(const char *p, size_t left)
{
	int high, low;

	if (left < 3)
		return -1;
	high = slice_hex_digit(p[1]);
	low = slice_hex_digit(p[2]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

struct output {
	char *p;
	size_t n, size;
};

static bool put(struct output *o, char c)
{
	if (o->n >= o->size)
		return false;
	o->p[o->n++] = c;
	return true;
}

static bool put_escaped(struct output *o, unsigned c)
{
	static const char digits[] = "0123456789ABCDEF";

	return put(o, '%') && put(o, digits[c >> 4]) && put(o, digits[c & 15]);
}

/* Writes one byte value that was raw or escaped in the input. False: the byte is not allowed like
 * that. */
static bool put_value(struct output *o, unsigned c, bool was_escaped)
{
	switch (form_of(c)) {
	case FORM_RAW:
		return put(o, (char)c);
	case FORM_BOTH:
		return was_escaped ? put_escaped(o, c) : put(o, (char)c);
	case FORM_ESCAPED:
		return (was_escaped || is_mended(c)) && put_escaped(o, c);
	case FORM_SLASH: /* a raw slash never comes here */
		return was_escaped && put_escaped(o, c);
	case FORM_NEVER:
		break;
	}
	return false;
}

static bool is_dots(const char *p, size_t n)
{
	return n >= 1 && n <= 2 && p[0] == '.' && p[n - 1] == '.';
}

/* Path parameters (RFC 3986 section 3.3): some servers cut them off before they look for dot
 * segments, so that "..;x" leads one level up. */
static bool hides_dots(const char *p, size_t n)
{
	size_t end = 0;

	while (end < n && p[end] != ';' && (n - end < 3 || memcmp(p + end, "%3B", 3) != 0))
		end++;
	return end < n && is_dots(p, end);
}

static bool part_is_plain(const char *p, size_t n)
{
	return n > 0 && !is_dots(p, n) && !hides_dots(p, n);
}

/* Checks the parts between a segment's escaped slashes. A server that decodes these slashes must
 * not find an empty part or a dot segment, because its path would be another one than the path that
 * was judged. */
static bool parts_are_plain(const char *p, size_t n)
{
	const char *slash = url_find_escaped_slash(p, n);

	if (!slash)
		return !hides_dots(p, n);
	while (slash) {
		size_t part = (size_t)(slash - p);

		if (!part_is_plain(p, part))
			return false;
		p += part + 3;
		n -= part + 3;
		slash = url_find_escaped_slash(p, n);
	}
	return part_is_plain(p, n);
}

/* Ends the segment that was just written from position segment on, behind its '/'. Removes dot
 * segments as RFC 3986 section 5.2.4 does; one that ends the path leaves its '/'. False: the
 * segment leaves the root, or hides a dot segment. */
static bool end_segment(struct output *o, size_t segment)
{
	size_t n = o->n - segment;

	if (!is_dots(o->p + segment, n))
		return parts_are_plain(o->p + segment, n);
	if (n == 1) {
		o->n = segment;
		return true;
	}
	if (segment < 2)
		return false;
	o->n = segment - 1; /* at the '/' before ".." */
	while (o->p[o->n - 1] != '/')
		o->n--;
	return true;
}

/* Ends the segment and writes a '/'. After a dot segment the output already ends in '/', which must
 * not be doubled. */
static bool put_slash(struct output *o, size_t *segment)
{
	size_t before = o->n;

	if (!end_segment(o, *segment))
		return false;
	if (o->n == before && !put(o, '/'))
		return false;
	*segment = o->n;
	return true;
}

/* True if the path has an escape that can hide a dot segment or a NUL: of a byte beyond ASCII, of
 * '%' or of a space. */
static bool may_hide(struct slice path)
{
	const char *end = path.p + path.n, *p = path.p;

	while ((p = memchr(p, '%', (size_t)(end - p)))) {
		if (end - p < 3)
			return true;
		if (p[1] >= '8' || (p[1] == '2' && (p[2] == '0' || p[2] == '5')))
			return true;
		p += 3;
	}
	return false;
}

/* True if no server reads a NUL or a dot segment in the path, however it decodes. */
static bool reads_well(struct slice path)
{
	char full[POLICY_PATH_MAX];
	size_t n;

	return !may_hide(path) || (path.n <= sizeof(full) && reading_of_path(path, full, &n));
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through struct output */
bool url_canonical_path(struct slice path, char *out, size_t out_size, size_t *n)
{
	struct output o = {out, 0, out_size};
	size_t segment = 1;

	if (path.n == 0 || path.p[0] != '/' || !put(&o, '/'))
		return false;
	for (size_t i = 1; i < path.n; i++) {
		unsigned c = (unsigned char)path.p[i];
		bool escaped = c == '%';

		if (c == '/') {
			if (!put_slash(&o, &segment))
				return false;
			continue;
		}
		if (escaped) {
			int value = escape_value(path.p + i, path.n - i);

			if (value < 0)
				return false;
			c = (unsigned)value;
			i += 2;
		}
		if (!put_value(&o, c, escaped))
			return false;
	}
	if (!end_segment(&o, segment))
		return false;
	*n = o.n;
	return reads_well(slice_of(out, o.n));
}

static bool segment_is_sound(const char *p, size_t n)
{
	return !is_dots(p, n) && parts_are_plain(p, n);
}

/* How many bytes the unit at p has (1 raw, 3 escaped), or 0 if it is not in canonical form. */
static size_t unit_length(const char *p, size_t left)
{
	unsigned c = (unsigned char)*p;
	int value;

	if (c != '%')
		return form_of(c) <= FORM_BOTH ? 1 : 0;
	value = escape_value(p, left);
	if (value < 0 || p[1] > 'F' || p[2] > 'F')
		return 0;
	return form_of((unsigned)value) == FORM_RAW || form_of((unsigned)value) == FORM_NEVER ? 0
	                                                                                      : 3;
}

bool url_path_is_canonical(struct slice path)
{
	size_t segment = 1;
	size_t i = 1;

	if (path.n == 0 || path.n > POLICY_PATH_MAX || path.p[0] != '/')
		return false;
	while (i < path.n) {
		size_t step;

		if (path.p[i] == '/') {
			if (!segment_is_sound(path.p + segment, i - segment))
				return false;
			segment = ++i;
			continue;
		}
		step = unit_length(path.p + i, path.n - i);
		if (step == 0)
			return false;
		i += step;
	}
	return segment_is_sound(path.p + segment, path.n - segment) && reads_well(path);
}
