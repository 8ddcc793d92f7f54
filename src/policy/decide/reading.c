/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: bytes are decoded and pushed one by one. Whenever the last bytes form an
 * escape, or a character that stands for ASCII, the value they stand for replaces them and may
 * complete another one. So any number of nested encodings, in any order, is undone in one pass, and
 * the output has nothing left to decode.
 */
#include "policy/decide/reading.h"

#define UTF8_MAX 6 /* bytes of a character, including the obsolete long forms */

struct reading {
	char *p;
	size_t n;
	bool once; /* an escape that results from decoding another one is kept */
	bool has_nul, has_levels;
};

/* Returns the ASCII byte that some conversions (compatibility forms of Unicode, "best fit" of
 * Windows) make of a character outside of ASCII, if paths are made of it; or 0. */
static unsigned ascii_of(uint32_t c)
{
	static const struct {
		uint16_t from;
		char to;
	} others[] = {{0x00a0, ' '}, {0x2024, '.'}, {0x2044, '/'}, {0x2215, '/'}, {0x2216, '\\'},
	        {0x3000, ' '}, {0xfe52, '.'}, {0xfe54, ';'}, {0xfe68, '\\'}, {0xfe6a, '%'}};

	if (c >= 0xff01 && c <= 0xff5e) /* full-width forms */
		return c - 0xff01 + '!';
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].from == c)
			return (unsigned char)others[i].to;
	return 0;
}

/* The length of a UTF-8 character by its first byte, including the old long forms; 0: not a first
 * byte. */
static size_t length_by_lead(uint8_t lead)
{
	return lead < 0xc0   ? 0
	       : lead < 0xe0 ? 2
	       : lead < 0xf0 ? 3
	       : lead < 0xf8 ? 4
	       : lead < 0xfc ? 5
	                     : 6;
}

/* If the last bytes are one character that stands for ASCII, removes them and returns its value;
 * else -1. Call after a byte beyond ASCII was pushed. */
static int take_character(struct reading *r)
{
	for (size_t back = 1; back < UTF8_MAX && back < r->n; back++) {
		uint8_t lead = (uint8_t)r->p[r->n - 1 - back];
		size_t length = length_by_lead(lead);
		uint32_t c;

		if (lead < 0x80)
			return -1;
		if (length == 0)
			continue;
		if (length != back + 1)
			return -1;
		c = lead & (0xffu >> (length + 1));
		for (size_t i = r->n - back; i < r->n; i++)
			c = c << 6 | ((uint8_t)r->p[i] & 0x3f);
		if (c >= 0x80) {
			c = ascii_of(c);
			if (c == 0)
				return -1;
		}
		r->n -= length;
		return (int)c;
	}
	return -1;
}

/* If the last bytes are an escape, removes them and returns its value; else -1. */
static int take_escape(struct reading *r)
{
	int high, low;

	if (r->n < 3 || r->p[r->n - 3] != '%')
		return -1;
	high = slice_hex_digit(r->p[r->n - 2]);
	low = slice_hex_digit(r->p[r->n - 1]);
	if (high < 0 || low < 0)
		return -1;
	r->n -= 3;
	return high * 16 + low;
}

/* Pushes a byte that does not certainly end a segment. */
static void push(struct reading *r, unsigned value)
{
	for (;;) {
		int next;

		if (value >= 'A' && value <= 'Z')
			value += 'a' - 'A';
		else if (value == '/' || value == '\\')
			value = READING_SLASH;
		else if (value < ' ' || value == 0x7f) {
			r->has_nul |= value == 0;
			value = READING_CONTROL;
		}
		r->p[r->n++] = (char)value;
		next = value >= 0x80 ? take_character(r) : r->once ? -1 : take_escape(r);
		if (next < 0)
			return;
		r->has_levels |= value < 0x80;
		value = (unsigned)next;
	}
}

