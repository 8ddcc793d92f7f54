/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A head is kept until it is whole and found to be right; then it and its
 * content are passed on as they come, in the run of bytes they came in. So whatever is wrong is
 * noticed between two frames, where a close frame may be put.
 */
#include <errno.h>
#include <stdlib.h>

#include "proxy/exchange.h"
#include "proxy/websocket_relay.h"

/* --- life --- */

/* Every value that this worker holds now: the sandbox should not know any of them. */
static void find_values(struct websocket_relay *r, const struct proxy *proxy)
{
	uint32_t count = policy_credential_count(proxy->config.policy);

	for (uint32_t i = 0; i < count && r->value_count < WEBSOCKET_VALUES_MAX; i++) {
		struct credential_value *v = credential_store_held(proxy->config.credentials, i);

		if (!v || mask_stream_init(&r->streams[r->value_count], v->mask) < 0)
			continue;
		credential_value_retain(v);
		r->values[r->value_count++] = v;
	}
}

struct websocket_relay *websocket_relay_new(
        struct exchange *ex, const struct websocket_deflate *deflate)
{
	struct websocket_relay *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->out.masked = true;
	r->out.deflate = r->in.deflate = deflate->agreed;
	find_values(r, ex->proxy);
	if (!deflate->agreed || !policy_credential_count(ex->proxy->config.policy))
		return r;
	r->inflate = inflater_new(deflate->window_bits, deflate->forgets);
	if (r->inflate)
		return r;
	websocket_relay_free(r);
	return NULL;
}

void websocket_relay_free(struct websocket_relay *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->value_count; i++) {
		mask_stream_fini(&r->streams[i]);
		credential_value_release(r->values[i]);
	}
	inflater_free(r->inflate);
	secret_wipe(r->in_control, sizeof r->in_control);
	free(r);
}

/* --- the end --- */

void websocket_to_sandbox(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (n == 0)
		return;
	ex->bytes_in += n;
	ex->ops->response_body(ex, p, n);
}

static void to_upstream(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (n)
		ex->upstream->ops->send_body(ex->upstream, p, n);
}

/* Is what has gone to the sandbox made of whole frames? A fragment or a control frame that is being
 * gathered has not gone yet. */
static bool sandbox_is_between_frames(const struct exchange *ex)
{
	const struct websocket_relay *r = ex->relay;

	return r->in.left == 0 || (ex->masking && !r->verbatim);
}

/* Ends it all, telling both sides why where a frame may be put. */
static void end_with(struct exchange *ex, uint16_t code, enum event_cause cause, const char *detail)
{
	const struct websocket_relay *r = ex->relay;
	uint8_t frame[WEBSOCKET_CLOSE_BYTES];

	if (!r->in.closed && sandbox_is_between_frames(ex))
		websocket_to_sandbox(ex, frame, websocket_write_close(frame, code, false));
	/* Content that could not be read has not been passed on, its frame's head may have been. */
	if (!r->out.closed && r->out.left == 0 && code == WEBSOCKET_PROTOCOL_ERROR)
		to_upstream(ex, frame, websocket_write_close(frame, code, true));
	if (cause == EVENT_CAUSE_CLIENT)
		record_finding(
		        ex->proxy, ex->client, EVENT_FINDING_SMUGGLING, ex->id, SLICE(""), detail);
	exchange_end_upgraded(ex, cause, detail);
}

/* --- a run of bytes that is passed on as it came --- */

struct passage {
	const uint8_t *p;
	size_t n, at;
	size_t from; /* what lies between here and at is not sent yet */
	void (*send)(struct exchange *ex, const uint8_t *p, size_t n);
};

/* The next step. *used: its bytes, which end at passage->at. */
static enum websocket_step go_on(
        struct exchange *ex, struct passage *passage, struct websocket *w, size_t *used)
{
	bool carried = w->head_n > 0; /* its beginning came in an earlier run */
	enum websocket_step step;

