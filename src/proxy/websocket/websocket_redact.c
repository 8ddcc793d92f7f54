/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks the credential in what a WebSocket's upstream sends, in place.
 *
 * A message in one frame goes out as it comes, and at its end nothing is kept back. What may be the
 * beginning of a value is remembered; if the next message continues the value, that part is masked
 * there. A message in fragments is cut into new fragments (RFC 6455 section 5.4 allows
 * intermediaries to do this): what may be the beginning of a value waits for the next fragment,
 * while pings pass.
 *
 * A control frame is short: it is gathered and sent at once. What may be the beginning of a value
 * at its end is remembered too, so that the last part of a value that is cut over frames of any
 * kinds is masked. Three texts are searched for this: the content of messages, the content of
 * control frames, and both in the order in which they come. The last one costs nothing while no
 * control frame has content.
 */
#include <errno.h>

#include "proxy/exchange/exchange.h"
#include "proxy/websocket/websocket_relay.h"

static void send_fragment(struct exchange *ex, const uint8_t *p, size_t n, bool fin)
{
	struct websocket_relay *r = ex->relay;
	uint8_t head[WEBSOCKET_HEAD_MAX];

	websocket_to_sandbox(ex, head,
	        websocket_write_head(head, fin, r->begun ? WEBSOCKET_CONTINUATION : r->kind, n));
	websocket_to_sandbox(ex, p, n);
	r->begun = true;
}

/* Content of a message in fragments; also called at the end of a frame, with n 0. */
static int cover_fragment(struct exchange *ex, const uint8_t *p, size_t n)
{
	const struct websocket *w = &ex->relay->in;
	struct buf *text = &ex->proxy->text;
	bool fin = w->left == 0 && w->fin;
	int rc;

	buf_consume(text, text->len);
	rc = mask_stream_feed(&ex->redacting.mask, p, n, text);
	if (rc == 0 && fin)
		rc = mask_stream_show(&ex->redacting.mask, text);
	if (rc < 0)
		return rc;
	/* An empty fragment is passed on as such, unless it would overtake something. */
	if (text->len || fin || (n == 0 && ex->redacting.mask.held == ex->redacting.mask.shown))
		send_fragment(ex, buf_bytes(text), text->len, fin);
	return 0;
}

/* Content of a message that is one frame. */
static int cover_whole(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;
	struct buf *text = &ex->proxy->text;
	int rc;

	if (mask_stream_clean(&ex->redacting.mask, p, n)) {
		websocket_to_sandbox(ex, p, n);
		return 0;
	}
	buf_consume(text, text->len);
	rc = mask_stream_feed(&ex->redacting.mask, p, n, text);
	if (rc == 0 && r->in.left == 0)
		rc = mask_stream_show(&ex->redacting.mask, text);
	if (rc == 0)
		websocket_to_sandbox(ex, buf_bytes(text), text->len);
	return rc;
}

/* --- values that are cut over control frames --- */

/* Masks what s finds of p[n], which continues the last text given to s. Masked bytes are written to
 * out, unless it is NULL; out holds the same bytes as p, perhaps with some of them masked. Nothing
 * is kept back. */
static int cover_at_once(
        struct exchange *ex, struct mask_stream *s, const uint8_t *p, size_t n, uint8_t *out)
{
	struct buf *text = &ex->proxy->text;
	uint64_t before = s->found;
	const uint8_t *covered;
	int rc;

	buf_consume(text, text->len);
	rc = mask_stream_feed(s, p, n, text);
	if (rc == 0)
		rc = mask_stream_show(s, text);
	if (rc < 0 || text->len != n)
		return rc < 0 ? rc : -EIO;
	covered = buf_bytes(text);
	for (size_t i = 0; out && i < n; i++)
		if (covered[i] != p[i])
			out[i] = covered[i];
	ex->redacting.mask.found += s->found - before;
	return 0;
}

/* Starts the wire's text, which is kept only while it differs from that of the messages: from a
 * control frame with content on. It begins with what may be the beginning of a value in the
 * messages' text. */
