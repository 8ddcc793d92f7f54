/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP/1.x message: the grammar of its lines (RFC 9112 sections 3 to 5), then what
 * its fields say about the body's framing, about keeping the connection and about changing the
 * protocol. A head that contradicts itself is refused.
 */
#include "proxy/http/http1.h"

/* --- fields --- */

/* Reads a field: its name is a token, and a colon follows (RFC 9112 section 5.1). */
static bool read_field(struct http1 *h, struct slice line, struct http_field *out)
{
	size_t n = slice_token_length(line), colon = n;

	while (h->response && colon < line.n && (line.p[colon] == ' ' || line.p[colon] == '\t'))
		colon++;
	if (!n || colon == line.n || line.p[colon] != ':')
		return http1_refuse(h, HTTP_MALFORMED,
		        !n                ? "a field without a name"
		        : colon == line.n ? "a field without a colon"
		        : line.p[n] == ' ' || line.p[n] == '\t'
		                ? "white space in a field name"
		                : "a byte that no field name may have");
	out->name = slice_of(line.p, n);
	out->value = slice_trim(slice_of(line.p + colon + 1, line.n - colon - 1));
	out->known = http_name_of(out->name);
	out->dropped = out->secret = false;
	return http_is_value(out->value) ||
	       http1_refuse(h, HTTP_MALFORMED, "a control character in a field value");
}

/* The line at *at without its CRLF, which http1.c has checked. */
static struct slice next_line(const struct http1 *h, size_t *at)
{
	const char *p = (const char *)buf_bytes(&h->head) + *at;
	const char *lf = memchr(p, '\n', h->head.len - *at);
	size_t n = (size_t)(lf - p);

	*at += n + 1;
	return slice_of(p, n - 1);
}

/* Reads the lines. Folded lines have been joined by now. */
static enum http1_status read_lines(
        struct http1 *h, size_t head_n, struct http1_start *start, struct http_fields *fields)
{
	size_t at = 0;

	fields->count = 0;
	if (!http1_read_start(h, next_line(h, &at), start))
		return HTTP1_BAD;
	while (at < head_n - 2) {
		if (fields->count == HTTP_FIELDS_MAX) {
			http1_refuse(h, HTTP_FIELDS_TOO_LARGE, "too many header fields");
			return HTTP1_TOO_LARGE;
		}
		if (!read_field(h, next_line(h, &at), &fields->items[fields->count]))
			return HTTP1_BAD;
		fields->count++;
	}
	return HTTP1_DONE;
}

/* --- the body's framing (RFC 9112 section 6.3) --- */

static bool read_framing(struct http1 *h, const struct http_fields *fields, uint8_t version,
        enum http_body *body, uint64_t *length)
{
	struct http_fault fault;
	bool chunked, has;
	const char *why;

	for (size_t i = 0; i < fields->count; i++)
		if (http_resembles_framing(&fields->items[i]))
			return http1_refuse(h, HTTP_MALFORMED,
			        "a field name that some servers take for another's");
	why = http_read_length(fields, h->response, &has, length);
	if (why)
		return http1_refuse(h, HTTP_MALFORMED, why);
	fault = http_read_codings(fields, &chunked);
	if (fault.why)
		return http1_refuse(h, fault.status, fault.why);
	if (chunked && has)
		return http1_refuse(
		        h, HTTP_MALFORMED, "content-length together with transfer-encoding");
	if (chunked && version < 11)
		return http1_refuse(h, HTTP_MALFORMED, "transfer-encoding in HTTP/1.0");
	*body = chunked ? HTTP_BODY_CHUNKED : has ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	return true;
}

