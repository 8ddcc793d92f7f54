/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the request's fields say what its body is. Only unambiguous fields
 * count: one Content-Type, no charset but UTF-8, no content coding. A body of an allowed type
 * whose content is not of that type is OTHER, with the reason.
 */
#include "vethguard/policy/body.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/image/image.h"
#include "vethguard/policy/json.h"
#include "vethguard/policy/url.h"

/* Fields that say what a body is; some servers read "content_type" as well. */
static bool is_named(struct slice name, const char *wanted)
{
	struct slice w = slice_from_string(wanted);

	if (name.n != w.n)
		return false;
	for (size_t i = 0; i < w.n; i++) {
		char c = name.p[i] == '_' ? '-' : name.p[i];

		if ((c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c) != w.p[i])
			return false;
	}
	return true;
}

/* The value of the only field of that name. Returns how many there are. */
static unsigned find_field(
        const struct policy_fields *fields, const char *name, struct slice *value)
{
	struct policy_field field;
	unsigned count = 0;
	size_t at = 0;

	*value = SLICE("");
	while (fields && fields->next(fields->context, &at, &field)) {
		if (!is_named(field.name, name))
			continue;
		*value = slice_trim(field.value);
		count++;
	}
	return count;
}

/* Takes the text before the next ';' off rest. */
static struct slice next_part(struct slice *rest)
{
	ptrdiff_t at = slice_find_byte(*rest, ';');
	size_t n = at < 0 ? rest->n : (size_t)at;
	struct slice part = slice_trim(slice_of(rest->p, n));

	n += at >= 0;
	*rest = slice_of(rest->p + n, rest->n - n);
	return part;
}

/* False for a charset other than UTF-8, for two of them, and for quotes in other parameters, which
 * could hide one. */
static bool parameters_are_sound(struct slice rest)
{
	unsigned charsets = 0;

	while (rest.n) {
		struct slice part = next_part(&rest);
		bool utf8 = slice_equals_ignoring_case(part, SLICE("charset=utf-8")) ||
		            slice_equals_ignoring_case(part, SLICE("charset=\"utf-8\""));
		bool other = part.n >= 7 &&
		             slice_equals_ignoring_case(slice_of(part.p, 7), SLICE("charset"));

		if (utf8)
			charsets++;
		else if (other || slice_find_byte(part, '"') >= 0)
			return false;
	}
	return charsets <= 1;
}

static enum policy_body_kind kind_of(struct slice type)
{
	static const struct slice application = {"application/", 12};

	if (slice_equals_ignoring_case(type, SLICE("application/json")))
		return POLICY_BODY_JSON;
	if (slice_equals_ignoring_case(type, SLICE("application/x-www-form-urlencoded")))
		return POLICY_BODY_FORM;
	if (slice_equals_ignoring_case(type, SLICE("application/x-git-upload-pack-request")))
		return POLICY_BODY_GIT_FETCH;
	if (slice_equals_ignoring_case(type, SLICE("application/x-git-receive-pack-request")))
		return POLICY_BODY_GIT_PUSH;
	if (type.n > application.n + 5 &&
	        slice_equals_ignoring_case(slice_of(type.p, application.n), application) &&
	        slice_equals_ignoring_case(slice_of(type.p + type.n - 5, 5), SLICE("+json")))
		return POLICY_BODY_JSON;
	return POLICY_BODY_OTHER;
}

static bool is_git(enum policy_body_kind kind)
{
	return kind == POLICY_BODY_GIT_FETCH || kind == POLICY_BODY_GIT_PUSH;
}

/* Returns false if the body has a content coding that is not read. Only gzip is read: git
 * compresses large requests by it, and all git servers read it. *gzip: the coding is gzip. */
static bool coding_is_read(const struct policy_fields *fields, bool *gzip)
{
	struct slice value;
	unsigned count = find_field(fields, "content-encoding", &value);

	*gzip = count == 1 && (slice_equals_ignoring_case(value, SLICE("gzip")) ||
	                              slice_equals_ignoring_case(value, SLICE("x-gzip")));
	return *gzip || count == 0 ||
	       (count == 1 && (!value.n || slice_equals_ignoring_case(value, SLICE("identity"))));
}

/* Sets the body's kind, or its fault. */
static void read_fields(struct policy_body *body, const struct policy_fields *fields)
{
	struct slice value, type, hash;
	unsigned count = find_field(fields, "content-type", &value);
	bool coded = !coding_is_read(fields, &body->gzip);

	type = next_part(&value);
	if (coded || (body->gzip && !(count == 1 && is_git(kind_of(type))))) {
		body->fault = "the request's body has a content coding, and cannot be read";
		return;
	}
	if (find_field(fields, "x-amz-content-sha256", &hash) &&
	        slice_starts_with(hash, SLICE("STREAMING-"))) {
		body->fault = "the request's body is signed in chunks, and cannot be read";
		return;
	}
	if (count != 1) {
		body->fault = count ? "the request has more than one content type"
		                    : "the request has a body without a content type";
		return;
	}
	body->kind = kind_of(type);
	if (body->kind != POLICY_BODY_OTHER &&
	        (is_git(body->kind) ? value.n > 0 : !parameters_are_sound(value))) {
		body->kind = POLICY_BODY_OTHER;
		body->fault = "the request's content type has a charset that is not UTF-8, or "
		              "unclear parameters";
	}
}

static void read_json(struct policy_body *body)
{
	int rc = -ENOMEM;

	body->json = calloc(1, sizeof(*body->json));
	if (body->json)
		rc = json_read(body->json, body->text);
	if (rc == 0 && json_at(body->json, 0)->kind <= JSON_IS_ARRAY)
		return;
	body->kind = POLICY_BODY_OTHER;
	body->fault = rc == 0          ? "the request's body is neither an object nor an array"
	              : rc == -EBADMSG ? body->json->fault
	                               : "no memory to read the request's body";
}

/* Some servers separate parameters by ';', others take it as a part of a value. */
static void check_form(struct policy_body *body)
{
	bool sound = url_escapes_are_sound(body->text);

	for (size_t i = 0; i < body->text.n && sound; i++) {
		unsigned char c = (unsigned char)body->text.p[i];

		sound = c > ' ' && c < 0x7f && c != ';';
	}
	if (sound)
		return;
	body->kind = POLICY_BODY_OTHER;
	body->fault = "the request's body is not a valid form, or servers could read it in "
	              "different ways";
}

void policy_body_read(
        struct policy_body *body, const struct policy_fields *fields, struct slice text)
{
	*body = (struct policy_body){.state = POLICY_BODY_READ, .text = text};
	read_fields(body, fields);
	if (body->kind == POLICY_BODY_JSON)
		read_json(body);
	else if (body->kind == POLICY_BODY_FORM)
		check_form(body);
}

void policy_body_fini(struct policy_body *body)
{
	if (body->json)
		json_fini(body->json);
	free(body->json);
	if (body->git) {
		free(body->git->commands);
		free(body->git->options);
	}
	free(body->git);
	free(body->plain);
	*body = (struct policy_body){.text = SLICE("")};
}

uint32_t policy_inspect(const struct policy *policy)
{
	return image_header(policy)->inspect;
}
