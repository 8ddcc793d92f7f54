/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches what the sandbox sends in a WebSocket for what it should not send: placeholders, and any
 * credential's value. All data frames together are one text, so that no border of a frame or
 * message hides anything; each control frame is a text of its own. Nothing is changed and nothing
 * waits.
 */
#include <errno.h>

#include "proxy/exchange/exchange.h"
#include "proxy/leaks/secrets.h"
#include "proxy/websocket/websocket_relay.h"

static const char placeholder_found[] =
        "a credential's placeholder was sent where it does not belong: in a WebSocket message";

static void value_found(struct exchange *ex)
{
	ex->relay->value_seen = true;
	audit_remark(ex, EVENT_FINDING_CREDENTIAL_SENT, SLICE(""),
	        "the sandbox sent a credential itself, in a WebSocket message");
}

static void look_for_values(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;

	for (size_t i = 0; i < r->value_count && !r->value_seen; i++)
		if (mask_stream_search(&r->streams[i], p, n))
			value_found(ex);
}

/* inflater_text: searches the content of data frames, one after the other. */
static void look(void *context, const uint8_t *p, size_t n)
{
	struct exchange *ex = context;

	exchange_scan_text(ex, p, n, placeholder_found);
	look_for_values(ex, p, n);
}

void websocket_inspect_text(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (n)
		look(ex, p, n);
}

/* The same for a compressed message. websocket_is_text() has checked other messages before. */
static void look_inflated(void *context, const uint8_t *p, size_t n)
{
	struct exchange *ex = context;
	struct websocket_relay *r = ex->relay;

	if (r->out.text)
		r->no_text |= !utf8_feed(&r->out_text, p, n);
	look(ex, p, n);
}

/* Searches the content of a control frame. */
static void look_at_control(struct exchange *ex, uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;

	secrets_look_at_frame(ex, slice_of(p, n));
	if (!scanning_is_over(&ex->scanning) &&
	        credential_store_mentions_placeholder(
	                ex->proxy->config.credentials, slice_of(p, n), ex->verdict.own))
		exchange_found_placeholder(ex, placeholder_found, true);
	for (size_t i = 0; i < r->value_count && !r->value_seen; i++)
		if (mask_in_place(r->streams[i].mask, p, n))
			value_found(ex);
}

void websocket_inspect_gathered(struct exchange *ex, struct websocket_inspection *l)
{
	if (l->n)
		look(ex, l->p, l->n);
	l->n = 0;
}

/* Searches one run of content, at whose end the relay's `out` stands. Returns 0 or an error of
 * inflater_feed(). */
static int look_at_run(
        struct exchange *ex, struct websocket_inspection *l, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;
	struct websocket before = r->out; /* the state as it was after each piece */
	bool ends = r->out.left == 0 && websocket_ends_message(&r->out);
	int rc = 0;

	before.at -= n;
	do {
		size_t room = sizeof(l->p) - l->n, step = n < room ? n : room;

		before.at += step;
		websocket_unmask(&before, p, step, l->p + l->n);
		l->n += step;
		p += step;
		n -= step;
		if (r->out.compressed) {
			rc = inflater_feed(
			        r->inflate, l->p, l->n, ends && n == 0, look_inflated, ex);
			l->n = 0;
			if (rc == 0 && (r->no_text || (ends && n == 0 && r->out.text &&
			                                      !utf8_is_whole(&r->out_text))))
				rc = -EILSEQ;
		} else if (l->n == sizeof(l->p)) {
			websocket_inspect_gathered(ex, l);
		}
	} while (n && rc == 0);
	return rc;
}

int websocket_inspect(
        struct exchange *ex, struct websocket_inspection *l, const uint8_t *p, size_t n)
{
	struct websocket *w = &ex->relay->out;
	int rc;

	if (!w->compressed && scanning_is_over(&ex->scanning) && !secrets_are_wanted(ex) &&
	        (ex->relay->value_seen || !ex->relay->value_count))
		return 0;
	if (websocket_is_control(w)) {
		websocket_unmask(w, p, n, ex->relay->out_control + w->at - n);
		if (w->left == 0)
			look_at_control(ex, ex->relay->out_control, w->at);
		return ex->scanning.leak ? -EACCES : 0;
	}
	if (w->compressed)
		websocket_inspect_gathered(ex, l);
	rc = look_at_run(ex, l, p, n);
	return rc == 0 && ex->scanning.leak ? -EACCES : rc;
}
