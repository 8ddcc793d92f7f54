/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A form is searched as a whole: placeholders have no byte that a form escapes. In JSON, strings
 * are searched, but not the names of members; of multipart, the contents of parts, but not their
 * heads.
 */
#include "proxy/inject/fill.h"

#include <errno.h>

#include "vethguard/base/utf8.h"
#include "vethguard/policy/json.h"
#include "vethguard/sign/sigv4.h"

const char fill_no_memory[] = "no memory to fill the request's body";

#define BOUNDARY_MAX 70 /* RFC 2046 section 5.1.1 */

static struct slice media_type(const struct http_fields *fields, struct slice *parameters)
{
	*parameters = SLICE("");
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];
		ptrdiff_t semicolon = slice_find_byte(f->value, ';');

		if (f->dropped || f->known != HTTP_CONTENT_TYPE)
			continue;
		if (semicolon < 0)
			return slice_trim(f->value);
		*parameters =
		        slice_of(f->value.p + semicolon + 1, f->value.n - (size_t)semicolon - 1);
		return slice_trim(slice_of(f->value.p, (size_t)semicolon));
	}
	return SLICE("");
}

static bool is_json(struct slice type)
{
	return slice_equals_ignoring_case(type, SLICE("application/json")) ||
	       (type.n > 5 && slice_equals_ignoring_case(
	                              slice_of(type.p + type.n - 5, 5), SLICE("+json")));
}

/* The parameter boundary of a media type (RFC 2046 section 5.1.1), or empty. */
static struct slice boundary_of(struct slice rest)
{
	static const struct slice name = {"boundary=", 9};

	while (rest.n) {
		ptrdiff_t semicolon = slice_find_byte(rest, ';');
		size_t n = semicolon < 0 ? rest.n : (size_t)semicolon;
		struct slice parameter = slice_trim(slice_of(rest.p, n)), value;

		n += semicolon >= 0;
		rest = slice_of(rest.p + n, rest.n - n);
		if (parameter.n <= name.n ||
		        !slice_equals_ignoring_case(slice_of(parameter.p, name.n), name))
			continue;
		value = slice_of(parameter.p + name.n, parameter.n - name.n);
		if (value.n > 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
			value = slice_of(value.p + 1, value.n - 2);
		for (size_t i = 0; i < value.n; i++)
			if (slice_find_byte(SLICE("\"\\ \t"), value.p[i]) >= 0)
				return SLICE("");
		return value.n <= BOUNDARY_MAX ? value : SLICE("");
	}
	return SLICE("");
}

struct fill_kind fill_kind_of(
        const struct http_fields *fields, const struct policy_credential *spec, bool sealed)
{
	struct fill_kind kind = {FILL_NONE, SLICE("")};
	struct slice parameters, type = media_type(fields, &parameters);

	if (spec->inject != POLICY_INJECT_PLACEHOLDER)
		return kind;
	if (is_json(type) && (sealed || policy_replaces_in(spec, SLICE("json"))))
		kind.form = FILL_JSON;
	if (slice_equals_ignoring_case(type, SLICE("application/x-www-form-urlencoded")) &&
	        (sealed || policy_replaces_in(spec, SLICE("form"))))
		kind.form = FILL_FORM;
	if (slice_equals_ignoring_case(type, SLICE("multipart/form-data")) &&
	        policy_replaces_in(spec, SLICE("multipart"))) {
		kind.form = FILL_MULTIPART;
		kind.boundary = boundary_of(parameters);
	}
	return kind;
}

bool fill_is_coded(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (!fields->items[i].dropped &&
		        http_names_alike(fields->items[i].name, SLICE("content-encoding")) &&
		        !slice_equals_ignoring_case(fields->items[i].value, SLICE("identity")))
			return true;
	return false;
}

/* --- multipart --- */

/* Takes the text up to the next delimiter off rest, and the delimiter's line. last: it was the
 * closing one. Returns false if there is no delimiter. */
static bool next_part(struct slice *rest, struct slice boundary, struct slice *part, bool *last)
{
	static const char begins[4] = {'\r', '\n', '-', '-'};
	char delimiter[sizeof(begins) + BOUNDARY_MAX];
	size_t n = sizeof(begins) + boundary.n;
	const char *at, *end;
	struct slice after;

	memcpy(delimiter, begins, sizeof(begins));
	memcpy(delimiter + sizeof(begins), boundary.p, boundary.n);
	at = memmem(rest->p, rest->n, delimiter, n);
	if (!at)
		return false;
	*part = slice_of(rest->p, (size_t)(at - rest->p));
	after = slice_of(at + n, rest->n - part->n - n);
	*last = slice_starts_with(after, SLICE("--"));
	if (*last) {
		*rest = slice_of(after.p + 2, after.n - 2);
		return true;
	}
	end = memmem(after.p, after.n, "\r\n", 2);
	if (!end || slice_trim(slice_of(after.p, (size_t)(end - after.p))).n)
		return false;
	/* The line's end stays: it may begin the next delimiter. */
	*rest = slice_of(end, after.n - (size_t)(end - after.p));
	return true;
}

/* Takes the content of the next part off rest, which begins as the body. Returns false if there
 * is none, or if the body is broken: then *whole is false. */
static bool next_content(
        struct slice *rest, struct slice boundary, bool *begun, bool *whole, struct slice *content)
{
	struct slice part;
	const char *blank;
	bool last;

