/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A head is kept until it is complete and found to be right. Then it and its
 * content are passed on in the run of bytes they came in, once these were checked
 * (websocket_passage.c). If nothing of a wrong frame has been sent yet, a close frame takes its
 * place.
 */
#include <errno.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"
#include "proxy/leaks/secrets.h"
#include "proxy/websocket/websocket_fill.h"
#include "proxy/websocket/websocket_relay.h"

/* --- life --- */

/* Collects every value that this worker holds now: the sandbox should not know any of them. */
static void find_values(struct websocket_relay *r, const struct proxy *proxy)
{
	uint32_t count = policy_credential_count(proxy->config.policy);

	for (uint32_t i = 0; i < count && r->value_count < WEBSOCKET_VALUES_MAX; i++) {
		struct credential_value *v = credential_store_held(proxy->config.credentials, i);

		if (!v || !v->mask || mask_stream_init(&r->streams[r->value_count], v->mask) < 0)
			continue;
		credential_value_retain(v);
		r->values[r->value_count++] = v;
	}
}

struct websocket_relay *websocket_relay_new(
        struct exchange *ex, const struct websocket_deflate *deflate)
{
	struct websocket_relay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->out.masked = true;
	r->out.deflate = r->in.deflate = deflate->agreed;
	find_values(r, ex->proxy);
	if (websocket_fill_is_wanted(ex)) {
		r->fill = websocket_fill_new(ex->proxy);
		if (!r->fill) {
			websocket_relay_free(r);
			return NULL;
		}
	}
	if (redacting_is_on(&ex->redacting) &&
	        (mask_stream_init(&r->control, ex->redacting.mask.mask) < 0 ||
	                mask_stream_init(&r->wire, ex->redacting.mask.mask) < 0)) {
		websocket_relay_free(r);
		return NULL;
	}
	if (!deflate->agreed ||
	        (!policy_credential_count(ex->proxy->config.policy) && !ex->secrets))
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
	websocket_fill_free(r->fill);
	mask_stream_fini(&r->control);
	mask_stream_fini(&r->wire);
	secret_wipe(r->in_control, sizeof(r->in_control));
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

/* True if the bytes sent to the sandbox end at a frame's end. A fragment, a control frame that is
 * being gathered, and a head whose content has not come were not sent yet. */
static bool sandbox_is_between_frames(const struct exchange *ex)
{
	const struct websocket_relay *r = ex->relay;

	return r->in.left == 0 || r->in.opcode == WEBSOCKET_CLOSE ||
	       (redacting_is_on(&ex->redacting) && (!r->verbatim || r->owes_head));
}

static bool upstream_is_between_frames(const struct exchange *ex)
{
	return ex->relay->out.left == 0 || ex->relay->out.opcode == WEBSOCKET_CLOSE;
}

struct ending {
	uint16_t code;
	enum event_cause cause;
	const char *detail;
};

/* Ends the relay and sends a close frame to the sides that may be told. */
static void end_with(
        struct exchange *ex, struct ending why, bool tells_sandbox, bool tells_upstream)
{
	uint8_t frame[WEBSOCKET_CLOSE_BYTES];

