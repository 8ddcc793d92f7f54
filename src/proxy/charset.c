/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever asks may choose the character set of the answer (Accept, Accept-Charset, parameters that
 * an upstream has for it), and in UTF-16, UTF-7 or EBCDIC a value has bytes that no search knows.
 */
#include "proxy/charset.h"

static const struct slice name = {"charset", 7};

/* Beginnings of names in which ASCII is itself (IANA, Character Sets). */
static const struct slice searchable[] = {{"utf-8", 5}, {"utf8", 4}, {"us-ascii", 8}, {"ascii", 5},
        {"ansi_x3.4", 9}, {"iso-8859-", 9}, {"iso8859", 7}, {"iso_8859", 8}, {"latin", 5},
        {"windows-125", 11}, {"windows-874", 11}, {"cp125", 5}, {"gb2312", 6}, {"gbk", 3},
        {"gb18030", 7}, {"big5", 4}, {"euc-", 4}, {"shift_jis", 9}, {"koi8-", 5}, {"tis-620", 7},
        {"macintosh", 9}, {"binary", 6}};

static bool begins_with(struct slice s, struct slice with)
{
	return s.n >= with.n && slice_equals_ignoring_case(slice_of(s.p, with.n), with);
}

static struct slice skip(struct slice s, const char *bytes)
{
	while (s.n && *s.p && strchr(bytes, *s.p)) {
		s.p++;
		s.n--;
	}
	return s;
}

/* after: what follows the parameter's name. Without "=" it is none. */
static bool value_is_searchable(struct slice after)
{
	struct slice value = skip(after, "* \t");

	if (!value.n || *value.p != '=')
		return true;
	value = skip(value, "= \t\"'");
	for (size_t i = 0; i < sizeof searchable / sizeof *searchable; i++)
		if (begins_with(value, searchable[i]))
			return true;
	return !value.n || *value.p == ';';
}

static bool type_is_searchable(struct slice type)
{
	for (; type.n >= name.n; type.p++, type.n--)
		if (begins_with(type, name) &&
		        !value_is_searchable(slice_of(type.p + name.n, type.n - name.n)))
			return false;
	return true;
}

bool charset_is_searchable(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		if (http_names_alike(f->name, SLICE("content-type")) &&
		        !type_is_searchable(f->value))
			return false;
	}
	return true;
}
