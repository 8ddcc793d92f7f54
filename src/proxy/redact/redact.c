/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks echoes of a credential in responses.
 *
 * A response to a request with a credential is:
 * - not coded: searched and masked;
 * - in gzip, deflate, br or zstd: decompressed, masked and sent plain, if the client accepts the
 *   coding and nobody would notice a change; otherwise passed on as it came, and a copy is searched
 *   (inspect.c);
 * - in any other coding or in several, with messages compressed one by one (gRPC, Connect), or in a
 *   character set that cannot be searched (charset.c): refused, because it could hide the
 *   credential.
 *
 * Decompression obeys back-pressure: input for which the client has no room waits in
 * ex->redacting.compressed.
 */
#include <errno.h>
#include <inttypes.h>

#include "proxy/exchange/exchange.h"
#include "proxy/http/content.h"
#include "proxy/redact/charset.h"
#include "proxy/redact/inspect.h"
#include "proxy/websocket/websocket_relay.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/team.h"

#define DECOMPRESS_STEP (64u << 10)

const char exchange_guessed_text[] = "somebody may be guessing the credential";

static const char *const state_names[] = {
        [REDACTING_NONE] = "NONE",
        [REDACTING_COMES] = "COMES",
        [REDACTING_EMPTY] = "EMPTY",
        [REDACTING_WHOLE] = "WHOLE",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == REDACTING_STATE_COUNT, "a name per state");

static void enter(struct exchange *ex, enum redacting_state state)
{
	struct redacting *m = &ex->redacting;

	if (m->state != state)
		log_debug("event %016" PRIx64 ": content: %s -> %s", ex->id, state_names[m->state],
		        state_names[state]);
	m->state = state;
}

void redacting_begin(struct exchange *ex)
{
	if (ex->redacting.state == REDACTING_NONE)
		enter(ex, REDACTING_COMES);
}

void redacting_end(struct exchange *ex)
{
	enter(ex, ex->redacting.state == REDACTING_NONE ? REDACTING_EMPTY : REDACTING_WHOLE);
}

/* --- the response's head --- */

void exchange_mask_fields(struct exchange *ex, struct http_response *r)
{
	const struct mask *mask = ex->credential->mask;
	uint64_t found = 0;

	/* The slices point into the upstream parser's own buffer, which nobody else reads any
	 * more. HTTP/2 has no reason phrase: the one set here is static text that cannot be
	 * written to. */
	if (r->version != 20)
		found += mask_in_place(mask, (uint8_t *)(uintptr_t)r->reason.p, r->reason.n);
	for (size_t i = 0; i < r->fields.count; i++) {
		struct http_field *f = &r->fields.items[i];

		found += mask_in_place(mask, (uint8_t *)(uintptr_t)f->value.p, f->value.n);
		found += mask_in_place(mask, (uint8_t *)(uintptr_t)f->name.p, f->name.n);
	}
	ex->redacting.mask.found += found;
}

/* The head of a response without content says what the head of one with content would say. */
static int describe_without_content(struct exchange *ex, struct http_response *r, bool decompresses)
{
	if (decompresses && (ex->head_request || r->status == 304)) {
		r->body = HTTP_BODY_NONE; /* its length is unknown */
		return content_describe_decompressed(&r->fields, &ex->redacting.etag);
	}
	if (r->status == 304 && ex->redacting.accepted)
		return content_describe_unmodified(
		        &ex->request.fields, &r->fields, &ex->redacting.etag);
	return 0;
}

static int begin_compressed(struct exchange *ex, struct http_response *r,
        enum decompress_coding coding, bool decompresses)
{
	struct decompress_memory *memory = &ex->proxy->decoders;

	if (!decompresses) {
		ex->redacting.inspection = inspection_new(ex->credential->mask, coding, memory);
		return ex->redacting.inspection ? 0 : -1;
	}
	ex->redacting.decompress = decompress_new(coding, memory);
	if (!ex->redacting.decompress ||
	        content_describe_decompressed(&r->fields, &ex->redacting.etag) < 0)
		return -1;
	buf_init(&ex->redacting.compressed, 2 * SOCKET_CHUNK);
	r->body = HTTP_BODY_CHUNKED;
	return 0;
}

int exchange_begin_masking(
        struct exchange *ex, struct http_response *r, enum event_cause *cause, const char **why)
{
	enum content_coding coding = content_has_coded_messages(&r->fields)
	                                     ? CONTENT_OTHER
	                                     : content_coding_of(&r->fields);
	/* Do not change the response if somebody may check whether it was changed. */
	bool decompresses = content_is_compressed(coding) &&
	                    ex->redacting.accepted >> content_decoder_of(coding) & 1 &&
	                    !content_forbids_transform(&r->fields) &&
	                    !content_has_digest(&r->fields);