static int leave_messages(struct exchange *ex)
{
	struct websocket_relay *r = ex->relay;

	if (r->apart)
		return 0;
	r->apart = true;
	return ex->redacting.mask.held == 0 ? 0
	                                    : cover_at_once(ex, &r->wire, ex->redacting.mask.tail.p,
	                                              ex->redacting.mask.held, NULL);
}

/* Content of a message, in the wire's text: masks it if a value began in a control frame. What may
 * be the beginning of a value waits, at most until the frame ends. *p and *n become what is
 * certain. */
static int cover_wire(struct exchange *ex, const uint8_t **p, size_t *n)
{
	struct websocket_relay *r = ex->relay;
	struct buf *certain = &ex->proxy->decompressed;
	uint64_t before = r->wire.found;
	int rc;

	buf_consume(certain, certain->len);
	rc = mask_stream_feed(&r->wire, *p, *n, certain);
	if (rc == 0 && r->in.left == 0)
		rc = mask_stream_show(&r->wire, certain);
	ex->redacting.mask.found += r->wire.found - before;
	*p = buf_bytes(certain);
	*n = certain->len;
	return rc;
}

static int cover_control(struct exchange *ex)
{
	struct websocket_relay *r = ex->relay;
	size_t code_n = r->in.opcode == WEBSOCKET_CLOSE && r->in.at ? 2 : 0,
	       n = (size_t)r->in.at - code_n;
	uint8_t text[WEBSOCKET_CONTROL_MAX];
	int rc = 0;

	if (n) {
		memcpy(text, r->in_control + code_n, n);
		rc = leave_messages(ex);
		if (rc == 0)
			rc = cover_at_once(ex, &r->wire, text, n, r->in_control + code_n);
		if (rc == 0)
			rc = cover_at_once(ex, &r->control, text, n, r->in_control + code_n);
		secret_wipe(text, n);
	}
	if (rc < 0)
		return rc;
	websocket_to_sandbox(ex, r->in.head, r->in.head_was);
	websocket_to_sandbox(ex, r->in_control, (size_t)r->in.at);
	return 0;
}

static int gather_control(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;

	if (n)
		memcpy(r->in_control + r->in.at - n, p, n);
	if (r->in.left)
		return 0;
	if (r->in.opcode == WEBSOCKET_CLOSE)
		r->error = websocket_close_is_wrong(r->in_control, (size_t)r->in.at, &r->code);
	return r->error ? -EPROTO : cover_control(ex);
}

/* --- all frames --- */

static int cover_message(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;
	bool apart = r->apart && n;
	int rc = apart ? cover_wire(ex, &p, &n) : 0;

	if (rc == 0 && (n || !apart))
		rc = r->verbatim ? (n ? cover_whole(ex, p, n) : 0) : cover_fragment(ex, p, n);
	if (!apart)
		return rc;
	secret_wipe(buf_bytes(&ex->proxy->decompressed), ex->proxy->decompressed.len);
	/* Both texts end with the same bytes: from here on they are the same. */
	if (r->in.left == 0 && r->wire.held == ex->redacting.mask.held &&
	        ex->redacting.mask.held <= r->in.at)
		r->apart = false;
	return rc;
}

static int cover(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;

	if (websocket_is_control(&r->in))
		return gather_control(ex, p, n);
	if (!websocket_is_text(&r->in, &r->in_text, p, n)) {
		r->error = websocket_no_text;
		r->code = WEBSOCKET_BAD_DATA;
		return -EPROTO;
	}
	if (r->owes_head)
		websocket_to_sandbox(ex, r->in.head, r->in.head_was);
	r->owes_head = false;
	return cover_message(ex, p, n);
}

int websocket_redact(struct exchange *ex, const uint8_t *p, size_t n)
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

void websocket_redact_begin(struct exchange *ex)
{
	struct websocket_relay *r = ex->relay;
	const struct websocket *w = &r->in;

	r->verbatim = !websocket_is_control(w) && w->fin && w->opcode != WEBSOCKET_CONTINUATION;
	r->owes_head = r->verbatim;
	if (!websocket_is_control(w) && w->opcode != WEBSOCKET_CONTINUATION) {
		r->kind = w->opcode;
		r->begun = false;
	}
}