/* Takes the raw byte or the escape at *i and moves *i to its last byte. */
static void push_unit(struct reading *r, struct slice path, size_t *i)
{
	unsigned value = (unsigned char)path.p[*i];

	if (value == '%' && path.n - *i >= 3) {
		value = (unsigned)(slice_hex_digit(path.p[*i + 1]) * 16 +
		                   slice_hex_digit(path.p[*i + 2]));
		*i += 2;
	}
	push(r, value);
}

static void push_slash(struct reading *r)
{
	if (r->n == 0 || r->p[r->n - 1] != '/')
		r->p[r->n++] = '/';
}

static bool is_border(char c)
{
	return c == '/' || c == READING_SLASH;
}

/* The length of a segment's n bytes without dots and spaces at the end. */
static size_t without_tail(const char *p, size_t n)
{
	while (n > 0 && (p[n - 1] == '.' || p[n - 1] == ' '))
		n--;
	return n;
}

/* Where the parameters of a segment of n bytes begin, or n. */
static size_t parameters_of(const char *p, size_t n)
{
	const char *mark = memchr(p, ';', n);

	return mark ? (size_t)(mark - p) : n;
}

/* True for one or two dots, also with spaces among them, which some file systems leave out. */
static bool is_dot_segment(const char *p, size_t n)
{
	size_t dots = 0, spaces = 0;

	n = parameters_of(p, n);
	for (size_t i = 0; i < n; i++) {
		dots += p[i] == '.';
		spaces += p[i] == ' ';
	}
	return dots > 0 && dots + spaces == n && (dots <= 2 || spaces > 0);
}

static bool has_dot_segment(const char *p, size_t n)
{
	size_t start = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && !is_border(p[i]))
			continue;
		if (is_dot_segment(p + start, i - start))
			return true;
		start = i + 1;
	}
	return false;
}

static void read_path(struct reading *r, struct slice path)
{
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] == '/')
			push_slash(r);
		else
			push_unit(r, path, &i);
}

bool reading_of_path(struct slice path, char *out, size_t *n)
{
	struct reading r = {.p = out};

	read_path(&r, path);
	*n = r.n;
	return !r.has_nul && !has_dot_segment(out, r.n);
}

static bool ends_segment(struct slice pattern, size_t at)
{
	return at == pattern.n || pattern.p[at] == '/';
}

/* Takes the wildcard at *i and moves *i to its last byte. "**" includes the '/' before it. */
static void push_wildcard(struct reading *r, struct slice pattern, size_t *i)
{
	bool starts = pattern.p[*i - 1] == '/';

	if (starts && *i + 1 < pattern.n && pattern.p[*i + 1] == '*') {
		r->p[r->n - 1] = READING_DEPTH;
		r->p[r->n++] = READING_INSIDE;
		++*i;
		return;
	}
	if (starts && ends_segment(pattern, *i + 1))
		r->p[r->n++] = READING_ONE;
	else if (is_border(r->p[r->n - 1]))
		r->p[r->n++] = READING_NOTHING;
	r->p[r->n++] = READING_STAR;
}

size_t reading_of_pattern(struct slice pattern, char *out)
{
	struct reading r = {.p = out};

	for (size_t i = 0; i < pattern.n; i++)
		if (pattern.p[i] == '/')
			push_slash(&r);
		else if (pattern.p[i] == '*')
			push_wildcard(&r, pattern, &i);
		else
			push_unit(&r, pattern, &i);
	if (r.n > 1 && out[r.n - 1] == '/')
		r.n--;
	return r.n;
}

/* Where the segment that begins at start ends. "**" is a segment of its own. */
static size_t segment_end(struct slice full, size_t start)
{
	while (start < full.n && !is_border(full.p[start]) && full.p[start] != READING_DEPTH)
		start++;
	return start;
}

