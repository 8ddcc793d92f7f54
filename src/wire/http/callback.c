/* SPDX-License-Identifier: Apache-2.0 */
/* Parses heads of questions, and writes the head of the request that a question by path means. */
#include "vethguard/wire/callback.h"

#define TOKEN_FIELD "x-vethguard-token"
#define SIGNATURE_FIELD "x-langsmith-signature-jwt"
#define PARTIAL_FIELD "x-envoy-auth-partial-body"
#define LANGSMITH_PATH "/callback/langsmith"

/* Fields that belong to the question and not to its request. */
static const struct slice own_fields[] = {{"host", 4}, {"proxy-authorization", 19},
        {TOKEN_FIELD, sizeof(TOKEN_FIELD) - 1}, {SIGNATURE_FIELD, sizeof(SIGNATURE_FIELD) - 1},
        {PARTIAL_FIELD, sizeof(PARTIAL_FIELD) - 1}};

static struct slice value_of(struct slice line, struct slice name)
{
	return slice_trim(slice_of(line.p + name.n + 1, line.n - name.n - 3));
}

/* Reads the question's own fields into *out. Sets *partial if the body was cut off. Returns NULL,
 * or what is wrong. */
static const char *read_fields(
        const uint8_t *p, const struct proxy_head *head, struct callback *out, bool *partial)
{
	struct slice line, name;
	size_t at = 0;

	while (proxy_head_next_field(p, head, &at, &line, &name)) {
		const struct slice value = value_of(line, name);
		struct slice *into =
		        slice_equals_ignoring_case(name, SLICE(TOKEN_FIELD))       ? &out->token
		        : slice_equals_ignoring_case(name, SLICE(SIGNATURE_FIELD)) ? &out->signature
		                                                                   : NULL;

		if (slice_equals_ignoring_case(name, SLICE(PARTIAL_FIELD)))
			*partial |= !slice_equals_ignoring_case(value, SLICE("false"));
		if (into && into->n)
			return "a field with a proof appears twice";
		if (into)
			*into = value;
	}
	return NULL;
}

/* Takes prefix off the beginning of *s. */
static bool take(struct slice *s, struct slice prefix)
{
	if (!slice_starts_with(*s, prefix))
		return false;
	*s = slice_of(s->p + prefix.n, s->n - prefix.n);
	return true;
}

static const char *read_check(const struct proxy_head *head, struct callback *out)
{
	struct slice rest = head->target;

	out->kind = CALLBACK_CHECK;
	out->tells_body = take(&rest, SLICE("/check-body/"));
	if (!out->tells_body && !take(&rest, SLICE("/check/")))
		return "a question has the path /check/https/..., /check/http/..., "
		       "/check-body/https/..., /check-body/http/... or " LANGSMITH_PATH;
	out->url.https = take(&rest, SLICE("https"));
	if (!out->url.https && !take(&rest, SLICE("http")))
		return "https or http and the request's path follow /check/ or /check-body/";
	if (!rest.n || rest.p[0] != '/')
		return "a path that begins with a slash follows https or http";
	if (!base_url_is_authority(head->host))
		return "Host is not the name of the request's host, perhaps with a port";
	out->url.authority = head->host;
	out->url.path = rest;
	return base_url_check_path(rest);
}

const char *callback_parse(const uint8_t *p, const struct proxy_head *head, struct callback *out)
{
	bool partial = false;
	const char *why;

	*out = (struct callback){.token = SLICE(""), .signature = SLICE("")};
	out->url = (struct base_url){.token = SLICE(""), .authority = SLICE(""), .path = SLICE("")};
	if (head->form != PROXY_FORM_ORIGIN)
		return "a question is a request to the gateway itself";
	why = read_fields(p, head, out, &partial);
	if (why)
		return why;
	if (!slice_equals(head->target, SLICE(LANGSMITH_PATH))) {
		why = read_check(head, out);
		out->tells_body = out->tells_body && !partial;
		return why;
	}
	out->kind = CALLBACK_LANGSMITH;
	if (!slice_equals(head->method, SLICE("POST")))
		return "a callback has the method POST";
	return head->body == PROXY_BODY_LENGTH ? NULL : "a callback has a Content-Length";
}

static bool is_own(struct slice name)
{
	for (size_t i = 0; i < sizeof(own_fields) / sizeof(*own_fields); i++)
		if (slice_equals_ignoring_case(name, own_fields[i]))
			return true;
	return false;
}

int callback_write_check(const uint8_t *p, const struct proxy_head *head,
        const struct callback *callback, struct buf *out)
{
	const struct base_url *url = &callback->url;
	const struct slice parts[] = {head->method, SLICE(" "),
	        url->https ? SLICE("https://") : SLICE("http://"), url->authority, url->path,
	        SLICE(" HTTP/1.1\r\nHost: "), url->authority, SLICE("\r\n")};
	struct slice line, name;
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !rc; i++)
		rc = buf_append_slice(out, parts[i]);
	while (!rc && proxy_head_next_field(p, head, &at, &line, &name))
		if (!is_own(name))
			rc = buf_append_slice(out, line);
	if (!rc && head->last)
		rc = buf_append_slice(out, SLICE("Connection: close\r\n"));
	return rc ? rc : buf_append_slice(out, SLICE("\r\n"));
}
