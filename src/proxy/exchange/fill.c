/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A form is searched as a whole: placeholders have no byte that a form escapes. In JSON, strings
 * are searched, but not the names of members.
 */
#include "proxy/exchange/fill.h"

#include <errno.h>

#include "vethguard/credential/json_reader.h"
#include "vethguard/sign/sigv4.h"

static struct slice media_type(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];
		ptrdiff_t semicolon = slice_find_byte(f->value, ';');

		if (!f->dropped && f->known == HTTP_CONTENT_TYPE)
			return slice_trim(slice_of(
			        f->value.p, semicolon < 0 ? f->value.n : (size_t)semicolon));
	}
	return SLICE("");
}

static bool is_json(struct slice type)
{
	return slice_equals_ignoring_case(type, SLICE("application/json")) ||
	       (type.n > 5 && slice_equals_ignoring_case(
	                              slice_of(type.p + type.n - 5, 5), SLICE("+json")));
}

enum fill_form fill_form_of(
        const struct http_fields *fields, const struct policy_credential *spec, bool sealed)
{
	struct slice type = media_type(fields);

	if (spec->inject != POLICY_INJECT_PLACEHOLDER)
		return FILL_NONE;
	if (is_json(type) && (sealed || policy_replaces_in(spec, SLICE("json"))))
		return FILL_JSON;
	if (slice_equals_ignoring_case(type, SLICE("application/x-www-form-urlencoded")) &&
	        (sealed || policy_replaces_in(spec, SLICE("form"))))
		return FILL_FORM;
	return FILL_NONE;
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

const char *fill_check(enum fill_form form, struct slice body)
{
	struct json_reader r;
	struct json_value v;

	if (form != FILL_JSON)
		return NULL;
	json_reader_init(&r, body);
	while (json_reader_next(&r, &v))
		;
	return r.fault ? "the request's body is not the JSON that its Content-Type promises, so no "
	                 "placeholder can be replaced in it"
	               : NULL;
}

static int escape(struct buf *out, enum fill_form form, struct slice value)
{
	return form == FILL_JSON ? json_encode(out, value) : sigv4_escape(out, value, false);
}

/* Notes the placeholders in text, which is a part of body. */
static int search(struct fill *fill, enum fill_form form, const struct substitute *s,
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
		rc = escape(&out, form, value);
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

int fill_make(struct fill *fill, enum fill_form form, const struct substitute *s, struct slice body)
{
	struct json_reader r;
	struct json_value v;
	int rc;

	fill_fini(fill);
	fill->length = body.n;
	if (form == FILL_NONE || !substitute_mentions(s, body))
		return 0;
	rc = secret_alloc(&fill->text, SECRET_MAX);
	if (rc == 0 && form == FILL_FORM)
		return search(fill, form, s, body, body);
	json_reader_init(&r, body);
	while (rc == 0 && json_reader_next(&r, &v))
		if (v.kind == JSON_VALUE_STRING)
			rc = search(fill, form, s, body, v.text);
	return rc;
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