size_t reading_shortest(struct slice full, char *out)
{
	size_t n = 0, i = 0;

	while (i < full.n) {
		size_t start, end, length;

		if (full.p[i] == READING_DEPTH) {
			out[n++] = READING_DEPTH;
			out[n++] = READING_INSIDE;
			i += 2;
			continue;
		}
		i += is_border(full.p[i]);
		start = i;
		i = end = segment_end(full, start);
		length = parameters_of(full.p + start, end - start);
		length = without_tail(full.p + start, length);
		if (length == 0)
			continue;
		out[n++] = '/';
		memmove(out + n, full.p + start, length);
		n += length;
	}
	if (n == 0)
		out[n++] = '/';
	return n;
}

/* True if a segment ends in '.'. */
static bool has_dot_tail(struct slice path)
{
	return path.p[path.n - 1] == '.' || memmem(path.p, path.n, "./", 2) != NULL;
}

/* True if the path has no other reading than itself, apart from letter case and a '/' at its
 * end. */
static bool is_plain(struct slice path)
{
	return !memchr(path.p, '%', path.n) && !memchr(path.p, ';', path.n) &&
	       !memmem(path.p, path.n, "//", 2) && !has_dot_tail(path);
}

bool reading_pattern_is_simple(struct slice pattern)
{
	for (size_t i = 0; i < pattern.n; i++)
		if (pattern.p[i] >= 'A' && pattern.p[i] <= 'Z')
			return false;
	return is_plain(pattern) && (pattern.n == 1 || pattern.p[pattern.n - 1] != '/');
}

/* Copies a full form. An escaped slash after a ';' of the same segment becomes ';', a part of the
 * parameters, as it is to servers that cut parameters off before they decode. False: there was
 * none. */
static bool copy_with_long_parameters(struct slice full, char *out)
{
	bool parameters = false, found = false;

	for (size_t i = 0; i < full.n; i++) {
		out[i] = full.p[i];
		if (full.p[i] == '/') {
			parameters = false;
		} else if (full.p[i] == ';') {
			parameters = true;
		} else if (full.p[i] == READING_SLASH && parameters) {
			out[i] = ';';
			found = true;
		}
	}
	return found;
}

void path_view_init(struct path_view *view, struct slice path)
{
	view->path = path;
	view->kind = VIEW_UNSEEN;
	view->is_ready = view->has_levels = view->has_two_cuts = false;
}

bool path_view_is_plain(struct path_view *view)
{
	if (view->kind == VIEW_UNSEEN)
		view->kind = is_plain(view->path) ? VIEW_PLAIN : VIEW_AMBIGUOUS;
	return view->kind == VIEW_PLAIN;
}

bool path_view_has_two_cuts(struct path_view *view)
{
	if (path_view_is_plain(view))
		return false;
	path_view_make(view);
	return view->has_two_cuts;
}

static void make_plain(struct path_view *view)
{
	size_t n = view->path.n;

	for (size_t i = 0; i < n; i++) {
		char c = view->path.p[i];

		view->full_bytes[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	view->full = slice_of(view->full_bytes, n);
	view->shortest = slice_of(view->full_bytes, n - (n > 1 && view->path.p[n - 1] == '/'));
}

void path_view_make(struct path_view *view)
{
	struct reading full = {.p = view->full_bytes};
	struct reading once = {.p = view->once_bytes, .once = true};

	if (view->is_ready)
		return;
	view->is_ready = true;
	if (path_view_is_plain(view)) {
		make_plain(view);
		return;
	}
	read_path(&full, view->path);
	view->full = slice_of(full.p, full.n);
	view->has_two_cuts = copy_with_long_parameters(view->full, view->shortest_bytes);
	view->shortest = slice_of(
	        view->has_two_cuts ? view->shortest_bytes : view->full_bytes, view->full.n);
	view->shortest.n = reading_shortest(view->shortest, view->shortest_bytes);
	view->shortest.p = view->shortest_bytes;
	view->has_levels = full.has_levels;
	if (view->has_levels) {
		read_path(&once, view->path);
		view->once = slice_of(once.p, once.n);
	}
}
