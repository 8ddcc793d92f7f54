/* SPDX-License-Identifier: Apache-2.0 */
/* The head is parsed once it is complete. */
#include "vethguard/wire/http1_response.h"
#include "wire/http/http_text.h"

#define CHUNK_DIGITS_MAX 15

/* --- the head --- */

/* "HTTP/1.1 200 OK": a status of three digits, and a reason that may be missing. */
static bool read_status_line(struct slice line, unsigned *status)
{
	uint64_t value;

	if (line.n < 12 || (!slice_starts_with(line, SLICE("HTTP/1.1 ")) &&
	                           !slice_starts_with(line, SLICE("HTTP/1.0 "))))
		return false;
	if (!slice_to_u64(slice_of(line.p + 9, 3), 599, &value) || value < 100)
		return false;
	*status = (unsigned)value;
	return line.n == 12 || line.p[12] == ' ';
}

/* Notes what a field says about the end of the content. Returns false if two fields do. */
static bool note_content(struct slice name, struct slice value, struct http1_response *out)
{
	if (slice_equals_ignoring_case(name, SLICE("content-length"))) {
		if (out->content != HTTP1_CONTENT_REST ||
		        !slice_to_u64(value, HTTP_TEXT_LENGTH_MAX, &out->length))
			return false;
		out->content = HTTP1_CONTENT_LENGTH;
	} else if (slice_equals_ignoring_case(name, SLICE("transfer-encoding"))) {
		if (out->content != HTTP1_CONTENT_REST ||
		        !slice_equals_ignoring_case(value, SLICE("chunked")))
			return false;
		out->content = HTTP1_CONTENT_CHUNKED;
	}
	return true;
}

static bool read_fields(struct slice rest, struct http1_response *out)
{
	struct slice name, value;

	for (struct slice line = http_text_take_line(&rest); line.n;
	        line = http_text_take_line(&rest))
		if (!http_text_read_field(line, &name, &value) ||
		        ++out->field_count > HTTP1_RESPONSE_FIELDS_MAX ||
		        !note_content(name, value, out))
			return false;
	return true;
}

static bool has_none(enum http1_request_kind request, const struct http1_response *head)
{
	return request == HTTP1_REQUEST_HEAD || head->status < 200 || head->status == 204 ||
	       head->status == 304 || (head->content == HTTP1_CONTENT_LENGTH && !head->length);
}

static void decide_content(enum http1_request_kind request, struct http1_response *out)
{
	if (request == HTTP1_REQUEST_CONNECT && out->status / 100 == 2)
		out->content = HTTP1_CONTENT_REST;
	else if (has_none(request, out))
		out->content = HTTP1_CONTENT_NONE;
}

enum http1_response_status http1_response_parse(const uint8_t *p, size_t n, size_t *looked,
        enum http1_request_kind request, struct http1_response *out)
{
	struct slice rest;
	size_t end = http_text_head_end(
	        p, n < HTTP1_RESPONSE_HEAD_MAX ? n : HTTP1_RESPONSE_HEAD_MAX, looked);

	*out = (struct http1_response){.content = HTTP1_CONTENT_REST};
	if (end == SIZE_MAX)
		return HTTP1_RESPONSE_BAD;
	if (end == 0)
		return n < HTTP1_RESPONSE_HEAD_MAX ? HTTP1_RESPONSE_MORE : HTTP1_RESPONSE_BAD;
	rest = slice_of(p, end);
	if (!read_status_line(http_text_take_line(&rest), &out->status) || !read_fields(rest, out))
		return HTTP1_RESPONSE_BAD;
	decide_content(request, out);
	out->used = end;
	return HTTP1_RESPONSE_DONE;
}

bool http1_response_next_field(const uint8_t *p, const struct http1_response *head, size_t *at,
        struct slice *name, struct slice *value)
{
	struct slice rest = slice_of(p + *at, head->used - *at), line;

