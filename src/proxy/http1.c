/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading HTTP/1.x. A head is gathered whole in the parser's buffer while its lines are checked
 * (each ends in CRLF, has no other CR, no NUL, begins with no white space), so that llhttp then
 * runs over it once and every span is one run of bytes. The body goes through llhttp as it comes:
 * content is passed on from where it lies.
 */
#include <errno.h>

#include "proxy/http1.h"

static struct http1 *of(llhttp_t *parser)
{
	return parser->data;
}

static int on_method(llhttp_t *parser, const char *p, size_t n)
{
	of(parser)->method = slice_of(p, n);
	return 0;
}

static int on_url(llhttp_t *parser, const char *p, size_t n)
{
	of(parser)->url = slice_of(p, n);
	return 0;
}

static int on_reason(llhttp_t *parser, const char *p, size_t n)
{
	of(parser)->reason = slice_of(p, n);
	return 0;
}

/* Trailers are kept as text: they may come in pieces, after the head's struct is long in use. */
static int trailer_append(struct http1 *h, const char *p, size_t n)
{
	if (buf_append(&h->trailers, p, n) == 0)
		return 0;
	h->error = "trailer section too large";
	return HPE_USER;
}

static int on_field(llhttp_t *parser, const char *p, size_t n)
{
	struct http1 *h = of(parser);

	if (h->head_done)
		return trailer_append(h, p, n);
	if (h->fields->count == HTTP_FIELDS_MAX) {
		h->error = "too many header fields";
		return HPE_USER;
	}
	h->fields->items[h->fields->count++] =
	        (struct http_field){.name = slice_of(p, n), .known = http_name_of(slice_of(p, n))};
	return 0;
}

static int on_field_complete(llhttp_t *parser)
{
	struct http1 *h = of(parser);

	return h->head_done ? trailer_append(h, ": ", 2) : 0;
}

static int on_value(llhttp_t *parser, const char *p, size_t n)
{
	struct http1 *h = of(parser);

	if (h->head_done)
		return trailer_append(h, p, n);
	h->fields->items[h->fields->count - 1].value = slice_trim(slice_of(p, n));
	return 0;
}

static int on_value_complete(llhttp_t *parser)
{
	struct http1 *h = of(parser);

	return h->head_done ? trailer_append(h, "\r\n", 2) : 0;
}

static int on_headers_complete(llhttp_t *parser)
{
	struct http1 *h = of(parser);

	h->head_done = true;
	/* RFC 9112 section 6.3, rule 1; llhttp alone would wait for a 304's content-length. */
	if (h->response && (parser->status_code / 100 == 1 || parser->status_code == 204 ||
	                           parser->status_code == 304))
		h->no_body = true;
	return h->no_body ? 1 : 0;
}

static int on_body_span(llhttp_t *parser, const char *p, size_t n)
{
	struct http1 *h = of(parser);

	h->on_body(h->context, (const uint8_t *)p, n);
	return 0;
}

static int on_message_complete(llhttp_t *parser)
{
	of(parser)->message_done = true;
	return HPE_PAUSED; /* what follows belongs to the next message */
}

static const llhttp_settings_t settings = {
        .on_method = on_method,
        .on_url = on_url,
        .on_status = on_reason,
        .on_header_field = on_field,
        .on_header_field_complete = on_field_complete,
        .on_header_value = on_value,
        .on_header_value_complete = on_value_complete,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body_span,
        .on_message_complete = on_message_complete,
};

void http1_init(struct http1 *h, bool response, uint32_t head_limit)
{
	memset(h, 0, sizeof *h);
	h->response = response;
	h->limit = head_limit && head_limit < HTTP_HEAD_MAX ? head_limit : HTTP_HEAD_MAX;
	buf_init(&h->head, HTTP_HEAD_MAX + 1);
	buf_init(&h->trailers, HTTP1_TRAILERS_MAX);
}

void http1_fini(struct http1 *h)
{
	buf_fini(&h->head);
	buf_fini(&h->trailers);
}

