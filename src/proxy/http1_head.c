/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the head of an HTTP/1.x message means: its version, what its fields say about the body's
 * framing, about keeping the connection and about changing the protocol. Whatever contradicts
 * itself is refused.
 */
#include "proxy/http1.h"

/* --- what the fields say about the body (RFC 9112 section 6.3) --- */

static bool framing_fields(struct http1 *h, const struct http_fields *fields, uint8_t version,
        enum http_body *body, uint64_t *length)
{
	unsigned lengths = 0, codings = 0;

	*body = HTTP_BODY_NONE;
	*length = 0;
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		if (f->known == HTTP_CONTENT_LENGTH) {
			lengths++;
			*body = HTTP_BODY_LENGTH;
			if (!slice_to_u64(f->value, INT64_MAX, length))
				h->error = "content-length is not a number";
		} else if (f->known == HTTP_TRANSFER_ENCODING) {
			codings++;
			*body = HTTP_BODY_CHUNKED;
			if (!slice_equals_ignoring_case(f->value, SLICE("chunked")))
				h->error = "transfer-encoding other than chunked";
		} else if (http_resembles_framing(f)) {
			h->error = "a field name that some servers take for another's";
		}
	}
	if (lengths > 1)
		h->error = "content-length given twice";
	else if (codings > 1)
		h->error = "transfer-encoding given twice";
	else if (lengths && codings)
		h->error = "content-length together with transfer-encoding";
	else if (codings && version < 11)
		h->error = "transfer-encoding in HTTP/1.0";
	return !h->error;
}

static bool wants_keep_alive(const struct http_fields *fields, uint8_t version)
{
	bool keep = version >= 11;

	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		if (f->known != HTTP_CONNECTION)
			continue;
		if (http_list_has(f->value, SLICE("close")))
			return false;
		if (http_list_has(f->value, SLICE("keep-alive")))
			keep = true;
	}
	return keep;
}

/* protocol: that one, or empty: whichever. */
static bool has_upgrade(const struct http_fields *fields, struct slice protocol)
{
	const struct http_field *upgrade = http_find(fields, HTTP_UPGRADE);

	if (!upgrade || (protocol.n && !http_list_has(upgrade->value, protocol)))
		return false;
	for (size_t i = 0; i < fields->count; i++)
		if (fields->items[i].known == HTTP_CONNECTION &&
		        http_list_has(fields->items[i].value, SLICE("upgrade")))
			return true;
	return false;
}

/* --- requests --- */

static bool version_of(struct http1 *h, uint8_t *version)
{
	unsigned major = h->parser.http_major, minor = h->parser.http_minor;

	if (major != 1 || minor > 1) {
		h->error = "HTTP version is neither 1.0 nor 1.1";
		return false;
	}
	*version = (uint8_t)(10 + minor);
	return true;
}

/* 100-continue, once, or nothing (RFC 9110 section 10.1.1); HTTP/1.0 knows none. */
static bool expectation(struct http1 *h, struct http_request *r)
{
	for (size_t i = 0; i < r->fields.count && r->version >= 11; i++) {
		const struct http_field *f = &r->fields.items[i];

		if (f->known != HTTP_EXPECT)
			continue;
		if (r->expects_continue)
			h->error = "Expect given twice";
		else if (!slice_equals_ignoring_case(f->value, SLICE("100-continue")))
			h->error = "Expect other than 100-continue";
		r->expects_continue = true;
	}
	return !h->error;
}

enum http1_status http1_request_head(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, struct http_request *r)
{
	size_t head_n;
	enum http1_status status = http1_gather(h, p, n, used, &head_n);

	if (status != HTTP1_DONE)
		return status;
	/* The fields are overwritten as they come; the rest starts from nothing. */
	memset(r, 0, offsetof(struct http_request, fields));
	if (http1_parse(h, &r->fields, head_n) != HTTP1_DONE || !version_of(h, &r->version))
		return HTTP1_BAD;
	r->method = h->method;
	r->target = h->url;
	if (r->target.n > HTTP_TARGET_MAX) {
		h->error = "request target too long";
		return HTTP1_TOO_LARGE;
	}
	h->error = http_parse_target(r);
	if (!h->error)
		h->error = http_parse_host(r);
	if (h->error || !framing_fields(h, &r->fields, r->version, &r->body, &r->content_length))
		return HTTP1_BAD;
	h->is_chunked = r->body == HTTP_BODY_CHUNKED;
	r->keep_alive = wants_keep_alive(&r->fields, r->version);
	if (!expectation(h, r))
		return HTTP1_BAD;
	r->wants_websocket = r->version >= 11 && has_upgrade(&r->fields, SLICE("websocket")) &&
	                     slice_equals(r->method, SLICE("GET")) && r->body == HTTP_BODY_NONE;
	r->wants_upgrade =
	        r->version >= 11 && !r->wants_websocket && has_upgrade(&r->fields, SLICE(""));
	return HTTP1_DONE;
}

/* --- responses --- */

enum http1_status http1_response_head(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        bool no_body, struct http_response *r)
{
	size_t head_n;
	enum http1_status status = http1_gather(h, p, n, used, &head_n);

	if (status != HTTP1_DONE)
		return status;
	memset(r, 0, offsetof(struct http_response, fields));
	h->no_body = no_body;
	if (http1_parse(h, &r->fields, head_n) != HTTP1_DONE || !version_of(h, &r->version))
		return HTTP1_BAD;
	r->status = (uint16_t)h->parser.status_code;
	r->reason = h->reason;
	if (r->status < 100 || r->status > 599) {
		h->error = "status code out of range";
		return HTTP1_BAD;
	}
	if (!framing_fields(h, &r->fields, r->version, &r->body, &r->content_length))
		return HTTP1_BAD;
	r->keep_alive = wants_keep_alive(&r->fields, r->version);
	if (r->status / 100 == 1 || r->status == 204 || r->status == 304 || no_body)
		r->body = r->body == HTTP_BODY_LENGTH && (no_body || r->status == 304)
		                  ? HTTP_BODY_LENGTH
		                  : HTTP_BODY_NONE;
	else if (r->body == HTTP_BODY_NONE)
		r->body = HTTP_BODY_UNTIL_CLOSE;
	h->is_chunked = r->body == HTTP_BODY_CHUNKED;
	return HTTP1_DONE;
}
