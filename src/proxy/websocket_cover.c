/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes back in a WebSocket from an upstream that was given a credential: its value is covered
 * in place. A message in one frame goes out as it comes, and at its end nothing is kept back. What
 * could have been the beginning of a value is remembered, and if the next message goes on with it,
 * that part is covered there. A message in fragments is cut into fragments anew (RFC 6455 section
 * 5.4 leaves that to intermediaries): what may be the beginning of a value waits for the next
 * fragment, while pings pass. Control frames are short, and covered as a whole.
 */
#include <errno.h>

#include "proxy/exchange.h"
#include "proxy/websocket_relay.h"

static void send_fragment(struct exchange *ex, const uint8_t *p, size_t n, bool fin)
{
	struct websocket_relay *r = ex->relay;
	uint8_t head[WEBSOCKET_HEAD_MAX];

	websocket_to_sandbox(ex, head,
	        websocket_write_head(head, fin, r->begun ? WEBSOCKET_CONTINUATION : r->kind, n));
	websocket_to_sandbox(ex, p, n);
	r->begun = true;
}

/* Content of a message in fragments; at the frame's end with n 0 too. */
static int cover_fragment(struct exchange *ex, const uint8_t *p, size_t n)
{
	const struct websocket *w = &ex->relay->in;
	struct buf *text = &ex->proxy->text;
	bool fin = w->left == 0 && w->fin;
	int rc;

	buf_consume(text, text->len);
	rc = mask_stream_feed(&ex->mask, p, n, text);
	if (rc == 0 && fin)
		rc = mask_stream_show(&ex->mask, text);
	if (rc < 0)
		return rc;
	/* An empty fragment goes on as such, unless it would overtake something. */
	if (text->len || fin || (n == 0 && ex->mask.held == ex->mask.shown))
		send_fragment(ex, buf_bytes(text), text->len, fin);
	return 0;
}

/* Content of a message that is one frame. */
static int cover_whole(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;
	struct buf *text = &ex->proxy->text;
	int rc;

	if (mask_stream_clean(&ex->mask, p, n)) {
		websocket_to_sandbox(ex, p, n);
		return 0;
	}
	buf_consume(text, text->len);
	rc = mask_stream_feed(&ex->mask, p, n, text);
	if (rc == 0 && r->in.left == 0)
		rc = mask_stream_show(&ex->mask, text);
	if (rc == 0)
		websocket_to_sandbox(ex, buf_bytes(text), text->len);
	return rc;
}

static void cover_control(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;

	if (n)
		memcpy(r->in_control + r->in.at - n, p, n);
	if (r->in.left)
		return;
	ex->mask.found += mask_in_place(ex->mask.mask, r->in_control, r->in.at);
	websocket_to_sandbox(ex, r->in.head, r->in.head_was);
	websocket_to_sandbox(ex, r->in_control, r->in.at);
}

static int cover(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;

	if (websocket_is_control(&r->in)) {
		if (n || r->in.left == 0)
			cover_control(ex, p, n);
		return 0;
	}
	if (r->verbatim)
		return n ? cover_whole(ex, p, n) : 0;
	return n || r->in.left == 0 ? cover_fragment(ex, p, n) : 0;
}

int websocket_cover(struct exchange *ex, const uint8_t *p, size_t n)
{
	int rc = exchange_is_guessed(ex) ? -EACCES : cover(ex, p, n);

	exchange_await_more(ex);
	return rc == 0 && exchange_is_guessed(ex) ? -EACCES : rc;
}

void websocket_pass_released(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (ex->relay->verbatim)
		websocket_to_sandbox(ex, p, n);
	else if (n > 0)
		send_fragment(ex, p, n, false);
}

int websocket_cover_head(struct exchange *ex)
{
	struct websocket_relay *r = ex->relay;
	const struct websocket *w = &r->in;

	r->verbatim = !websocket_is_control(w) && w->fin && w->opcode != WEBSOCKET_CONTINUATION;
	if (r->verbatim)
		websocket_to_sandbox(ex, w->head, w->head_was);
	if (!websocket_is_control(w) && w->opcode != WEBSOCKET_CONTINUATION) {
		r->kind = w->opcode;
		r->begun = false;
	}
	return websocket_cover(ex, NULL, 0);
}