	if (tells_sandbox)
		websocket_to_sandbox(ex, frame, websocket_write_close(frame, why.code, false));
	if (tells_upstream)
		to_upstream(ex, frame, websocket_write_close(frame, why.code, true));
	if (why.cause == EVENT_CAUSE_CLIENT)
		audit_finding(ex->proxy, ex->client, EVENT_FINDING_SMUGGLING, ex->id, SLICE(""),
		        why.detail);
	exchange_end_upgraded(ex, why.cause, why.detail);
}

/* The sandbox has sent something wrong. unsent: nothing of its last frame was passed on. */
static void end_sandbox(struct exchange *ex, struct ending why, bool unsent)
{
	end_with(ex, why, !ex->relay->in.closed && sandbox_is_between_frames(ex), unsent);
}

static void end_upstream(struct exchange *ex, struct ending why, bool unsent)
{
	end_with(ex, why, unsent, !ex->relay->out.closed && upstream_is_between_frames(ex));
}

/* --- both directions --- */

/* True for content, and for the head of a frame without content. */
static bool is_content(const struct websocket *w, enum websocket_step step)
{
	return step == WEBSOCKET_CONTENT || (step == WEBSOCKET_HEAD && w->left == 0);
}

static struct ending unreadable(const struct exchange *ex, int rc)
{
	if (ex->scanning.leak)
		return (struct ending){WEBSOCKET_POLICY, EVENT_CAUSE_POLICY, ex->scanning.leak};
	if (rc == -EILSEQ)
		return (struct ending){WEBSOCKET_BAD_DATA, EVENT_CAUSE_CLIENT, websocket_no_text};
	if (rc == -EBADMSG)
		return (struct ending){WEBSOCKET_BAD_DATA, EVENT_CAUSE_CLIENT,
		        "WebSocket: a compressed message that is damaged"};
	return (struct ending){WEBSOCKET_TOO_BIG, EVENT_CAUSE_LIMIT,
	        "WebSocket: compressed messages that inflate to too much"};
}

/* True for the head of a frame, and for content. */
static bool is_step(enum websocket_step step)
{
	return step == WEBSOCKET_HEAD || step == WEBSOCKET_CONTENT;
}

/* Checks content of the sandbox's frame; n is 0 if it has none. Returns as websocket_inspect(). */
static int check(struct exchange *ex, struct websocket_inspection *l, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;

	if (!websocket_is_text(&r->out, &r->out_text, p, n))
		return -EILSEQ;
	if ((!policy_credential_count(ex->proxy->config.policy) && !ex->secrets) ||
	        (n == 0 && !(r->out.compressed && websocket_ends_message(&r->out))))
		return 0;
	return websocket_inspect(ex, l, p, n);
}

/* Takes a step of a text message in which placeholders are replaced. Returns false if the relay has
 * ended. */
static bool fill(struct exchange *ex, struct websocket_passage *passage, enum websocket_step step,
        size_t used)
{
	struct websocket_relay *r = ex->relay;
	const uint8_t *p = passage->p + passage->at - used;
	struct ending why = {0, EVENT_CAUSE_LIMIT, NULL};
	int rc = 0;

	websocket_passage_skip(ex, passage, step, used);
	if (is_content(&r->out, step))
		rc = websocket_is_text(&r->out, &r->out_text, p, used)
		             ? websocket_fill_take(ex, p, used)
		             : -EILSEQ;
	if (rc == 0)
		return true;
	if (rc == -EILSEQ || exchange_refuses_leak(ex))
		why = unreadable(ex, rc);
	else
		why.code = websocket_fill_fault(rc, &why.detail);
	end_sandbox(ex, why, true); /* nothing of the message has left */
	return false;
}

/* Ends the relay at a placeholder. Nothing of what has just been read is passed on, and the
 * upstream may have a part of a frame, so it is not told. */
static bool ends_leak(struct exchange *ex)
{
	if (!exchange_refuses_leak(ex))
		return false;
	end_sandbox(ex, unreadable(ex, 0), false);
	return true;
}

void websocket_from_sandbox(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;
	struct websocket_passage passage = {
	        .w = &r->out, .close = r->out_close, .send = to_upstream, .p = p, .n = n};
	struct websocket_inspection looked;

	looked.n = 0;
	while (passage.at < n) {
		size_t used;
		enum websocket_step step = websocket_passage_next(ex, &passage, &used);
		int rc = 0;

		if (step == WEBSOCKET_HEAD)
			used = 0;
		if (is_step(step) && websocket_fill_takes(ex)) {
			websocket_inspect_gathered(ex, &looked);
			if (!fill(ex, &passage, step, used))
				return;
			continue;
		}
		if (is_content(&r->out, step))
			rc = check(ex, &looked, p + passage.at - used, used);
		if (step == WEBSOCKET_BAD || rc < 0) {
			struct ending why = {passage.code, EVENT_CAUSE_CLIENT, passage.error};

			websocket_inspect_gathered(ex, &looked);
			if (ends_leak(ex))
				return;
			end_sandbox(ex, rc < 0 ? unreadable(ex, rc) : why,
			        websocket_passage_break(ex, &passage));
			return;
		}
		if (is_content(passage.w, step))
			websocket_passage_accept(ex, &passage);
	}
	websocket_inspect_gathered(ex, &looked);
	if (!ends_leak(ex))
		websocket_passage_end(ex, &passage);
}

static struct ending not_covered(const struct websocket_relay *r, int rc)
{
	if (rc == -EPROTO)
		return (struct ending){r->code, EVENT_CAUSE_UPSTREAM, r->error};
	return (struct ending){WEBSOCKET_TOO_BIG, EVENT_CAUSE_LIMIT,
	        rc == -EACCES ? "somebody may be guessing the credential"
	                      : "no memory to search what the upstream sent"};
}

static void covered(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;
	struct websocket *w = &r->in;
	size_t used;

	for (; n; p += used, n -= used) {
		enum websocket_step step;
		int rc = 0;

		used = websocket_next(w, p, n, &step);
		if (step == WEBSOCKET_BAD) {
			end_upstream(ex,
			        (struct ending){
			                WEBSOCKET_PROTOCOL_ERROR, EVENT_CAUSE_UPSTREAM, w->error},
			        true);
			return;
		}
		if (step == WEBSOCKET_HEAD)
			websocket_redact_begin(ex);
		if (is_content(w, step))
			rc = websocket_redact(ex, p, step == WEBSOCKET_HEAD ? 0 : used);
		if (rc < 0) {
			end_upstream(ex, not_covered(r, rc), !r->verbatim || r->owes_head);
			return;
		}
	}
}

void websocket_from_upstream(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct websocket_relay *r = ex->relay;
	struct websocket_passage passage = {
	        .w = &r->in, .close = r->in_close, .send = websocket_to_sandbox, .p = p, .n = n};

	if (redacting_is_on(&ex->redacting)) {
		covered(ex, p, n);
		return;
	}
	while (passage.at < n) {
		size_t used;
		enum websocket_step step = websocket_passage_next(ex, &passage, &used);
		struct ending why = {passage.code, EVENT_CAUSE_UPSTREAM, passage.error};

		if (step == WEBSOCKET_HEAD)
			used = 0;
		if (is_content(&r->in, step) &&
		        !websocket_is_text(&r->in, &r->in_text, p + passage.at - used, used)) {
			why = (struct ending){
			        WEBSOCKET_BAD_DATA, EVENT_CAUSE_UPSTREAM, websocket_no_text};
			step = WEBSOCKET_BAD;
		}
		if (step == WEBSOCKET_BAD) {
			end_upstream(ex, why, websocket_passage_break(ex, &passage));
			return;
		}
		if (is_content(passage.w, step))
			websocket_passage_accept(ex, &passage);
	}
	websocket_passage_end(ex, &passage);
}

/* Sends each side that is between frames a close frame. */
void websocket_end_limited(struct exchange *ex, const char *detail)
{
	const struct ending why = {WEBSOCKET_POLICY, EVENT_CAUSE_POLICY_LIMIT, detail};

	end_with(ex, why, !ex->relay->in.closed && sandbox_is_between_frames(ex),
	        !ex->relay->out.closed && upstream_is_between_frames(ex));
}

void websocket_upstream_ended(struct exchange *ex)
{
	struct buf *text = &ex->proxy->text;

	if (!redacting_is_on(&ex->redacting))
		return;
	buf_consume(text, text->len);
	mask_stream_end(
	        &ex->redacting.mask, text); /* counts what the mask holds; the text is discarded */
	secret_wipe(buf_bytes(text), text->len);
	buf_consume(text, text->len);
}