	if (*at == 0)
		*at += http_text_take_line(&rest).n + 2;
	line = http_text_take_line(&rest);
	*at += line.n + 2;
	return line.n && http_text_read_field(line, name, value);
}

bool http1_response_is_of_connection(struct slice name)
{
	static const struct slice names[] = {{"connection", 10}, {"keep-alive", 10},
	        {"proxy-connection", 16}, {"transfer-encoding", 17}, {"upgrade", 7}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals_ignoring_case(name, names[i]))
			return true;
	return false;
}

/* --- the content --- */

static void enter(struct http1_content *c, enum http1_content_state state)
{
	c->state = state;
}

void http1_content_begin(struct http1_content *c, const struct http1_response *head)
{
	*c = (struct http1_content){.kind = head->content, .left = head->length};
	switch (head->content) {
	case HTTP1_CONTENT_NONE:
		enter(c, HTTP1_CONTENT_OVER);
		break;
	case HTTP1_CONTENT_CHUNKED:
		enter(c, HTTP1_CONTENT_SIZE);
		c->left = 0;
		break;
	default:
		enter(c, HTTP1_CONTENT_DATA);
	}
}

static void take_size(struct http1_content *c, char byte)
{
	const int digit = slice_hex_digit(byte);

	if (c->cr && byte == '\n' && c->digits) {
		enter(c, c->left ? HTTP1_CONTENT_CHUNK : HTTP1_CONTENT_TRAILERS);
		c->cr = false;
	} else if (!c->cr && byte == '\r') {
		c->cr = true;
	} else if (!c->cr && digit >= 0 && c->digits++ < CHUNK_DIGITS_MAX) {
		c->left = c->left << 4 | (unsigned)digit;
	} else {
		enter(c, HTTP1_CONTENT_BAD);
	}
}

static void take_chunk_end(struct http1_content *c, char byte)
{
	if (c->cr && byte == '\n') {
		enter(c, HTTP1_CONTENT_SIZE);
		c->cr = false;
		c->digits = 0;
	} else if (!c->cr && byte == '\r') {
		c->cr = true;
	} else {
		enter(c, HTTP1_CONTENT_BAD);
	}
}

static void take_trailer(struct http1_content *c, char byte)
{
	if (++c->bytes > HTTP1_RESPONSE_TRAILERS_MAX || (c->cr && byte != '\n') ||
	        (!c->cr && byte == '\n')) {
		enter(c, HTTP1_CONTENT_BAD);
	} else if (byte == '\n') {
		if (!c->line)
			enter(c, HTTP1_CONTENT_OVER);
		c->line = 0;
		c->cr = false;
	} else if (byte == '\r') {
		c->cr = true;
	} else {
		c->line++;
	}
}

static size_t take_data(struct http1_content *c, const uint8_t *p, size_t n, struct slice *data)
{
	const bool rest = c->state == HTTP1_CONTENT_DATA && c->kind == HTTP1_CONTENT_REST;
	const size_t take = rest || c->left > n ? n : (size_t)c->left;

	*data = slice_of(p, take);
	if (rest)
		return take;
	c->left -= take;
	if (!c->left)
		enter(c, c->state == HTTP1_CONTENT_DATA ? HTTP1_CONTENT_OVER
		                                        : HTTP1_CONTENT_CHUNK_END);
	return take;
}

size_t http1_content_take(struct http1_content *c, const uint8_t *p, size_t n, struct slice *data)
{
	*data = SLICE("");
	switch (c->state) {
	case HTTP1_CONTENT_OVER:
	case HTTP1_CONTENT_BAD:
		return 0;
	case HTTP1_CONTENT_DATA:
	case HTTP1_CONTENT_CHUNK:
		return take_data(c, p, n, data);
	case HTTP1_CONTENT_SIZE:
		take_size(c, (char)*p);
		return 1;
	case HTTP1_CONTENT_CHUNK_END:
		take_chunk_end(c, (char)*p);
		return 1;
	case HTTP1_CONTENT_TRAILERS:
		take_trailer(c, (char)*p);
		return 1;
	}
	return 0;
}