	*whole = false;
	if (!*begun) {
		struct slice first = slice_of(rest->p, rest->n);

		if (!slice_starts_with(first, SLICE("--")) || first.n < 2 + boundary.n ||
		        memcmp(first.p + 2, boundary.p, boundary.n) != 0)
			return false;
		*rest = slice_of(first.p + 2 + boundary.n, first.n - 2 - boundary.n);
		if (slice_starts_with(*rest, SLICE("--"))) {
			*whole = true;
			return false;
		}
		if (!slice_starts_with(*rest, SLICE("\r\n")))
			return false;
		*begun = true;
	}
	if (!rest->n) { /* behind the closing delimiter */
		*whole = true;
		return false;
	}
	if (!next_part(rest, boundary, &part, &last))
		return false;
	if (last)
		*rest = SLICE("");
	blank = memmem(part.p, part.n, "\r\n\r\n", 4);
	if (!blank)
		return false;
	*content = slice_of(blank + 4, part.n - (size_t)(blank + 4 - part.p));
	return true;
}

static bool is_multipart(struct slice body, struct slice boundary)
{
	struct slice content;
	bool begun = false, whole = false;

	while (boundary.n && next_content(&body, boundary, &begun, &whole, &content))
		;
	return whole;
}

const char *fill_check(const struct fill_kind *kind, struct slice body)
{
	struct json_tree tree;
	int rc;

	if (kind->form == FILL_MULTIPART)
		return is_multipart(body, kind->boundary)
		               ? NULL
		               : "the request's body is not the multipart that its Content-Type "
		                 "promises, so no placeholder can be replaced in it";
	if (kind->form != FILL_JSON)
		return NULL;
	rc = json_read(&tree, body);
	json_fini(&tree);
	if (rc == -ENOMEM)
		return fill_no_memory;
	return rc < 0 ? "the request's body is not the JSON that its Content-Type promises, so no "
	                "placeholder can be replaced in it"
	              : NULL;
}

/* --- replacing --- */

static int escape(struct buf *out, const struct fill_kind *kind, struct slice value)
{
	if (kind->form == FILL_JSON)
		return json_escape(out, value);
	if (kind->form == FILL_FORM)
		return sigv4_escape(out, value, false);
	if (kind->form == FILL_TEXT) {
		struct utf8 utf8 = {0};

		return utf8_feed(&utf8, (const uint8_t *)value.p, value.n) && utf8_is_whole(&utf8)
		               ? buf_append_slice(out, value)
		               : -EBADMSG;
	}
	/* A part has no escapes, so the value must not hold its delimiter. */
	if (memmem(value.p, value.n, kind->boundary.p, kind->boundary.n))
		return -EBADMSG;
	return buf_append_slice(out, value);
}

/* Notes the placeholders in text, which is a part of body. */
static int search(struct fill *fill, const struct fill_kind *kind, const struct substitute *s,
        struct slice body, struct slice text)
{
	struct buf out = {.mem = fill->text.p, .cap = SECRET_MAX, .max = SECRET_MAX};
	size_t at, n;
	struct slice value;
	int rc = 0;

	while (rc == 0 && substitute_find(s, text, &at, &n, &value)) {
		struct fill_gap *gap = &fill->gaps[fill->count];

		if (fill->count == FILL_GAPS_MAX)
			return -E2BIG;
		out.len = fill->text.n;
		rc = escape(&out, kind, value);
		if (rc < 0)
			return rc;
		gap->at = (size_t)(text.p - body.p) + at;
		gap->n = n;
		gap->value = slice_of(fill->text.p + fill->text.n, out.len - fill->text.n);
		fill->text.n = out.len;
		fill->length += gap->value.n - n;
		fill->count++;
		text = slice_of(text.p + at + n, text.n - at - n);
	}
	return rc;
}

static int search_json(struct fill *fill, const struct fill_kind *kind, const struct substitute *s,
        struct slice body)
{
	struct json_tree tree;
	int rc = json_read(&tree, body);

	for (uint32_t i = 0; rc == 0 && i < tree.count; i++)
		if (json_at(&tree, i)->kind == JSON_IS_STRING)
			rc = search(fill, kind, s, body, json_written(&tree, json_at(&tree, i)));
	json_fini(&tree);
	return rc;
}

static int search_parts(struct fill *fill, const struct fill_kind *kind, const struct substitute *s,
        struct slice body)
{
	struct slice rest = body, content;
	bool begun = false, whole;
	int rc = 0;

	while (rc == 0 && next_content(&rest, kind->boundary, &begun, &whole, &content))
		rc = search(fill, kind, s, body, content);
	return rc;
}

int fill_make(struct fill *fill, const struct fill_kind *kind, const struct substitute *s,
        struct slice body)
{
	int rc;

	fill_fini(fill);
	fill->length = body.n;
	if (kind->form == FILL_NONE || !substitute_mentions(s, body))
		return 0;
	rc = secret_alloc(&fill->text, SECRET_MAX);
	if (rc < 0)
		return rc;
	if (kind->form == FILL_JSON)
		return search_json(fill, kind, s, body);
	if (kind->form == FILL_MULTIPART)
		return search_parts(fill, kind, s, body);
	return search(fill, kind, s, body, body);
}

void fill_fini(struct fill *fill)
{
	secret_free(&fill->text);
	*fill = (struct fill){.count = 0};
}

struct slice fill_from(const struct fill *fill, struct slice body, size_t offset)
{
	size_t at = 0; /* in the body */

	for (size_t i = 0; i < fill->count; i++) {
		const struct fill_gap *gap = &fill->gaps[i];

		if (offset < gap->at - at)
			return slice_of(body.p + at + offset, gap->at - at - offset);
		offset -= gap->at - at;
		if (offset < gap->value.n)
			return slice_of(gap->value.p + offset, gap->value.n - offset);
		offset -= gap->value.n;
		at = gap->at + gap->n;
	}
	return slice_of(body.p + at + offset, body.n - at - offset);
}
