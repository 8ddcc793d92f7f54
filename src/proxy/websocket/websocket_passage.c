/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. What is read of a run is sent when the run ends, in one piece. So if a frame
 * turns out to be wrong, usually nothing of it has been sent, and a close frame can take its place.
 * A head that came in two runs is kept in struct websocket until its first content was checked. A
 * close frame is short and is right or wrong as a whole: it is gathered.
 */
#include "proxy/exchange/exchange.h"
#include "proxy/websocket/websocket_relay.h"

static void send_until(struct exchange *ex, struct websocket_passage *passage, size_t end)
{
	passage->send(ex, passage->p + passage->from, end - passage->from);
	passage->from = end;
}

static bool is_close(const struct websocket_passage *passage)
{
	return passage->w->opcode == WEBSOCKET_CLOSE;
}

/* The head of a frame is complete. */
static void begin_frame(
        struct exchange *ex, struct websocket_passage *passage, size_t start, bool carried)
{
	passage->unsent = true;
	passage->frame = carried ? passage->at : start;
	passage->owes_head = carried && !is_close(passage);
	if (carried)
		passage->from = passage->at;
	else if (is_close(passage))
		send_until(ex, passage, start);
}

/* Gathers a close frame and sends it as a whole, its content masked again with the key it had. */
static void gather_close(struct exchange *ex, struct websocket_passage *passage, size_t n)
{
	struct websocket *w = passage->w;
	size_t all = (size_t)w->at;

	websocket_unmask(w, passage->p + passage->at - n, n, passage->close + all - n);
	passage->from = passage->at;
	if (w->left)
		return;
	passage->error = websocket_close_is_wrong(passage->close, all, &passage->code);
	if (passage->error)
		return;
	websocket_unmask(w, passage->close, all, passage->close);
	passage->send(ex, w->head, w->head_was);
	passage->send(ex, passage->close, all);
}

enum websocket_step websocket_passage_next(
        struct exchange *ex, struct websocket_passage *passage, size_t *used)
{
	struct websocket *w = passage->w;
	bool carried = w->head_n > 0; /* its beginning came in an earlier run */
	size_t start = passage->at;
	enum websocket_step step;

	*used = websocket_next(w, passage->p + start, passage->n - start, &step);
	if (step == WEBSOCKET_HEAD || step == WEBSOCKET_CONTENT) {
		passage->at += *used;
		if (step == WEBSOCKET_HEAD)
			begin_frame(ex, passage, start, carried);
		if (is_close(passage))
			gather_close(ex, passage, step == WEBSOCKET_HEAD ? 0 : *used);
		return passage->error ? WEBSOCKET_BAD : step;
	}
	send_until(ex, passage, start);
	passage->from = passage->at = passage->n;
	passage->unsent = true;
	passage->frame = passage->n;
	passage->code = WEBSOCKET_PROTOCOL_ERROR;
	passage->error = w->error;
	return step;
}

void websocket_passage_accept(struct exchange *ex, struct websocket_passage *passage)
{
	if (!passage->owes_head)
		return;
	passage->owes_head = passage->unsent = false;
	passage->send(ex, passage->w->head, passage->w->head_was);
}

void websocket_passage_skip(struct exchange *ex, struct websocket_passage *passage,
        enum websocket_step step, size_t used)
{
	send_until(ex, passage, step == WEBSOCKET_HEAD ? passage->frame : passage->at - used);
	passage->from = passage->at;
	passage->owes_head = passage->unsent = false;
}

void websocket_passage_end(struct exchange *ex, struct websocket_passage *passage)
{
	websocket_passage_accept(ex, passage);
	send_until(ex, passage, passage->at);
}

bool websocket_passage_break(struct exchange *ex, struct websocket_passage *passage)
{
	if (is_close(passage)) /* nothing of it was sent, in whichever run it began */
		return true;
	if (passage->unsent)
		send_until(ex, passage, passage->frame);
	return passage->unsent;
}
