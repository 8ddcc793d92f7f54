/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 messages. The first byte says: request or response, to HEAD or not, and how the rest is
 * cut into pieces. A message is read whole and in pieces: the outcome must be the same. What was
 * taken is written out and read again: the same head must come back, and it must say the same about
 * its body.
 */
#include <stdio.h>
#include <stdlib.h>

#include "proxy/http/http1.h"
#include "proxy/redact/charset.h"

struct message {
	enum http1_status head, body;
	bool response, to_head;
	struct http_request request;
	struct http_response answer;
	struct http1 http1;
	struct buf content;
	size_t used; /* of head and body together */
};

#define MUST(condition)                                                                 \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

static void on_body(void *context, const uint8_t *p, size_t n)
{
	struct message *m = context;

	MUST(n > 0);
	MUST(buf_append(&m->content, p, n) == 0);
}

static enum http1_status read_head(struct message *m, const uint8_t *p, size_t n, size_t *used)
{
	return m->response ? http1_response_head(&m->http1, p, n, used, m->to_head, &m->answer)
	                   : http1_request_head(&m->http1, p, n, used, &m->request);
}

/* Reads p in pieces of step bytes (each copied, so that a read beyond it shows). */
static void read_message(struct message *m, const uint8_t *p, size_t n, size_t step)
{
	size_t at = 0;

	m->head = m->body = HTTP1_MORE;
	http1_init(&m->http1, m->response, 8192);
	buf_init(&m->content, 1 << 20);
	while (at < n && m->body == HTTP1_MORE) {
		size_t k = n - at < step ? n - at : step, used = 0;
		uint8_t *piece = malloc(k);

		memcpy(piece, p + at, k);
		if (m->head != HTTP1_DONE) {
			m->head = read_head(m, piece, k, &used);
			if (m->head == HTTP1_DONE && m->http1.message_done)
				m->body = HTTP1_DONE;
		} else {
			m->body = http1_body(&m->http1, piece, k, &used, on_body, m);
		}
		free(piece);
		if (m->head == HTTP1_BAD || m->head == HTTP1_TOO_LARGE || m->body == HTTP1_BAD) {
			MUST(http1_fault(&m->http1).why && http1_fault(&m->http1).status >= 400);
			break;
		}
		MUST(used <= k && (used > 0 || m->body == HTTP1_DONE));
		at += used;
	}
	m->used = at;
}

static void forget(struct message *m)
{
	http1_fini(&m->http1);
	buf_fini(&m->content);
}

static bool refused(enum http1_status s)
{
	return s == HTTP1_BAD || s == HTTP1_TOO_LARGE;
}

static void same_fields(const struct http_fields *a, const struct http_fields *b)
{
	MUST(a->count == b->count);
	for (size_t i = 0; i < a->count; i++) {
		MUST(slice_equals(a->items[i].name, b->items[i].name));
		MUST(slice_equals(a->items[i].value, b->items[i].value));
		MUST(a->items[i].known == b->items[i].known);
	}
}

static void same_request(const struct http_request *a, const struct http_request *b)
{
	MUST(slice_equals(a->method, b->method) && a->body == b->body);
	MUST(a->body != HTTP_BODY_LENGTH || a->content_length == b->content_length);
	MUST(a->path_n == b->path_n && memcmp(a->path, b->path, a->path_n) == 0);
	MUST(a->has_query == b->has_query && (!a->has_query || slice_equals(a->query, b->query)));
	MUST(a->authority.host_n == b->authority.host_n &&
	        !memcmp(a->authority.host, b->authority.host, a->authority.host_n));
	MUST(ip_equals(&a->authority.address, &b->authority.address));
	MUST(a->expects_continue == b->expects_continue &&
	        a->wants_websocket == b->wants_websocket);
}

static void same_answer(const struct http_response *a, const struct http_response *b)
{
	MUST(a->status == b->status && slice_equals(a->reason, b->reason) && a->body == b->body);
	MUST(a->body != HTTP_BODY_LENGTH || a->content_length == b->content_length);
}

