/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client may choose the character set of the response (Accept, Accept-Charset, parameters that an
 * upstream has for it), and in UTF-16, UTF-7 or EBCDIC a credential's value has bytes that the
 * search does not know. Readers take the character set from the Content-Type, from a byte order
 * mark, or from an XML declaration; some guess UTF-16 from NUL bytes (RFC 4627 section 3
 * recommended this for JSON).
 */
#include "proxy/redact/charset.h"

#define NAME_MAX_BYTES 48 /* of a character set's name */

static const struct slice parameter = {"charset", 7};

/* Character sets in which ASCII characters have their ASCII bytes (IANA, Character Sets; WHATWG,
 * Encoding). */
static const struct slice known[] = {{"utf-8", 5}, {"utf8", 4}, {"unicode-1-1-utf-8", 17},
        {"us-ascii", 8}, {"ascii", 5}, {"windows-874", 11}, {"windows-31j", 11}, {"gb2312", 6},
        {"gbk", 3}, {"gb18030", 7}, {"big5", 4}, {"big5-hkscs", 10}, {"shift_jis", 9},
        {"shift-jis", 9}, {"sjis", 4}, {"tis-620", 7}, {"macintosh", 9}, {"binary", 6}};
/* Prefixes of such names; a number or a language follows. */
static const struct slice families[] = {{"ansi_x3.4-", 10}, {"iso-8859-", 9}, {"iso8859", 7},
        {"iso_8859-", 9}, {"windows-125", 11}, {"cp125", 5}, {"euc-", 4}, {"koi8-", 5}};

static bool begins_with(struct slice s, struct slice with)
{
	return s.n >= with.n && slice_equals_ignoring_case(slice_of(s.p, with.n), with);
}

static bool is_latin(struct slice name)
{
	if (name.n < 6 || name.n > 7 || !begins_with(name, SLICE("latin")))
		return false;
	for (size_t i = 5; i < name.n; i++)
		if (name.p[i] < '0' || name.p[i] > '9')
			return false;
	return true;
}

static bool name_is_searchable(struct slice name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (slice_equals_ignoring_case(name, known[i]))
			return true;
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (name.n > families[i].n && begins_with(name, families[i]))
			return true;
	return is_latin(name);
}

/* --- Content-Type --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct slice skip_blanks(struct slice s)
{
	while (s.n && is_blank(*s.p))
		s = slice_of(s.p + 1, s.n - 1);
	return s;
}

/* Reads the value behind "=": a token, text between quotes of either kind, or a quoted string with
 * escapes (RFC 9110 section 5.6.4). False: it is too long or has no end. */
static bool read_value(struct slice s, char name[NAME_MAX_BYTES], size_t *n)
{
	char quote = s.n && (*s.p == '"' || *s.p == '\'') ? *s.p : 0;
	size_t i = quote != 0;

	for (*n = 0; i < s.n; i++) {
		char c = s.p[i];

		if (quote ? c == quote : is_blank(c) || strchr(";,\"'", c))
			return true;
		if (quote == '"' && c == '\\' && ++i < s.n)
			c = s.p[i];
		if (*n == NAME_MAX_BYTES)
			return false;
		name[(*n)++] = c;
	}
	return !quote;
}

/* after: what follows the parameter's name. Without "=" it is not a parameter. With "*" it is an
 * encoded or split parameter and is refused: nobody has to write a character set so, and readers
 * differ in how they take it. */
static bool value_is_searchable(struct slice after)
{
	char name[NAME_MAX_BYTES];
	struct slice value = skip_blanks(after);
	size_t n;

	if (value.n && *value.p == '*')
		return false;
	if (!value.n || *value.p != '=')
		return true;
	if (!read_value(skip_blanks(slice_of(value.p + 1, value.n - 1)), name, &n))
		return false;
	value = slice_trim(slice_of(name, n));
	return !value.n || name_is_searchable(value);
}

/* Checks the word wherever it is in the value, also inside quotes, because one of two readers may
 * find it there. */
static bool type_is_searchable(struct slice type)
{
	for (; type.n >= parameter.n; type.p++, type.n--)
		if (begins_with(type, parameter) &&
		        !value_is_searchable(slice_of(type.p + parameter.n, type.n - parameter.n)))
			return false;
	return true;
}

static bool is_content_type(const struct http_field *f)
{
	return http_names_alike(f->name, SLICE("content-type"));
}

bool charset_is_searchable(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (is_content_type(&fields->items[i]) &&
		        !type_is_searchable(fields->items[i].value))
			return false;
	return true;
}

/* --- the beginning of the content --- */

static bool ends_with(struct slice s, struct slice with)
{
	return s.n >= with.n &&
	       slice_equals_ignoring_case(slice_of(s.p + s.n - with.n, with.n), with);
}

