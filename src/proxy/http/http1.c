/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading HTTP/1.x. A head is gathered completely while its lines are checked: each ends in CRLF
 * and has no other CR and no NUL, and the first is a valid start line. So what is not HTTP is
 * refused at its first line. Then http1_head.c reads the head, and every span is one run of bytes.
 * Bodies are passed on without copying.
 */
#include "proxy/http/http1.h"

void http1_init(struct http1 *h, bool response, uint32_t head_limit)
{
	memset(h, 0, sizeof(*h));
	h->response = h->chunked.response = response;
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

struct http_fault http1_fault(const struct http1 *h)
{
	return h->fault.why ? h->fault : (struct http_fault){HTTP_MALFORMED, "malformed message"};
}

struct slice http1_trailers(const struct http1 *h)
{
	return buf_slice(&h->trailers);
}

/* --- the head --- */

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* Joins a field of a response that continues in this line: what is between the parts becomes spaces
 * (RFC 9112 section 5.2). */
static bool unfold(struct http1 *h)
{
	uint8_t *base = buf_bytes(&h->head);
	size_t from = h->scanned - 2, to = h->scanned;

	if (!h->response || (!h->folded && !memchr(base + h->last, ':', from - h->last)))
		return http1_refuse(h, HTTP_MALFORMED, "obsolete line folding");
	while (from > h->last && is_blank(base[from - 1]))
		from--;
	while (is_blank(base[to]))
		to++;
	memset(base + from, ' ', to - from);
	h->folded = true;
	return true;
}

/* Checks one line (without its LF). False: refused. */
static bool check_line(struct http1 *h, const uint8_t *line, size_t n)
{
	if (n == 0 || line[n - 1] != '\r')
		return http1_refuse(h, HTTP_MALFORMED, "a line ends in LF without CR");
	if (memchr(line, '\r', n - 1))
		return http1_refuse(h, HTTP_MALFORMED, "CR inside a line");
	if (memchr(line, '\0', n))
		return http1_refuse(h, HTTP_MALFORMED, "NUL byte in the head");
	if (!h->lines && n == 1) /* one was skipped already */
		return http1_refuse(h, HTTP_MALFORMED, "empty line where a message should begin");
	if (!h->lines)
		return http1_start_line(h, slice_of(line, n - 1));
	if (is_blank(line[0]))
		return h->lines > 1 ? unfold(h)
		                    : http1_refuse(h, HTTP_MALFORMED,
		                              "white space before the first field");
	h->folded = false;
	return true;
}

/* Checks the lines gathered so far. HTTP1_DONE: the empty line has come, and *head_n is the head's
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
		h->last = h->scanned;
		h->scanned += n + 1;
		if (n == 1) {
			*head_n = h->scanned;
			return HTTP1_DONE;
		}
		h->lines++;
	}
	return HTTP1_MORE;
}

/* Skips one empty line before a request (RFC 9112 section 2.2), which old clients send after a
 * body. */
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
		http1_refuse(h, HTTP_MALFORMED, "CR inside a line");
	return i;
}

/* Refuses a head that is too large: its request line (RFC 9112 section 3), or all of it. */
static enum http1_status too_large(struct http1 *h)
{
	if (!h->response && !h->lines)
		http1_refuse(h, HTTP_TARGET_TOO_LONG, "request target too long");
	http1_refuse(h, HTTP_FIELDS_TOO_LARGE,
	        h->response ? "response head too large" : "request head too large");
	return HTTP1_TOO_LARGE;
}

enum http1_status http1_gather(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, size_t *head_n)
{
	size_t skipped = skip_empty_line(h, p, n);
	size_t before = h->head.len;
	const uint8_t *end;
	size_t take;
	enum http1_status status;

	*used = skipped;
	if (h->fault.why)
		return HTTP1_BAD;
	p += skipped;
	n -= skipped;
	end = n ? memmem(p, n, "\r\n\r\n", 4) : NULL;
	take = end ? (size_t)(end - p) + 4 : n;
	if (take > HTTP_HEAD_MAX - before)
		take = HTTP_HEAD_MAX - before;
	if (buf_append(&h->head, p, take) < 0)
		return too_large(h);
	status = scan(h, head_n);
	if (status == HTTP1_MORE && (h->head.len > h->limit || h->head.len >= HTTP_HEAD_MAX))
		return too_large(h);
	if (status == HTTP1_DONE && *head_n > h->limit)
		return too_large(h);
	*used = skipped + (status == HTTP1_DONE ? *head_n - before : take);
	return status;
}

/* --- bodies --- */

static void discard(void *context, const uint8_t *p, size_t n)
{
	(void)context, (void)p, (void)n;
}

static enum http1_status chunked_body(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, const struct chunked_sink *sink)
{
	const char *why = chunked_read(&h->chunked, p, n, used, sink);

	if (why) {
		http1_refuse(h, HTTP_MALFORMED, why);
		return HTTP1_BAD;
	}
	h->message_done = h->chunked.state == CHUNKED_DONE;
	return h->message_done ? HTTP1_DONE : HTTP1_MORE;
}

bool http1_body_is_sound(struct http1 *h, const uint8_t *p, size_t n)
{
	struct chunked ahead = h->chunked;
	const char *why;
	size_t used;

	if (h->body != HTTP_BODY_CHUNKED || h->message_done || !n)
		return true;
	why = chunked_read(&ahead, p, n, &used, NULL);
	return !why || http1_refuse(h, HTTP_MALFORMED, why);
}

enum http1_status http1_body(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        void (*on_body)(void *context, const uint8_t *p, size_t n), void *context)
{
	struct chunked_sink sink = {on_body ? on_body : discard, context, &h->trailers};

	*used = 0;
	if (h->message_done)
		return HTTP1_DONE;
	if (n == 0)
		return HTTP1_MORE;
	if (h->body == HTTP_BODY_CHUNKED)
		return chunked_body(h, p, n, used, &sink);
	if (h->body == HTTP_BODY_LENGTH && n > h->left)
		n = (size_t)h->left;
	sink.on_body(context, p, n);
	*used = n;
	if (h->body == HTTP_BODY_UNTIL_CLOSE)
		return HTTP1_MORE;
	h->left -= n;
	h->message_done = !h->left;
	return h->message_done ? HTTP1_DONE : HTTP1_MORE;
}

enum http1_status http1_end(struct http1 *h)
{
	if (h->message_done || (h->head_done && h->body == HTTP_BODY_UNTIL_CLOSE)) {
		h->message_done = true;
		return HTTP1_DONE;
	}
	http1_refuse(h, HTTP_MALFORMED, "the connection ended inside a message");
	return HTTP1_BAD;
}
