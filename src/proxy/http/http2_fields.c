/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/2 header block as a message's head. Its fields go into the same structs that an HTTP/1
 * head fills, and are interpreted by the same functions (http/rules.c, http/target.c). Errors get
 * the same response.
 */

#include "proxy/http/http2.h"

/* --- reading --- */

static struct http_fault fault(uint16_t status, const char *why)
{
	return (struct http_fault){status, why};
}

/* Finds fields that HTTP/2 forbids (RFC 9113 section 8.2.2), and their look-alikes. */
static const char *check_fields(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		if (http2_is_of_connection(f->known))
			return "a connection-specific field in HTTP/2";
		if (f->known == HTTP_TE && !slice_equals_ignoring_case(f->value, SLICE("trailers")))
			return "te other than trailers in HTTP/2";
		if (http_resembles_framing(f)) /* the upstream may speak HTTP/1 */
			return "a field name that some servers take for another's";
	}
	return NULL;
}

/* p is NULL for a field that was not given. */
struct pseudo {
	struct slice method, scheme, path, authority, protocol, status;
};

static struct http_fault gather(
        const struct http2_block *b, struct http_fields *fields, struct pseudo *pseudo)
{
	const struct {
		struct slice name, *value;
	} known[] = {
	        {SLICE(":method"), &pseudo->method},
	        {SLICE(":scheme"), &pseudo->scheme},
	        {SLICE(":path"), &pseudo->path},
	        {SLICE(":authority"), &pseudo->authority},
	        {SLICE(":protocol"), &pseudo->protocol},
	        {SLICE(":status"), &pseudo->status},
	};
	struct slice rest = buf_slice(&b->text), name, value;
	const char *why;
	size_t k;

	memset(pseudo, 0, sizeof(*pseudo));
	fields->count = 0;
	if (b->too_large && !b->plain) /* as a request line (RFC 9112 section 3) */
		return fault(HTTP_TARGET_TOO_LONG, "request target too long");
	if (b->too_large)
		return fault(HTTP_FIELDS_TOO_LARGE, "the head is too large");
	if (b->why)
		return fault(HTTP_MALFORMED, b->why);
	while (http2_block_next(&rest, &name, &value)) {
		if (name.p[0] != ':') {
			if (!http_add(fields, name, value))
				return fault(HTTP_FIELDS_TOO_LARGE, "too many header fields");
			continue;
		}
		for (k = 0; k < sizeof(known) / sizeof(*known); k++)
			if (slice_equals(name, known[k].name))
				break;
		if (k == sizeof(known) / sizeof(*known) || known[k].value->p)
			return fault(HTTP_MALFORMED, "pseudo-header field unknown or given twice");
		*known[k].value = value;
	}
	if (b->cookies.len && !http_add(fields, SLICE("cookie"), buf_slice(&b->cookies)))
		return fault(HTTP_FIELDS_TOO_LARGE, "too many header fields");
	why = check_fields(fields);
	return why ? fault(HTTP_MALFORMED, why) : HTTP_SOUND;
}

static const char *frame_request(struct http_request *r, bool ended)
{
	bool has;
	const char *why = http_read_length(&r->fields, false, &has, &r->content_length);

	if (why)
		return why;
	if (r->protocol.n)
		return has || ended ? "an extended CONNECT has no content of its own" : NULL;
	if (has)
		r->body = HTTP_BODY_LENGTH;
	else if (!ended)
		r->body = HTTP_BODY_CHUNKED;
	else
		r->body = http_body_of_nothing(r->method);
	return ended && r->content_length ? "content-length without content" : NULL;
}

/* Checks which pseudo-header fields are present (RFC 9113 sections 8.3.1 and 8.5, RFC 8441 section
 * 4). */
static const char *read_pseudo(struct http_request *r, const struct pseudo *p)
{
	bool connect = slice_equals(p->method, SLICE("CONNECT"));

	if (p->status.p)
		return ":status in a request";
	if (p->protocol.p && !connect)
		return ":protocol without CONNECT";
	if (connect && !p->protocol.p) {
		if (p->scheme.p || p->path.p)
			return "CONNECT with a scheme or a path";
		r->target = p->authority;
		return NULL;
	}
	if (slice_equals_ignoring_case(p->scheme, SLICE("https")))
		r->scheme = POLICY_HTTPS;
	else if (slice_equals_ignoring_case(p->scheme, SLICE("http")))
		r->scheme = POLICY_HTTP;
	else
		return "scheme is neither http nor https";
	if (!p->path.n || (p->path.p[0] != '/' && !slice_equals(p->path, SLICE("*"))))
		return "malformed path";
	r->absolute = true; /* scheme, authority and path were all given */
	r->target = p->path;
	if (p->authority.p) {
		if (!url_parse_authority(p->authority, &r->authority))
			return "malformed authority";
		r->has_authority = true;
	}
	return NULL;
}