/* Read whole and in pieces. */
static void same_message(const struct message *a, const struct message *b)
{
	MUST(refused(a->head) == refused(b->head) && refused(a->body) == refused(b->body));
	MUST(!refused(a->head) || http1_fault(&a->http1).status == http1_fault(&b->http1).status);
	if (refused(a->head) || refused(a->body))
		return;
	MUST(a->head == b->head && a->body == b->body);
	if (a->head != HTTP1_DONE)
		return;
	MUST(a->used == b->used);
	MUST(slice_equals(buf_slice(&a->content), buf_slice(&b->content)));
	MUST(slice_equals(http1_trailers(&a->http1), http1_trailers(&b->http1)));
	if (a->response) {
		MUST(charset_is_searchable(&a->answer.fields) ==
		        charset_is_searchable(&b->answer.fields));
		same_answer(&a->answer, &b->answer);
		same_fields(&a->answer.fields, &b->answer.fields);
	} else {
		same_request(&a->request, &b->request);
		same_fields(&a->request.fields, &b->request.fields);
		MUST(a->request.keep_alive == b->request.keep_alive);
	}
}

/* No line of a head that was written holds what begins another one. */
static void clean_lines(const struct buf *text)
{
	const uint8_t *p = buf_bytes(text);

	MUST(text->len >= 4 && memcmp(p + text->len - 4, "\r\n\r\n", 4) == 0);
	for (size_t i = 0; i < text->len; i++) {
		MUST(p[i] != 0);
		MUST(p[i] != '\r' || (i + 1 < text->len && p[i + 1] == '\n'));
		MUST(p[i] != '\n' || (i > 0 && p[i - 1] == '\r'));
	}
	MUST((const uint8_t *)memmem(p, text->len, "\r\n\r\n", 4) == p + text->len - 4);
}

static void write_and_read_again(struct message *m)
{
	static struct message again;
	struct buf text;
	int r;

	buf_init(&text, 1 << 20);
	again.response = m->response;
	again.to_head = m->to_head;
	if (m->response) {
		struct slice upgrade = m->answer.status == 101 ? SLICE("websocket") : SLICE("");

		http_drop_hop_by_hop(&m->answer.fields);
		if (m->answer.body == HTTP_BODY_UNTIL_CLOSE)
			m->answer.body = HTTP_BODY_CHUNKED;
		r = http1_write_response(&text, &m->answer, 11, true, upgrade);
	} else {
		http_drop_hop_by_hop(&m->request.fields);
		struct outgoing head = {.request = &m->request,
		        .has_query = m->request.has_query,
		        .query = m->request.query};

		r = http1_write_request(&text, &head);
	}
	MUST(r == 0);
	clean_lines(&text);
	read_message(&again, buf_bytes(&text), text.len, text.len);
	if (again.head == HTTP1_TOO_LARGE) { /* escaping and "Host:" may make it longer */
		forget(&again);
		buf_fini(&text);
		return;
	}
	MUST(again.head == HTTP1_DONE && again.used == text.len);
	if (m->response)
		same_answer(&m->answer, &again.answer);
	else
		same_request(&m->request, &again.request);
	forget(&again);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct message whole, pieces;
	uint8_t how;

	if (n < 2 || n > 100000)
		return 0;
	how = p[0];
	whole.response = pieces.response = how & 1;
	whole.to_head = pieces.to_head = (how & 1) && (how & 2);
	read_message(&whole, p + 1, n - 1, n);
	read_message(&pieces, p + 1, n - 1, (size_t)(how >> 2) + 1);
	same_message(&whole, &pieces);
	if (whole.head == HTTP1_DONE &&
	        !(whole.response ? false : slice_equals(whole.request.method, SLICE("CONNECT"))) &&
	        (whole.response || whole.request.has_authority))
		write_and_read_again(&whole);
	forget(&whole);
	forget(&pieces);
	return 0;
}