	*cause = EVENT_CAUSE_LIMIT;
	*why = "no memory to read the response";
	if (!ex->credential->mask) /* the credential itself was never sent */
		return 0;
	if (mask_stream_init(&ex->redacting.mask, ex->credential->mask) < 0)
		return -1;
	exchange_mask_fields(ex, r);
	if (ex->ranging) {
		const char *fault = ranging_answer(ex, r);

		if (fault) {
			*cause = EVENT_CAUSE_UNREADABLE;
			*why = fault;
			return -1;
		}
	}
	if (exchange_has_no_content(ex, r))
		return describe_without_content(ex, r, decompresses);
	ex->redacting.start.kind = charset_start_kind(&r->fields);
	if (!charset_is_searchable(&r->fields)) {
		*cause = EVENT_CAUSE_UNREADABLE;
		*why = "the upstream's response is in a character set that cannot be searched for "
		       "the credential: ask for UTF-8";
		return -1;
	}
	if (coding == CONTENT_PLAIN)
		return 0;
	if (coding == CONTENT_OTHER) {
		*cause = EVENT_CAUSE_UNREADABLE;
		*why = "the upstream's response is in a content coding that cannot be searched for "
		       "the credential";
		return -1;
	}
	return begin_compressed(ex, r, content_decoder_of(coding), decompresses);
}

/* --- the response's body --- */

void exchange_mark_undecodable(struct exchange *ex, const char *why)
{
	ex->redacting.undecodable = why;
}

bool exchange_start_is_right(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (charset_start_is_searchable(&ex->redacting.start, p, n))
		return true;
	exchange_mark_undecodable(ex,
	        "the upstream's response begins like text in a character set that "
	        "cannot be searched for the credential: ask for UTF-8");
	return false;
}

/* Tells the sandbox's other workers that a credential may be being guessed, and learns it from
 * them: several workers must not give several chances. Not under a later policy, which numbers
 * credentials anew. */
void exchange_share_guess(const struct exchange *ex)
{
	const struct proxy *p = ex->proxy;
	const uint32_t credential = ex->verdict.decision.credential;

	if (!p->config.team || p->limits.policies > 1 || credential >= TEAM_CREDENTIALS)
		return;
	if (credential_store_is_guessed(p->config.credentials, credential))
		team_note_guess(p->config.team, credential);
	else if (team_is_guessed(p->config.team, credential))
		(void)credential_store_waited(p->config.credentials, credential, 1);
}

/* If the credential is being guessed, what the mask keeps back must not teach anything more. */
bool exchange_is_guessed(struct exchange *ex)
{
	struct credential_store *store = ex->proxy->config.credentials;
	uint32_t credential = ex->verdict.decision.credential;
	unsigned waited =
	        ex->redacting.mask.waited +
	        (ex->redacting.inspection ? inspection_waited(ex->redacting.inspection) : 0);
	int more = (int)(waited - ex->redacting.waits_told);

	ex->redacting.waits_told = waited;
	if (more && credential_store_waited(store, credential, more))
		audit_finding(ex->proxy, ex->client, EVENT_FINDING_CREDENTIAL_ECHO, ex->id,
		        SLICE(""),
		        "a response stopped in the middle of the credential: somebody may be "
		        "guessing it, so no request gets it any more");
	exchange_share_guess(ex);
	return credential_store_is_guessed(store, credential);
}

static const char memory_text[] = "no memory to search the response";
static const char undecodable_text[] =
        "the upstream's compressed response is damaged: it cannot be searched for the credential";

const char *exchange_undecodable_text(int rc)
{
	if (rc == -EBADMSG)
		return undecodable_text;
	return rc == -EFBIG ? "the upstream's compressed response inflates to too much to be "
	                      "searched for the credential"
	                    : memory_text;
}

void exchange_await_more(struct exchange *ex)
{
	if (ex->redacting.inspection ? inspection_keeps(ex->redacting.inspection)
	                             : ex->redacting.mask.held > ex->redacting.mask.shown)
		loop_deadline_set(&ex->proxy->waits[WAIT_HELD], &ex->redacting.held);
	else
		loop_deadline_clear(&ex->redacting.held);
}