void http1_reset(struct http1 *h)
{
	uint32_t limit = h->limit;
	bool response = h->response;
	struct buf head = h->head;

	buf_consume(&head, head.len);
	buf_fini(&h->trailers);
	http1_init(h, response, limit);
	h->head = head;
	if (head.cap > 4096)
		buf_fini(&h->head);
}

bool http1_busy(const struct http1 *h)
{
	return h->head.len > 0 && !h->message_done;
}

const char *http1_error(const struct http1 *h)
{
	return h->error ? h->error : "malformed message";
}

struct slice http1_trailers(const struct http1 *h)
{
	return buf_slice(&h->trailers);
}

/* "METHOD target version" with single spaces, or a status line, without control characters. llhttp
 * takes more. */
static bool check_start_line(struct http1 *h, const uint8_t *line, size_t n)
{
	unsigned spaces = 0;

	if (h->response && (n < 5 || memcmp(line, "HTTP/", 5) != 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (line[i] < ' ' || line[i] == 0x7f)
			return false;
		if (line[i] == ' ' && (++spaces > 2 || i == 0 || line[i - 1] == ' ') &&
		        !h->response)
			return false;
	}
	return h->response || spaces == 2;
}

/* Checks one line (without its LF). False: h->error says why. */
static bool check_line(struct http1 *h, const uint8_t *line, size_t n)
{
	if (n == 0 || line[n - 1] != '\r')
		h->error = "a line ends in LF without CR";
	else if (memchr(line, '\r', n - 1))
		h->error = "CR inside a line";
	else if (memchr(line, '\0', n))
		h->error = "NUL byte in the head";
	else if (!h->lines && n > 1 && !check_start_line(h, line, n - 1))
		h->error = "malformed start line";
	else if (h->lines && (line[0] == ' ' || line[0] == '\t'))
		h->error = "obsolete line folding";
	else if (h->lines && line[0] == ':')
		h->error = "a field without a name";
	return !h->error;
}

/* Looks at the lines gathered so far. HTTP1_DONE: the empty line is there, *head_n is the head's
 * size. */
static enum http1_status scan(struct http1 *h, size_t *head_n)
{
	const uint8_t *base = buf_bytes(&h->head);

	while (h->scanned < h->head.len) {
		const uint8_t *line = base + h->scanned;
		const uint8_t *lf = memchr(line, '\n', h->head.len - h->scanned);
		size_t n;

		if (!lf)
			break;
		n = (size_t)(lf - line);
		if (!check_line(h, line, n))
			return HTTP1_BAD;
		h->scanned += n + 1;
		if (n == 1 && h->lines) {
			*head_n = h->scanned;
			return HTTP1_DONE;
		}
		if (n == 1) { /* one was skipped already */
			h->error = "empty line where a message should begin";
			return HTTP1_BAD;
		}
		h->lines++;
	}
	return h->head.len > h->limit ? HTTP1_TOO_LARGE : HTTP1_MORE;
}

/* One empty line before a request is skipped (RFC 9112 section 2.2), as old clients send one after
 * a body. */
static size_t skip_empty_line(struct http1 *h, const uint8_t *p, size_t n)
{
	size_t i = 0;

	if (h->response || h->head.len)
		return 0;
	while (i < n && h->led < 2 && p[i] == "\r\n"[h->led]) {
		h->led++;
		i++;
	}
	if (i < n && h->led == 1)
		h->error = "CR inside a line";
	return i;
}

/* Gathers bytes until the head is whole. */
static enum http1_status gather(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, size_t *head_n)
{
	size_t skipped = skip_empty_line(h, p, n);
	size_t before = h->head.len;
	const uint8_t *end;
	size_t take;
	enum http1_status status;

	*used = skipped;
	if (h->error)
		return HTTP1_BAD;
	p += skipped;
	n -= skipped;
	end = n ? memmem(p, n, "\r\n\r\n", 4) : NULL;
	take = end ? (size_t)(end - p) + 4 : n;
	if (take > HTTP_HEAD_MAX - before)
		take = HTTP_HEAD_MAX - before;
	if (buf_append(&h->head, p, take) < 0)
		return HTTP1_TOO_LARGE;
	status = scan(h, head_n);
	if (status == HTTP1_MORE && h->head.len >= HTTP_HEAD_MAX)
		return HTTP1_TOO_LARGE;
	if (status == HTTP1_DONE && *head_n > h->limit)
		return HTTP1_TOO_LARGE;
	*used = skipped + (status == HTTP1_DONE ? *head_n - before : take);
	return status;
}

static bool run(struct http1 *h, const uint8_t *p, size_t n, size_t *used)
{
	llhttp_errno_t e = llhttp_execute(&h->parser, (const char *)p, n);

	*used = n;
	if (e == HPE_OK)
		return true;
	if (e == HPE_PAUSED && h->message_done) {
		*used = (size_t)((const uint8_t *)llhttp_get_error_pos(&h->parser) - p);
		return true;
	}
	if (e == HPE_PAUSED_UPGRADE || e == HPE_PAUSED_H2_UPGRADE) {
		*used = (size_t)((const uint8_t *)llhttp_get_error_pos(&h->parser) - p);
		h->message_done = true;
		return true;
	}
	if (!h->error)
		h->error = llhttp_get_error_reason(&h->parser);
	return false;
}

static enum http1_status parse_head(struct http1 *h, struct http_fields *fields, size_t head_n)
{
	size_t used;

	llhttp_init(&h->parser, h->response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
	h->parser.data = h;
	fields->count = 0;
	h->fields = fields;
	if (!run(h, buf_bytes(&h->head), head_n, &used))
		return HTTP1_BAD;
	if (!h->head_done || used != head_n) {
		h->error = "malformed head";
		return HTTP1_BAD;
	}
	return HTTP1_DONE;
}

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

static bool has_upgrade(const struct http_fields *fields, struct slice protocol)
{
	const struct http_field *upgrade = http_find(fields, HTTP_UPGRADE);

	if (!upgrade || !http_list_has(upgrade->value, protocol))
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

/* Splits the target by its form (RFC 9112 section 3.2). */
static bool parse_target(struct http1 *h, struct http_request *r)
{
	struct slice path = r->target;
	ptrdiff_t mark;
	struct url url;

	if (slice_equals(r->method, SLICE("CONNECT"))) {
		r->has_authority = url_parse_authority(r->target, &r->authority);
		if (!r->has_authority || !r->authority.port)
			h->error = "CONNECT needs host:port";
		return !h->error;
	}
	if (slice_equals(r->target, SLICE("*")) && slice_equals(r->method, SLICE("OPTIONS"))) {
		r->asterisk = true;
		r->path[0] = '*';
		r->path_n = 1;
		return true;
	}
	if (r->target.n && r->target.p[0] != '/') {
		if (!url_parse(r->target, &url) ||
		        (url.scheme != POLICY_HTTP && url.scheme != POLICY_HTTPS)) {
			h->error = "request target is neither a path nor an http URL";
			return false;
		}
		r->absolute = true;
		r->scheme = url.scheme;
		r->authority = url.authority;
		r->has_authority = true;
		path = url.path;
		mark = slice_find_byte(r->target, '?');
	} else {
		mark = slice_find_byte(r->target, '?');
		if (mark >= 0)
			path = slice_of(r->target.p, (size_t)mark);
	}
	if (mark >= 0) {
		r->has_query = true;
		r->query = slice_of(r->target.p + mark + 1, r->target.n - (size_t)mark - 1);
	}
	if (memchr(r->target.p, '#', r->target.n))
		h->error = "fragment in the request target";
	else if (!url_canonical_path(path, r->path, sizeof r->path, &r->path_n))
		h->error = "path cannot be made canonical";
	return !h->error;
}

/* Exactly one Host in HTTP/1.1, at most one in HTTP/1.0; with an absolute target they must agree.
 */
static bool parse_host(struct http1 *h, struct http_request *r)
{
	struct url_authority host;
	unsigned count = 0;
	bool connect = slice_equals(r->method, SLICE("CONNECT"));

	for (size_t i = 0; i < r->fields.count; i++) {
		if (r->fields.items[i].known != HTTP_HOST)
			continue;
		count++;
		if (!connect && !url_parse_authority(r->fields.items[i].value, &host))
			h->error = "malformed Host";
	}
	if (count > 1)
		h->error = "more than one Host";
	else if (count == 0 && r->version >= 11 && !connect)
		h->error = "no Host";
	if (h->error || connect || count == 0)
		return !h->error;
	if (!r->has_authority) {
		r->authority = host;
		r->has_authority = true;
	} else if (host.host_n != r->authority.host_n ||
	           memcmp(host.host, r->authority.host, host.host_n) != 0 ||
	           !ip_equals(&host.address, &r->authority.address) ||
	           (host.port ? host.port : policy_scheme_default_port(r->scheme)) !=
	                   (r->authority.port ? r->authority.port
	                                      : policy_scheme_default_port(r->scheme))) {
		h->error = "Host differs from the request target";
	}
	return !h->error;
}

enum http1_status http1_request_head(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, struct http_request *r)
{
	size_t head_n;
	enum http1_status status = gather(h, p, n, used, &head_n);
	const struct http_field *expect;

	if (status != HTTP1_DONE)
		return status;
	/* The fields are overwritten as they come; the rest starts from nothing. */
	memset(r, 0, offsetof(struct http_request, fields));
	if (parse_head(h, &r->fields, head_n) != HTTP1_DONE || !version_of(h, &r->version))
		return HTTP1_BAD;
	r->method = h->method;
	r->target = h->url;
	if (r->target.n > HTTP_TARGET_MAX) {
		h->error = "request target too long";
		return HTTP1_TOO_LARGE;
	}
	if (!parse_target(h, r) || !parse_host(h, r) ||
	        !framing_fields(h, &r->fields, r->version, &r->body, &r->content_length))
		return HTTP1_BAD;
	r->keep_alive = wants_keep_alive(&r->fields, r->version);
	expect = http_find(&r->fields, HTTP_EXPECT);
	r->expects_continue = expect && r->version >= 11 &&
	                      slice_equals_ignoring_case(expect->value, SLICE("100-continue"));
	if (expect && !r->expects_continue && r->version >= 11) {
		h->error = "Expect other than 100-continue";
		return HTTP1_BAD;
	}
	r->wants_websocket = r->version >= 11 && has_upgrade(&r->fields, SLICE("websocket")) &&
	                     slice_equals(r->method, SLICE("GET")) && r->body == HTTP_BODY_NONE;
	return HTTP1_DONE;
}

/* --- responses --- */

enum http1_status http1_response_head(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        bool no_body, struct http_response *r)
{
	size_t head_n;
	enum http1_status status = gather(h, p, n, used, &head_n);

	if (status != HTTP1_DONE)
		return status;
	memset(r, 0, offsetof(struct http_response, fields));
	h->no_body = no_body;
	if (parse_head(h, &r->fields, head_n) != HTTP1_DONE || !version_of(h, &r->version))
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
	return HTTP1_DONE;
}

/* --- bodies --- */

static void discard(void *context, const uint8_t *p, size_t n)
{
	(void)context, (void)p, (void)n;
}

enum http1_status http1_body(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        void (*on_body)(void *context, const uint8_t *p, size_t n), void *context)
{
	*used = 0;
	if (h->message_done)
		return HTTP1_DONE;
	if (n == 0)
		return HTTP1_MORE;
	h->on_body = on_body ? on_body : discard;
	h->context = context;
	if (!run(h, p, n, used))
		return HTTP1_BAD;
	return h->message_done ? HTTP1_DONE : HTTP1_MORE;
}

enum http1_status http1_end(struct http1 *h)
{
	if (h->message_done)
		return HTTP1_DONE;
	if (h->head_done && llhttp_finish(&h->parser) == HPE_OK)
		return HTTP1_DONE;
	if (h->message_done) /* llhttp_finish() paused in on_message_complete */
		return HTTP1_DONE;
	h->error = "the connection ended inside a message";
	return HTTP1_BAD;
}