/* False for gRPC and Connect: their messages have a length before them, which begins with NUL
 * bytes. */
static bool is_text(struct slice type)
{
	static const struct slice types[] = {{"application/json", 16}, {"application/xml", 15},
	        {"application/javascript", 22}, {"application/ecmascript", 22},
	        {"application/x-javascript", 24}, {"application/x-ndjson", 20},
	        {"application/yaml", 16}, {"application/x-yaml", 18}};
	size_t n = 0;

	while (n < type.n && !strchr(";, \t", type.p[n]))
		n++;
	type.n = n;
	if (begins_with(type, SLICE("application/grpc")) ||
	        begins_with(type, SLICE("application/connect+")))
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (slice_equals_ignoring_case(type, types[i]))
			return true;
	return begins_with(type, SLICE("text/")) || ends_with(type, SLICE("+json")) ||
	       ends_with(type, SLICE("+xml"));
}

enum charset_start_kind charset_start_kind(const struct http_fields *fields)
{
	enum charset_start_kind kind = CHARSET_START_MARK;

	for (size_t i = 0; i < fields->count; i++) {
		if (!is_content_type(&fields->items[i]) || !fields->items[i].value.n)
			continue;
		if (is_text(fields->items[i].value))
			return CHARSET_START_TEXT;
		kind = CHARSET_START_ANY;
	}
	return kind;
}

#define MARK_MAX 4

/* Byte order marks of encodings other than UTF-8, and "<?xm" in EBCDIC. The mark of UTF-32LE begins
 * with that of UTF-16LE. */
static bool has_mark(struct slice start)
{
	static const struct slice marks[] = {{"\xfe\xff", 2}, {"\xff\xfe", 2}, {"\0\0\xfe\xff", 4},
	        {"+/v8", 4}, {"+/v9", 4}, {"+/v+", 4}, {"+/v/", 4}, {"\xdd\x73\x66\x73", 4},
	        {"\x0e\xfe\xff", 3}, {"\xfb\xee\x28", 3}, {"\x4c\x6f\xa7\x94", 4}};

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (slice_starts_with(start, marks[i]))
			return true;
	return false;
}

/* Checks the value of `encoding` in an XML declaration (XML 1.0 section 4.3.3), or in as much of it
 * as has come. */
static bool declaration_is_searchable(struct slice xml)
{
	static const struct slice word = {"encoding", 8};
	char name[NAME_MAX_BYTES];
	const char *end = memmem(xml.p, xml.n, "?>", 2);
	size_t n;

	if (end)
		xml.n = (size_t)(end - xml.p);
	for (; xml.n >= word.n; xml.p++, xml.n--) {
		struct slice rest = slice_of(xml.p + word.n, xml.n - word.n);

		if (!begins_with(xml, word))
			continue;
		while (rest.n && strchr(" \t\r\n", *rest.p))
			rest = slice_of(rest.p + 1, rest.n - 1);
		if (!rest.n || *rest.p != '=')
			continue;
		do
			rest = slice_of(rest.p + 1, rest.n - 1);
		while (rest.n && strchr(" \t\r\n", *rest.p));
		return read_value(rest, name, &n) && name_is_searchable(slice_of(name, n));
	}
	return true;
}

static const struct slice xml_begins = {"<?xml", 5};

/* False: more bytes are needed. */
static bool is_decided(struct slice start, struct slice text)
{
	if (start.n < 2 * MARK_MAX)
		return false;
	return !slice_starts_with(text, xml_begins) || start.n == CHARSET_START_MAX ||
	       memmem(text.p, text.n, "?>", 2);
}

bool charset_start_is_searchable(struct charset_start *s, const uint8_t *p, size_t n)
{
	size_t room = sizeof(s->p) - s->n, take = n < room ? n : room;
	struct slice start, text;

	if (s->kind == CHARSET_START_ANY || n == 0)
		return true;
	memcpy(s->p + s->n, p, take);
	s->n += (uint8_t)take;
	start = text = slice_of(s->p, s->n);
	if (has_mark(start))
		return false;
	if (s->kind == CHARSET_START_TEXT &&
	        memchr(start.p, 0, start.n < MARK_MAX ? start.n : MARK_MAX))
		return false;
	if (slice_starts_with(text, SLICE("\xef\xbb\xbf")))
		text = slice_of(text.p + 3, text.n - 3);
	if (!is_decided(start, text))
		return true;
	if (s->kind == CHARSET_START_TEXT && slice_starts_with(text, xml_begins) &&
	        !declaration_is_searchable(text))
		return false;
	s->kind = CHARSET_START_ANY;
	return true;
}