void exchange_release_held(struct exchange *ex)
{
	struct buf *text = &ex->proxy->redacted;
	bool upgraded = ex->state == EXCHANGE_UPGRADED;
	int rc;

	/* More is already here, or is kept waiting by the client. */
	if (ex->ops->congested(ex) || ex->redacting.more || ex->redacting.compressed.len) {
		exchange_await_more(ex);
		return;
	}
	buf_consume(text, text->len);
	rc = ex->redacting.inspection ? inspect_release(ex)
	                              : mask_stream_release(&ex->redacting.mask, text);
	if (exchange_is_guessed(ex))
		rc = -EACCES;
	if (rc == 0 && upgraded)
		websocket_pass_released(ex, buf_bytes(text), text->len);
	else if (rc == 0 && !ex->redacting.inspection)
		exchange_send_body(ex, buf_bytes(text), text->len);
	else if (rc == 0)
		return;
	else if (upgraded)
		exchange_end_upgraded(ex, EVENT_CAUSE_LIMIT, exchange_guessed_text);
	else
		exchange_fail(ex, EVENT_CAUSE_LIMIT, exchange_guessed_text);
}

/* Masks the credential and sends the bytes that are certain. */
static void mask_and_send(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct buf *text = &ex->proxy->redacted;
	struct slice rest;

	if (redacting_is_on(&ex->redacting) && exchange_is_guessed(ex)) {
		exchange_mark_undecodable(ex, exchange_guessed_text);
		return;
	}
	if (redacting_is_on(&ex->redacting) && !exchange_start_is_right(ex, p, n))
		return;
	if (!redacting_is_on(&ex->redacting)) {
		exchange_send_body(ex, p, n);
		return;
	}
	buf_consume(text, text->len);
	if (mask_stream_take(&ex->redacting.mask, p, n, text, &rest) < 0) {
		exchange_mark_undecodable(ex, memory_text);
		return;
	}
	exchange_await_more(ex);
	exchange_send_body(ex, buf_bytes(text), text->len);
	exchange_send_body(ex, (const uint8_t *)rest.p, rest.n);
}

/* Decompresses from p while the client has room. Returns the bytes used; the caller keeps the rest
 * in ex->redacting.compressed. */
static size_t decompress_some(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct buf *plain = &ex->proxy->decompressed;
	size_t total = 0;

	while ((total < n || ex->redacting.more) && !ex->redacting.undecodable &&
	        !ex->ops->congested(ex)) {
		size_t used = 0;
		int rc;

		buf_consume(plain, plain->len);
		rc = decompress_feed(ex->redacting.decompress, p + total, n - total, &used, plain,
		        DECOMPRESS_STEP);
		if (rc < 0) {
			exchange_mark_undecodable(ex, exchange_undecodable_text(rc));
			break;
		}
		ex->redacting.more = plain->len >= DECOMPRESS_STEP;
		mask_and_send(ex, buf_bytes(plain), plain->len);
		secret_wipe(buf_bytes(plain), plain->len);
		total += used;
		if (used == 0 && plain->len == 0 && total < n)
			exchange_mark_undecodable(ex, undecodable_text); /* it makes no progress */
	}
	return total;
}

/* Sends what the mask kept back as the possible beginning of a value: the content has ended, so no
 * value can follow. */
static int flush_mask(struct exchange *ex)
{
	struct buf *text = &ex->proxy->redacted;

	buf_consume(text, text->len);
	if (mask_stream_end(&ex->redacting.mask, text) < 0)
		return -EBADMSG;
	exchange_send_body(ex, buf_bytes(text), text->len);
	return 0;
}

void exchange_redact_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	size_t used;

	if (ex->redacting.undecodable) /* further pieces of the same read */
		return;
	if (ex->redacting.inspection) {
		inspect_body(ex, p, n);
		return;
	}
	if (!ex->redacting.decompress) {
		mask_and_send(ex, p, n);
		return;
	}
	used = ex->redacting.compressed.len ? 0 : decompress_some(ex, p, n);
	if (!ex->redacting.undecodable && used < n &&
	        buf_append(&ex->redacting.compressed, p + used, n - used) < 0)
		exchange_mark_undecodable(ex, memory_text);
}

bool exchange_decompress_more(struct exchange *ex)
{
	if (!ex->redacting.decompress)
		return true;
	buf_consume(
	        &ex->redacting.compressed, decompress_some(ex, buf_bytes(&ex->redacting.compressed),
	                                           ex->redacting.compressed.len));
	return (ex->redacting.compressed.len == 0 && !ex->redacting.more) ||
	       ex->redacting.undecodable;
}

int exchange_flush_body(struct exchange *ex)
{
	/* An empty body is no compressed stream, but some servers send one and label it so. */
	if (ex->redacting.undecodable ||
	        (ex->redacting.decompress && ex->redacting.state != REDACTING_EMPTY &&
	                !decompress_complete(ex->redacting.decompress)))
		return -EBADMSG;
	if (ex->redacting.inspection)
		return inspect_end(ex);
	return redacting_is_on(&ex->redacting) ? flush_mask(ex) : 0;
}