/* Reads the target. An extended CONNECT (RFC 8441) becomes the GET with an upgrade of HTTP/1.1, so
 * that both are authorized and sent in one way. */
static const char *read_target(struct http_request *r)
{
	if (r->protocol.p) {
		if (!slice_equals(r->protocol, SLICE("websocket")))
			return "a protocol other than websocket";
		r->method = SLICE("GET");
		r->wants_websocket = true;
	}
	return r->absolute && r->target.p[0] == '*' && !slice_equals(r->method, SLICE("OPTIONS"))
	               ? "malformed path"
	               : http_parse_target(r);
}

struct http_fault http2_read_request(
        const struct http2_block *b, bool ended, struct http_request *r)
{
	struct pseudo pseudo;
	struct http_fault wrong;
	const char *why;

	memset(r, 0, offsetof(struct http_request, fields));
	r->version = 20;
	r->keep_alive = true;
	wrong = gather(b, &r->fields, &pseudo);
	if (!wrong.why)
		wrong = http_check_method(pseudo.method);
	if (!wrong.why)
		wrong = http_check_target(pseudo.path);
	if (wrong.why)
		return wrong;
	r->method = pseudo.method;
	r->protocol = pseudo.protocol;
	why = read_pseudo(r, &pseudo);
	if (!why)
		why = read_target(r);
	if (!why)
		why = frame_request(r, ended);
	if (why)
		return fault(HTTP_MALFORMED, why);
	wrong = http_read_expect(r);
	if (wrong.why)
		return wrong;
	why = http_parse_host(r);
	return why ? fault(http_host_is_other(r) ? HTTP_MISDIRECTED : HTTP_MALFORMED, why)
	           : HTTP_SOUND;
}

static void frame_response(struct http_response *r, bool ended, bool no_body, bool has)
{
	bool never = r->status / 100 == 1 || r->status == 204;

	if (never || (!has && (no_body || r->status == 304)))
		r->body = HTTP_BODY_NONE;
	else if (has)
		r->body = HTTP_BODY_LENGTH;
	else
		r->body = ended ? HTTP_BODY_LENGTH : HTTP_BODY_CHUNKED;
}

static const char *read_status(const struct pseudo *p, struct http_response *r)
{
	uint64_t status;

	if (p->method.p || p->scheme.p || p->path.p || p->authority.p || p->protocol.p)
		return "a request's pseudo-header field in a response";
	if (p->status.n != 3 || !slice_to_u64(p->status, HTTP_STATUS_MAX, &status) ||
	        status < HTTP_STATUS_MIN)
		return "status code out of range";
	r->status = (uint16_t)status;
	r->reason = http_reason(r->status);
	return NULL;
}

const char *http2_read_response(
        const struct http2_block *b, bool ended, bool no_body, struct http_response *r)
{
	struct pseudo pseudo;
	const char *why;
	bool has;

	memset(r, 0, offsetof(struct http_response, fields));
	r->version = 20;
	r->keep_alive = true;
	why = gather(b, &r->fields, &pseudo).why;
	if (!why)
		why = read_status(&pseudo, r);
	if (!why)
		why = http_read_length(&r->fields, true, &has, &r->content_length);
	if (why)
		return why;
	frame_response(r, ended, no_body, has);
	return ended && r->body == HTTP_BODY_LENGTH && !no_body && r->status != 304 &&
	                       r->content_length
	               ? "content-length without content"
	               : NULL;
}

/* --- writing --- */

size_t http2_put_fields(const struct http_fields *fields, nghttp2_nv *nv)
{
	size_t n = 0;

	for (size_t i = 0; i < fields->count; i++)
		if (!fields->items[i].dropped)
			nv[n++] = http2_nv(fields->items[i].name, fields->items[i].value);
	return n;
}

size_t http2_put_lines(struct slice lines, nghttp2_nv *nv, size_t max)
{
	size_t count = 0;

	while (lines.n && count < max) {
		const char *lf = memchr(lines.p, '\n', lines.n);
		size_t n = lf ? (size_t)(lf - lines.p) + 1 : lines.n;
		struct slice line = slice_trim(slice_of(lines.p, lf ? n - 1 : n));
		ptrdiff_t colon;

		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		colon = slice_find_byte(line, ':');
		if (colon > 0)
			nv[count++] = http2_nv(slice_of(line.p, (size_t)colon),
			        slice_trim(
			                slice_of(line.p + colon + 1, line.n - (size_t)colon - 1)));
		lines = slice_of(lines.p + n, lines.n - n);
	}
	return count;
}
