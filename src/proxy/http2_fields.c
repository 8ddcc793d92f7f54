/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header blocks of HTTP/2. While a block is received its fields are copied one behind the other,
 * each after its two lengths, since the memory may still move; once it is whole they are read into
 * the same structs that an HTTP/1 head fills. nghttp2 has checked by then what RFC 9113 section 8
 * says of single fields (characters, lower case, order and number of pseudo-header fields,
 * connection-specific fields); here is what the fields mean together.
 */

#include "proxy/http2.h"

#define BLOCK_KEPT 4096 /* bytes of memory that a block keeps between two uses */

struct lengths {
	uint32_t name, value;
};

void http2_block_init(struct http2_block *b, size_t limit)
{
	memset(b, 0, sizeof *b);
	b->limit = limit;
	buf_init(&b->text, limit + (HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX) * sizeof(struct lengths));
	buf_init(&b->cookies, limit);
}

void http2_block_fini(struct http2_block *b)
{
	buf_fini(&b->text);
	buf_fini(&b->cookies);
}

void http2_block_reset(struct http2_block *b)
{
	if (b->text.cap > BLOCK_KEPT)
		buf_fini(&b->text);
	buf_consume(&b->text, b->text.len);
	buf_fini(&b->cookies);
	b->size = b->count = 0;
	b->too_large = false;
}

static bool add_crumb(struct http2_block *b, struct slice value)
{
	return (!b->cookies.len || buf_append(&b->cookies, "; ", 2) == 0) &&
	       buf_append_slice(&b->cookies, value) == 0;
}

static bool add_field(struct http2_block *b, struct slice name, struct slice value)
{
	const struct lengths n = {(uint32_t)name.n, (uint32_t)value.n};
	uint8_t *p = buf_reserve(&b->text, sizeof n + name.n + value.n);

	if (!p || b->count == HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX)
		return false;
	memcpy(p, &n, sizeof n);
	if (name.n)
		memcpy(p + sizeof n, name.p, name.n);
	if (value.n)
		memcpy(p + sizeof n + name.n, value.p, value.n);
	buf_commit(&b->text, sizeof n + name.n + value.n);
	b->count++;
	return true;
}

void http2_block_add(struct http2_block *b, struct slice name, struct slice value)
{
	b->size += name.n + value.n + HTTP2_FIELD_COST;
	if (b->size > b->limit)
		b->too_large = true;
	if (b->too_large)
		return;
	if (slice_equals(name, SLICE("cookie")) ? !add_crumb(b, value) : !add_field(b, name, value))
		b->too_large = true;
}

/* --- reading --- */

static struct slice next_part(struct slice *rest, size_t n)
{
	struct slice part = slice_of(rest->p, n);

	*rest = slice_of(rest->p + n, rest->n - n);
	return part;
}

static bool next_field(struct slice *rest, struct slice *name, struct slice *value)
{
	struct lengths n;

	if (!rest->n)
		return false;
	memcpy(&n, next_part(rest, sizeof n).p, sizeof n);
	*name = next_part(rest, n.name);
	*value = next_part(rest, n.value);
	return true;
}

/* Exactly one decimal number, once. */
static const char *read_length(const struct http_fields *fields, bool *has, uint64_t *length)
{
	*has = false;
	for (size_t i = 0; i < fields->count; i++) {
		if (fields->items[i].known != HTTP_CONTENT_LENGTH)
			continue;
		if (*has)
			return "content-length given twice";
		if (!slice_to_u64(fields->items[i].value, INT64_MAX, length))
			return "content-length is not a number";
		*has = true;
	}
	return NULL;
}

/* What no head may carry in HTTP/2 (RFC 9113 section 8.2.2), nor under another spelling. */
static const char *check_fields(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		if (f->known == HTTP_CONNECTION || f->known == HTTP_KEEP_ALIVE ||
		        f->known == HTTP_PROXY_CONNECTION || f->known == HTTP_UPGRADE ||
		        f->known == HTTP_TRANSFER_ENCODING)
			return "a connection-specific field in HTTP/2";
		if (f->known == HTTP_TE && !slice_equals_ignoring_case(f->value, SLICE("trailers")))
			return "te other than trailers in HTTP/2";
		if (http_resembles_framing(f)) /* behind us may be HTTP/1 */
			return "a field name that some servers take for another's";
	}
	return NULL;
}

struct pseudo {
	struct slice method, scheme, path, authority, protocol, status;
};

static const char *gather(
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
	size_t k;

	fields->count = 0;
	while (next_field(&rest, &name, &value)) {
		if (!name.n || name.p[0] != ':') {
			if (!http_add(fields, name, value))
				return "too many fields";
			continue;
		}
		for (k = 0; k < sizeof known / sizeof *known; k++)
			if (slice_equals(name, known[k].name))
				break;
		if (k == sizeof known / sizeof *known || known[k].value->n)
			return "pseudo-header field unknown or given twice";
		*known[k].value = value;
	}
	if (b->cookies.len && !http_add(fields, SLICE("cookie"), buf_slice(&b->cookies)))
		return "too many fields";
	return check_fields(fields);
}

/* A method whose lack of a body should be said in HTTP/1 (RFC 9110 section 8.6). */
static bool expects_body(struct slice method)
{
	return slice_equals(method, SLICE("POST")) || slice_equals(method, SLICE("PUT")) ||
	       slice_equals(method, SLICE("PATCH"));
}