/* The head is done: sets what http1_body() will read. */
static void expect_body(struct http1 *h, enum http_body body, uint64_t length)
{
	h->head_done = true;
	h->body = body;
	h->left = length;
	h->message_done = body == HTTP_BODY_NONE || (body == HTTP_BODY_LENGTH && !length);
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

/* protocol: the one to look for; empty: any. */
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

/* Reads the destination, which has to be named consistently. */
static bool read_destination(struct http1 *h, struct http_request *r)
{
	const char *why = http_parse_target(r);

	if (why)
		return http1_refuse(h, HTTP_MALFORMED, why);
	why = http_parse_host(r);
	return !why ||
	       http1_refuse(h, http_host_is_other(r) ? HTTP_MISDIRECTED : HTTP_MALFORMED, why);
}

/* CONNECT has no content (RFC 9110 section 9.3.6): what follows its head belongs to the tunnel. */
static bool connects_with_content(const struct http_request *r)
{
	return slice_equals(r->method, SLICE("CONNECT")) &&
	       (r->body == HTTP_BODY_CHUNKED || r->content_length);
}

enum http1_status http1_request_head(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, struct http_request *r)
{
	size_t head_n;
	struct http_fault fault;
	struct http1_start start;
	enum http1_status status = http1_gather(h, p, n, used, &head_n);

	if (status != HTTP1_DONE)
		return status;
	/* Fields are overwritten as they come; the rest is cleared. */
	memset(r, 0, offsetof(struct http_request, fields));
	status = read_lines(h, head_n, &start, &r->fields);
	if (status != HTTP1_DONE)
		return status;
	r->method = start.method;
	r->target = start.target;
	r->version = start.version;
	if (!read_destination(h, r) ||
	        !read_framing(h, &r->fields, r->version, &r->body, &r->content_length))
		return HTTP1_BAD;
	if (r->body == HTTP_BODY_NONE)
		r->body = http_body_of_nothing(r->method);
	r->keep_alive = wants_keep_alive(&r->fields, r->version);
	fault = http_read_expect(r);
	if (fault.why)
		http1_refuse(h, fault.status, fault.why);
	if (connects_with_content(r))
		http1_refuse(h, HTTP_MALFORMED, "CONNECT with content");
	if (h->fault.why)
		return HTTP1_BAD;
	r->wants_websocket = r->version >= 11 && has_upgrade(&r->fields, SLICE("websocket")) &&
	                     slice_equals(r->method, SLICE("GET")) && r->body == HTTP_BODY_NONE;
	r->wants_upgrade =
	        r->version >= 11 && !r->wants_websocket && has_upgrade(&r->fields, SLICE(""));
	expect_body(h, r->body, r->content_length);
	return HTTP1_DONE;
}

/* --- responses --- */

/* A 304 and a response to HEAD may give a length but have no content (RFC 9112 section 6.3, rule
 * 1). */
static void frame_response(struct http1 *h, bool no_body, struct http_response *r)
{
	bool never = r->status / 100 == 1 || r->status == 204;
	bool none = never || r->status == 304 || no_body;

	if (never || (none && r->body != HTTP_BODY_LENGTH))
		r->body = HTTP_BODY_NONE;
	else if (r->body == HTTP_BODY_NONE)
		r->body = HTTP_BODY_UNTIL_CLOSE;
	expect_body(h, none ? HTTP_BODY_NONE : r->body, r->content_length);
}

enum http1_status http1_response_head(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        bool no_body, struct http_response *r)
{
	size_t head_n;
	struct http1_start start = {0};
	enum http1_status status = http1_gather(h, p, n, used, &head_n);

	if (status != HTTP1_DONE)
		return status;
	memset(r, 0, offsetof(struct http_response, fields));
	status = read_lines(h, head_n, &start, &r->fields);
	if (status != HTTP1_DONE)
		return status;
	r->status = start.status;
	r->reason = start.reason;
	r->version = start.version;
	if (!read_framing(h, &r->fields, r->version, &r->body, &r->content_length))
		return HTTP1_BAD;
	r->keep_alive = wants_keep_alive(&r->fields, r->version);
	frame_response(h, no_body, r);
	return HTTP1_DONE;
}
