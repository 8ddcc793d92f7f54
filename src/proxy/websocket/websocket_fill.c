/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a message that is JSON as a whole is filled as a JSON body is: in its
 * strings, with the value escaped. Any other text gets the value as it is. The rest of the message
 * is searched for placeholders and secrets before a byte of it leaves.
 *
 * Messages are not compressed: no compression is offered to the upstream of a request with a
 * credential (request.c).
 */
#include "proxy/websocket/websocket_fill.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/inject/fill.h"
#include "proxy/inject/substitute.h"
#include "proxy/websocket/websocket_relay.h"

#define PIECE (16u << 10) /* bytes that are masked at once */

struct websocket_fill {
	struct proxy *proxy;
	struct buf message; /* unmasked, as far as it has come; no value is in it */
	struct fill fill;
};

bool websocket_fill_is_wanted(const struct exchange *ex)
{
	return ex->verdict.fills_messages && ex->credential;
}

struct websocket_fill *websocket_fill_new(struct proxy *proxy)
{
	struct websocket_fill *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->proxy = proxy;
	buf_init(&f->message, FILL_BODY_MAX);
	return f;
}

static void drop_message(struct websocket_fill *f)
{
	f->proxy->body_held -= f->message.len;
	buf_fini(&f->message);
	buf_init(&f->message, FILL_BODY_MAX);
	fill_fini(&f->fill);
}

void websocket_fill_free(struct websocket_fill *f)
{
	if (!f)
		return;
	drop_message(f);
	buf_fini(&f->message);
	free(f);
}

bool websocket_fill_takes(const struct exchange *ex)
{
	const struct websocket *w = &ex->relay->out;

	return ex->relay->fill && !websocket_is_control(w) && w->text;
}

/* --- a whole message --- */

/* FILL_JSON if all of the message is JSON, else FILL_TEXT. Returns 0 or -ENOMEM. */
static int kind_of(struct slice message, struct fill_kind *kind)
{
	const char *why;

	*kind = (struct fill_kind){FILL_JSON, SLICE("")};
	why = fill_check(kind, message);
	if (why)
		kind->form = FILL_TEXT;
	return why == fill_no_memory ? -ENOMEM : 0;
}

/* Searches what is between the gaps. Returns 0 or -EACCES. */
static int search_rest(struct exchange *ex, const struct fill *fill, struct slice message)
{
	size_t at = 0;

	for (size_t i = 0; i <= fill->count; i++) {
		size_t end = i < fill->count ? fill->gaps[i].at : message.n;

		websocket_inspect_text(ex, (const uint8_t *)message.p + at, end - at);
		at = i < fill->count ? end + fill->gaps[i].n : end;
	}
	return ex->scanning.leak ? -EACCES : 0;
}

/* Masked bytes and their key stand side by side, so both lie in locked memory only. */
static void send_frame(struct exchange *ex, const struct fill *fill, struct slice message)
{
	struct buf locked = proxy_secret_text(ex->proxy, SECRET_HEAD);
	struct upstream_stream *u = ex->upstream;
	struct websocket frame;
	struct slice piece;

	websocket_begin_text(&frame, fill->length);
	u->ops->send_body(u, frame.head, frame.head_was);
	for (size_t sent = 0; (piece = fill_from(fill, message, sent)).n; sent += piece.n) {
		piece.n = piece.n < PIECE ? piece.n : PIECE;
		websocket_mask(&frame, (const uint8_t *)piece.p, piece.n, locked.mem);
		u->ops->send_body(u, locked.mem, piece.n);
	}
	secret_wipe(locked.mem, PIECE);
}

static int send_filled(struct exchange *ex, struct websocket_fill *f)
{
	struct slice message = buf_slice(&f->message);
	struct policy_credential spec;
	struct substitute s;
	struct fill_kind kind = {FILL_NONE, SLICE("")};
	int rc = 0;

	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	exchange_substitute(ex, &spec, &s);
	if (substitute_mentions(&s, message))
		rc = kind_of(message, &kind);
	if (rc == 0)
		rc = fill_make(&f->fill, &kind, &s, message);
	if (rc == 0)
		rc = search_rest(ex, &f->fill, message);
	if (rc == 0)
		send_frame(ex, &f->fill, message);
	return rc;
}

int websocket_fill_take(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_fill *f = ex->relay->fill;
	const struct websocket *w = &ex->relay->out;
	size_t before = f->message.len;
	int rc;

	if (n > FILL_BODY_MAX - before)
		return -EMSGSIZE;
	if (n > HOLDING_ALL_MAX - ex->proxy->body_held)
		return -ENOBUFS;
	rc = buf_append(&f->message, p, n);
	if (rc < 0)
		return rc;
	ex->proxy->body_held += n;
	websocket_unmask(w, p, n, buf_bytes(&f->message) + before);
	if (w->left || !websocket_ends_message(w))
		return 0;
	rc = send_filled(ex, f);
	drop_message(f);
	return rc;
}

uint16_t websocket_fill_fault(int rc, const char **detail)
{
	if (rc == -EBADMSG) {
		*detail = "WebSocket: the credential's value cannot stand in a text message";
		return WEBSOCKET_POLICY;
	}
	*detail = rc == -EMSGSIZE
	                  ? "WebSocket: a text message that has more than 1 MiB, and has to be "
	                    "whole before a placeholder can be replaced in it"
	          : rc == -E2BIG   ? "WebSocket: a text message with more than 32 placeholders"
	          : rc == -ENOBUFS ? "WebSocket: too many bodies and messages are being held"
	                           : "WebSocket: no memory to replace placeholders in a message";
	return WEBSOCKET_TOO_BIG;
}