	*used = websocket_next(w, passage->p + passage->at, passage->n - passage->at, &step);
	if (step == WEBSOCKET_HEAD || step == WEBSOCKET_CONTENT) {
		passage->at += *used;
		if (carried && step == WEBSOCKET_HEAD) {
			passage->send(ex, w->head, w->head_was);
			passage->from = passage->at;
		}
		return step;
	}
	passage->send(ex, passage->p + passage->from, passage->at - passage->from);
	passage->from = passage->at = passage->n;
	return step;
}

static void pass_rest(struct exchange *ex, const struct passage *passage)
{
	passage->send(ex, passage->p + passage->from, passage->at - passage->from);
}

/* --- both directions --- */

static void end_unreadable(struct exchange *ex, int rc)
{
	if (rc == -EBADMSG)
		end_with(ex, WEBSOCKET_BAD_DATA, EVENT_CAUSE_CLIENT,
		        "WebSocket: a compressed message that is damaged");
	else
		end_with(ex, WEBSOCKET_TOO_BIG, EVENT_CAUSE_LIMIT,
		        "WebSocket: compressed messages that inflate to too much");
}

void websocket_from_sandbox(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket *w = &ex->relay->out;
	struct passage passage = {.p = p, .n = n, .send = to_upstream};
	bool looks = policy_credential_count(ex->proxy->config.policy) > 0;
	struct websocket_looked looked;

	looked.n = 0;
	while (passage.at < n) {
		size_t used;
		enum websocket_step step = go_on(ex, &passage, w, &used);
		int rc = 0;

		if (step == WEBSOCKET_BAD) {
			websocket_look_gathered(ex, &looked);
			end_with(ex, WEBSOCKET_PROTOCOL_ERROR, EVENT_CAUSE_CLIENT, w->error);
			return;
		}
		if (looks && step == WEBSOCKET_CONTENT)
			rc = websocket_look(ex, &looked, p + passage.at - used, used);
		else if (looks && step == WEBSOCKET_HEAD && w->left == 0 && w->compressed &&
		         websocket_ends_message(w))
			rc = websocket_look(ex, &looked, p, 0);
		if (rc < 0) {
			end_unreadable(ex, rc);
			return;
		}
	}
	websocket_look_gathered(ex, &looked);
	pass_rest(ex, &passage);
}

static void covered(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket *w = &ex->relay->in;
	size_t used;

	for (; n; p += used, n -= used) {
		enum websocket_step step;
		int rc = 0;

		used = websocket_next(w, p, n, &step);
		if (step == WEBSOCKET_BAD) {
			end_with(ex, WEBSOCKET_PROTOCOL_ERROR, EVENT_CAUSE_UPSTREAM, w->error);
			return;
		}
		if (step == WEBSOCKET_HEAD) {
			rc = websocket_cover_head(ex);
		} else if (step == WEBSOCKET_CONTENT) {
			rc = websocket_cover(ex, p, used);
		}
		if (rc < 0) {
			end_with(ex, WEBSOCKET_TOO_BIG, EVENT_CAUSE_LIMIT,
			        rc == -EACCES ? "the credential may be being guessed"
			                      : "no memory to search what the upstream sent");
			return;
		}
	}
}

void websocket_from_upstream(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket *w = &ex->relay->in;
	struct passage passage = {.p = p, .n = n, .send = websocket_to_sandbox};
	size_t used;

	if (ex->masking) {
		covered(ex, p, n);
		return;
	}
	while (passage.at < n) {
		if (go_on(ex, &passage, w, &used) == WEBSOCKET_BAD) {
			end_with(ex, WEBSOCKET_PROTOCOL_ERROR, EVENT_CAUSE_UPSTREAM, w->error);
			return;
		}
	}
	pass_rest(ex, &passage);
}

void websocket_upstream_ended(struct exchange *ex)
{
	struct buf *text = &ex->proxy->text;

	if (!ex->masking)
		return;
	buf_consume(text, text->len);
	mask_stream_end(&ex->mask, text); /* what it holds is counted, and goes nowhere */
	secret_wipe(buf_bytes(text), text->len);
	buf_consume(text, text->len);
}
