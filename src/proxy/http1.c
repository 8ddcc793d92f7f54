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

static int on_field(llhttp_t *parser, const char *p, size_t n)
{
	struct http1 *h = of(parser);

	if (h->fields->count == HTTP_FIELDS_MAX) {
		h->error = "too many header fields";
		return HPE_USER;
	}
	h->fields->items[h->fields->count++] =
	        (struct http_field){.name = slice_of(p, n), .known = http_name_of(slice_of(p, n))};
	return 0;
}

static int on_value(llhttp_t *parser, const char *p, size_t n)
{
	struct http1 *h = of(parser);

	h->fields->items[h->fields->count - 1].value = slice_trim(slice_of(p, n));
	return 0;
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
        .on_header_value = on_value,
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
	buf_init(&h->trailers, HTTP_TRAILER_BYTES_MAX);
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

/* "METHOD target HTTP/version" with single spaces, or a status line, without control characters.
 * llhttp takes more, other protocols' names among it. */
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
	return h->response || (spaces == 2 && n > 9 && memcmp(line + n - 9, " HTTP/", 6) == 0);
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
enum http1_status http1_gather(
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

enum http1_status http1_parse(struct http1 *h, struct http_fields *fields, size_t head_n)
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

/* --- bodies --- */

static void discard(void *context, const uint8_t *p, size_t n)
{
	(void)context, (void)p, (void)n;
}

static enum http1_status chunked_body(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        void (*on_body)(void *context, const uint8_t *p, size_t n), void *context)
{
	struct chunked_sink sink = {on_body ? on_body : discard, context, &h->trailers};

	h->error = chunked_read(&h->chunked, p, n, used, &sink);
	if (h->error)
		return HTTP1_BAD;
	h->message_done = h->chunked.state == CHUNKED_DONE;
	return h->message_done ? HTTP1_DONE : HTTP1_MORE;
}

bool http1_body_is_sound(struct http1 *h, const uint8_t *p, size_t n)
{
	struct chunked ahead = h->chunked;
	size_t used;

	if (h->is_chunked && !h->message_done && n)
		h->error = chunked_read(&ahead, p, n, &used, NULL);
	return !h->error;
}

enum http1_status http1_body(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        void (*on_body)(void *context, const uint8_t *p, size_t n), void *context)
{
	*used = 0;
	if (h->message_done)
		return HTTP1_DONE;
	if (n == 0)
		return HTTP1_MORE;
	if (h->is_chunked)
		return chunked_body(h, p, n, used, on_body, context);
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
	if (h->head_done && !h->is_chunked && llhttp_finish(&h->parser) == HPE_OK)
		return HTTP1_DONE;
	if (h->message_done) /* llhttp_finish() paused in on_message_complete */
		return HTTP1_DONE;
	h->error = "the connection ended inside a message";
	return HTTP1_BAD;
}