static const char *frame_request(struct http_request *r, bool ended)
{
	bool has;
	const char *why = read_length(&r->fields, &has, &r->content_length);

	if (why)
		return why;
	if (r->protocol.n)
		return has || ended ? "an extended CONNECT has no content of its own" : NULL;
	if (has)
		r->body = HTTP_BODY_LENGTH;
	else if (!ended)
		r->body = HTTP_BODY_CHUNKED;
	else
		r->body = expects_body(r->method) ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	return ended && r->content_length ? "content-length without content" : NULL;
}

static const char *read_target(struct http_request *r, const struct pseudo *p)
{
	bool connect = slice_equals(p->method, SLICE("CONNECT")) && !p->protocol.n;

	if (p->protocol.n && !slice_equals(p->method, SLICE("CONNECT")))
		return ":protocol without CONNECT";
	if (connect && (p->scheme.n || p->path.n))
		return "CONNECT with a scheme or a path";
	if (connect) {
		r->target = p->authority;
		return http_parse_target(r);
	}
	if (slice_equals(p->scheme, SLICE("https")))
		r->scheme = POLICY_HTTPS;
	else if (slice_equals(p->scheme, SLICE("http")))
		r->scheme = POLICY_HTTP;
	else
		return "scheme is neither http nor https";
	if (!p->path.n || (p->path.p[0] != '/' && !slice_equals(p->path, SLICE("*"))))
		return "malformed path";
	r->absolute = true; /* scheme, authority and path: all of it was said */
	r->target = p->path;
	if (p->authority.n) {
		if (!url_parse_authority(p->authority, &r->authority))
			return "malformed authority";
		r->has_authority = true;
	}
	return NULL;
}

/* The path. An extended CONNECT (RFC 8441) is what HTTP/1.1 calls GET with an upgrade, and goes on
 * as such: one way to judge and to send both. */
static const char *read_path(struct http_request *r)
{
	if (!r->absolute)
		return NULL;
	if (r->protocol.n) {
		if (!slice_equals(r->protocol, SLICE("websocket")))
			return "a protocol other than websocket";
		r->method = SLICE("GET");
		r->wants_websocket = true;
	}
	return r->target.p[0] == '*' && !slice_equals(r->method, SLICE("OPTIONS"))
	               ? "malformed path"
	               : http_parse_target(r);
}

static const char *read_expect(struct http_request *r)
{
	const struct http_field *expect = http_find(&r->fields, HTTP_EXPECT);

	r->expects_continue =
	        expect && slice_equals_ignoring_case(expect->value, SLICE("100-continue"));
	return expect && !r->expects_continue ? "Expect other than 100-continue" : NULL;
}

enum http2_head http2_read_request(
        const struct http2_block *b, bool ended, struct http_request *r, const char **why)
{
	struct pseudo pseudo;

	memset(&pseudo, 0, sizeof pseudo);
	memset(r, 0, offsetof(struct http_request, fields));
	r->fields.count = 0;
	r->version = 20;
	r->keep_alive = true;
	*why = "request head too large";
	if (b->too_large)
		return HTTP2_HEAD_TOO_LARGE;
	*why = gather(b, &r->fields, &pseudo);
	r->method = pseudo.method;
	r->protocol = pseudo.protocol;
	if (pseudo.path.n > HTTP_TARGET_MAX) {
		*why = "request target too long";
		return HTTP2_HEAD_TOO_LARGE;
	}
	if (!*why && (!r->method.n || r->method.n > HTTP_METHOD_BYTES_MAX))
		*why = "method missing or too long";
	if (!*why)
		*why = read_target(r, &pseudo);
	if (!*why)
		*why = read_path(r);
	if (!*why)
		*why = frame_request(r, ended);
	if (!*why)
		*why = read_expect(r);
	if (*why)
		return HTTP2_HEAD_BAD;
	*why = http_parse_host(r);
	if (*why)
		return r->has_authority && http_host_is_other(r) ? HTTP2_HEAD_MISDIRECTED
		                                                 : HTTP2_HEAD_BAD;
	return HTTP2_HEAD_OK;
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

enum http2_head http2_read_response(const struct http2_block *b, bool ended, bool no_body,
        struct http_response *r, const char **why)
{
	struct pseudo pseudo;
	uint64_t status = 0;
	bool has = false;

	memset(&pseudo, 0, sizeof pseudo);
	memset(r, 0, offsetof(struct http_response, fields));
	r->fields.count = 0;
	r->version = 20;
	r->keep_alive = true;
	*why = "response head too large";
	if (b->too_large)
		return HTTP2_HEAD_TOO_LARGE;
	*why = gather(b, &r->fields, &pseudo);
	if (!*why && (pseudo.status.n != 3 || !slice_to_u64(pseudo.status, 599, &status) ||
	                     status < 100))
		*why = "status code out of range";
	if (!*why)
		*why = read_length(&r->fields, &has, &r->content_length);
	r->status = (uint16_t)status;
	r->reason = http_reason(r->status);
	frame_response(r, ended, no_body, has);
	if (!*why && ended && !no_body && r->status != 304 && r->content_length)
		*why = "content-length without content";
	return *why ? HTTP2_HEAD_BAD : HTTP2_HEAD_OK;
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
