/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one pass over tags and texts, with a stack of the open elements' names. A
 * key is the whole content of an element AccessKeyId, SecretAccessKey or SessionToken, whose parent
 * has the name Credentials. Such an element anywhere else, twice, or with another element in it, is
 * a fault: nobody would know which key is meant.
 */
#include "vethguard/wire/sts_xml.h"

#include "vethguard/base/utf8.h"

static const char no_xml[] =
        "the upstream's response is not the XML that it promises, or has what answers "
        "of STS do not have, so its keys cannot be sealed";
static const char too_much[] =
        "the upstream's response has too many elements, or too many within each "
        "other, so its keys cannot be sealed";
static const char unclear[] =
        "the upstream's response has keys that are not in one element Credentials, "
        "each of them once, so they cannot be sealed";

struct reader {
	struct slice rest;
	struct slice names[STS_XML_DEPTH_MAX];
	size_t depth, elements;
	bool rooted;         /* the root has begun */
	const char *content; /* after the last start tag; NULL: a child or end tag has come */
	bool has_entity;     /* in that content */
	size_t credentials;  /* elements of that name */
	struct sts_xml *out;
};

static const struct slice key_names[STS_KEY_COUNT] = {
        [STS_ID] = {"AccessKeyId", 11},
        [STS_SECRET] = {"SecretAccessKey", 15},
        [STS_TOKEN] = {"SessionToken", 12},
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

static void skip(struct reader *r, size_t n)
{
	r->rest = slice_of(r->rest.p + n, r->rest.n - n);
}

static void skip_space(struct reader *r)
{
	while (r->rest.n && is_space(*r->rest.p))
		skip(r, 1);
}

static bool take(struct reader *r, struct slice text)
{
	if (!slice_starts_with(r->rest, text))
		return false;
	skip(r, text.n);
	return true;
}

static struct slice take_name(struct reader *r)
{
	size_t n = 0;
	struct slice name;

	while (n < r->rest.n && is_name_byte(r->rest.p[n]))
		n++;
	name = slice_of(r->rest.p, n);
	skip(r, n);
	return name;
}

/* Takes a value in quotes that has no markup, entity or control character. */
static bool take_quoted(struct reader *r)
{
	char quote = r->rest.n ? *r->rest.p : 0;
	size_t n = 1;

	if (quote != '"' && quote != '\'')
		return false;
	while (n < r->rest.n && r->rest.p[n] != quote) {
		if (r->rest.p[n] == '<' || r->rest.p[n] == '&' || (uint8_t)r->rest.p[n] < ' ')
			return false;
		n++;
	}
	if (n == r->rest.n)
		return false;
	skip(r, n + 1);
	return true;
}

/* --- elements --- */

/* Returns the key with this name in any case of letters, which a less strict reader might accept;
 * STS_KEY_COUNT: none. */
static size_t key_of(struct slice name)
{
	size_t i = 0;

	while (i < STS_KEY_COUNT && !slice_equals_ignoring_case(name, key_names[i]))
		i++;
	return i;
}

static const char *end_element(struct reader *r)
{
	struct slice name = r->names[--r->depth], text;
	size_t key = key_of(name);
	bool plain = r->content && !r->has_entity;

	if (key < STS_KEY_COUNT) {
		text = plain ? slice_of(r->content, (size_t)(r->rest.p - r->content)) : SLICE("");
		if (!text.n || !slice_equals(name, key_names[key]) || !r->depth ||
		        !slice_equals(r->names[r->depth - 1], SLICE("Credentials")) ||
		        r->out->keys[key].n)
			return unclear;
		r->out->keys[key] = text;
		r->out->found = true;
	}
	r->content = NULL;
	return NULL;
}

static const char *begin_element(struct reader *r)
{
	struct slice name;
	bool empty;

	skip(r, 1);
	name = take_name(r);
	if (!name.n || (r->rooted && !r->depth))
		return no_xml;
	if (r->depth == STS_XML_DEPTH_MAX || ++r->elements > STS_XML_ELEMENTS_MAX)
		return too_much;
	r->rooted = true;
	skip_space(r);
	while (take(r, SLICE("xmlns"))) {
		if (take(r, SLICE(":")) && !take_name(r).n)
			return no_xml;
		if (!take(r, SLICE("=")) || !take_quoted(r))
			return no_xml;
		skip_space(r);
	}
	empty = take(r, SLICE("/"));
	if (!take(r, SLICE(">")))
		return no_xml;
	if (slice_equals_ignoring_case(name, SLICE("Credentials")) && ++r->credentials > 1)
		return unclear;
	r->names[r->depth++] = name;
	r->content = empty ? NULL : r->rest.p;
	r->has_entity = false;
	return empty ? end_element(r) : NULL;
}

static const char *take_end_tag(struct reader *r)
{
	const char *why;
	struct slice name, open;

	if (!r->depth)
		return no_xml;
	open = r->names[r->depth - 1];
	why = end_element(r);
	if (why)
		return why;
	skip(r, 2);
	name = take_name(r);
	skip_space(r);
	return slice_equals(name, open) && take(r, SLICE(">")) ? NULL : no_xml;
}

/* --- text --- */

static bool take_entity(struct reader *r)
{
	static const struct slice entities[] = {
	        {"&lt;", 4}, {"&gt;", 4}, {"&amp;", 5}, {"&quot;", 6}, {"&apos;", 6}};

	r->has_entity = true;
	for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
		if (take(r, entities[i]))
			return true;
	return false;
}

/* Takes text up to the next tag. Outside of the root element it may only be blanks. Returns NULL,
 * or what is wrong. */
static const char *take_text(struct reader *r)
{
	while (r->rest.n && *r->rest.p != '<') {
		char c = *r->rest.p;

		if (!r->depth && !is_space(c))
			return no_xml;
		if (c == '&') {
			if (!take_entity(r))
				return no_xml;
			continue;
		}
		if (((uint8_t)c < ' ' && !is_space(c)) || c == 0x7f)
			return no_xml;
		skip(r, 1);
	}
	return NULL;
}

/* <?xml version="1.0" encoding="UTF-8" standalone="yes"?> */
static bool take_declaration(struct reader *r)
{
	static const struct slice names[] = {{"version", 7}, {"encoding", 8}, {"standalone", 10}};

	if (!take(r, SLICE("<?xml")))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value;

		if (!r->rest.n || !is_space(*r->rest.p))
			break;
		skip_space(r);
		if (!take(r, names[i]))
			continue;
		value = r->rest.p + 2;
		if (!take(r, SLICE("=")) || !take_quoted(r))
			return false;
		if (i == 1 &&
		        !slice_equals_ignoring_case(
		                slice_of(value, (size_t)(r->rest.p - value) - 1), SLICE("utf-8")))
			return false;
	}
	skip_space(r);
	return take(r, SLICE("?>"));
}

static bool is_utf8(struct slice text)
{
	struct utf8 utf8 = {0};

	return utf8_feed(&utf8, (const uint8_t *)text.p, text.n) && utf8_is_whole(&utf8);
}

/* True if all keys are there, or none. */
static bool is_complete(const struct sts_xml *out)
{
	for (size_t i = 0; i < STS_KEY_COUNT; i++)
		if ((out->keys[i].n > 0) != out->found)
			return false;
	return true;
}

const char *sts_xml_read(struct slice text, struct sts_xml *out)
{
	struct reader r = {.rest = text, .out = out};
	const char *why = NULL;

	*out = (struct sts_xml){.found = false};
	if (!is_utf8(text) || !take_declaration(&r))
		return no_xml;
	while (!why) {
		why = take_text(&r);
		if (why || !r.rest.n)
			break;
		why = slice_starts_with(r.rest, SLICE("</")) ? take_end_tag(&r) : begin_element(&r);
	}
	if (!why && (!r.rooted || r.depth))
		why = no_xml;
	return why || is_complete(out) ? why : unclear;
}
