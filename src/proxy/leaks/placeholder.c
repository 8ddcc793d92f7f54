/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholders: what the sandbox holds in place of a credential. A placeholder may be where its
 * credential goes, and is replaced there. Anywhere else (another field, another host, the URL, a
 * body), also with some of its bytes escaped, it shows that something tries to carry a key away,
 * and perhaps other things with it. The finding is recorded once per exchange. The request is
 * refused, or ended if its body has begun to leave, unless the policy says on_leak: alert, or the
 * placeholder is that of the credential that the request gets.
 *
 * A request that the policy denies (in mode observe: would deny) may carry the placeholders of the
 * credentials that belong to its destination: the client does what it always does, at a path that
 * is not allowed. That is a refusal, but not a finding.
 */
#include <errno.h>
#include <inttypes.h>

#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/content.h"
#include "proxy/http/cookie.h"
#include "proxy/inject/substitute.h"
#include "proxy/leaks/foreign.h"
#include "proxy/leaks/secrets.h"
#include "vethguard/base/log.h"

#define SCAN_CHUNK 16384

/* own: the credential is sent in fields of its own. */
static bool carries_keys(const struct http_field *f, const struct policy_credential *spec, bool own)
{
	return foreign_is_key_field(f->name) || (own && foreign_is_replaced(f->name, spec));
}

static bool is_cookie(const struct http_field *f)
{
	return slice_equals_ignoring_case(f->name, SLICE("cookie"));
}

/* The bit of the credential that the request gets, or 0. */
static uint64_t bound(const struct exchange *ex)
{
	const uint32_t credential = ex->verdict.decision.credential;

	return ex->verdict.allowed && credential < POLICY_CREDENTIALS_MAX
	               ? UINT64_C(1) << credential
	               : 0;
}

static const char *const state_names[] = {
        [SCANNING_HEAD] = "HEAD",
        [SCANNING_BODY] = "BODY",
        [SCANNING_SEEN] = "SEEN",
        [SCANNING_LEAK] = "LEAK",
        [SCANNING_ENDS] = "ENDS",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == SCANNING_STATE_COUNT, "a name per state");

static void enter(struct exchange *ex, enum scanning_state state)
{
	struct scanning *m = &ex->scanning;

	if (m->state != state)
		log_debug("event %016" PRIx64 ": placeholders: %s -> %s", ex->id,
		        state_names[m->state], state_names[state]);
	m->state = state;
}

/* Notes that a placeholder was found. leak: the reason for a refusal, if the policy refuses leaks;
 * NULL: the placeholder is no reason. */
static void see(struct exchange *ex, const char *leak)
{
	if (leak && policy_refuses_leaks(ex->proxy->config.policy)) {
		ex->scanning.leak = leak;
		if (!scanning_ends(&ex->scanning))
			enter(ex, SCANNING_LEAK);
	} else if (!scanning_is_over(&ex->scanning)) {
		enter(ex, SCANNING_SEEN);
	}
}

void exchange_refuse_secret(struct exchange *ex, const char *text)
{
	ex->scanning.leak = text;
	if (!scanning_ends(&ex->scanning))
		enter(ex, SCANNING_LEAK);
}

void exchange_found_placeholder(struct exchange *ex, const char *where, bool foreign)
{
	see(ex, foreign ? where : NULL);
	audit_remark(ex, EVENT_FINDING_PLACEHOLDER_LEAK, SLICE(""), where);
}

/* True if the text mentions a placeholder that does not belong there. If credential's placeholder
 * belongs there, notes it as shown. */
static bool is_foreign(struct exchange *ex, struct slice text, uint32_t credential)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	struct verdict *j = &ex->verdict;

	if (credential_store_mentions_placeholder(store, text, j->own))
		return true;
	if (credential == POLICY_NONE)
		return false;
	j->shown = credential;
	return credential >= POLICY_CREDENTIALS_MAX || !(j->own >> credential & 1);
}

/* The placeholder belongs into the parameter with that name; an empty name stands for any
 * parameter, "?" for none. In a presigned URL it is the key's id (X-Amz-Credential), and with keys
 * of a login the session token as well (X-Amz-Security-Token). in_path: bits of the credentials
 * whose placeholders belong into the path as well. */
static bool query_is_foreign(struct exchange *ex, struct slice parameter, uint64_t in_path)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	const struct http_request *r = &ex->request;
	const bool is_key = slice_equals(parameter, SLICE("X-Amz-Credential"));
	struct slice rest = r->has_query ? r->query : SLICE(""), pair;
	struct slice path = slice_of(r->target.p, r->target.n - rest.n);

	if (credential_store_mentions_placeholder(store, path, in_path))
		return true;
	while (url_parameter_next(&rest, &pair)) {
		bool own = !parameter.n || url_parameter_is(pair, parameter) ||
		           (is_key && url_parameter_is(pair, SLICE("X-Amz-Security-Token")));

		if (credential_store_mentions_placeholder(
		            store, pair, own ? UINT64_C(1) << ex->verdict.decision.credential : 0))
			return true;
	}
	return false;
}

static bool url_is_foreign(struct exchange *ex, bool bound, const struct policy_credential *spec)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	const uint64_t own = bound ? UINT64_C(1) << ex->verdict.decision.credential : 0;
	struct slice target = ex->request.target;

	if (bound && spec->inject == POLICY_INJECT_SIGV4)
		return query_is_foreign(ex, SLICE("X-Amz-Credential"), 0);
	if (bound && spec->inject == POLICY_INJECT_PLACEHOLDER)
		return query_is_foreign(ex,
		        policy_replaces_in(spec, SLICE("query")) ? SLICE("") : SLICE("?"),
		        policy_replaces_in(spec, SLICE("path")) ? own : 0);
	if (bound) /* at most one credential goes into the query */
		return credential_store_mentions_placeholder(
		        store, target, spec->inject == POLICY_INJECT_QUERY ? own : 0);
	return is_foreign(ex, target, ex->verdict.own ? foreign_whose(store, target) : POLICY_NONE);
}

/* In a Cookie field the placeholder belongs into the credential's own cookie, and that cookie is
 * replaced. */
static bool cookies_are_foreign(
        struct exchange *ex, struct slice value, const struct policy_credential *spec)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	const uint64_t own = UINT64_C(1) << ex->verdict.decision.credential;
	struct slice pair;

	while (cookie_next(&value, &pair)) {
		if (!cookie_is(pair, spec->field)
		                ? is_foreign(ex, pair, foreign_whose(store, pair))
		                : credential_store_mentions_placeholder(store, pair, own))
			return true;
	}
	return false;
}

static const char field_text[] =
        "a credential's placeholder was sent where it does not belong: in a header field";

/* A placeholder of this credential is not foreign in the places where it is replaced. Any other
 * placeholder is foreign. */
static bool substituted_is_foreign(struct exchange *ex, const struct policy_credential *spec,
        const struct http_field *f, uint32_t credential)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	uint32_t own = ex->verdict.decision.credential;

	if (is_foreign(ex, f->name, POLICY_NONE))
		return true;
	if (substitute_takes_field(store, spec, own, f))
		return credential_store_mentions_placeholder(store, f->value, UINT64_C(1) << own);
	return is_foreign(ex, f->value, credential);
}

/* True if the head mentions a placeholder of another credential than the request gets, or the
 * host's name mentions any. */
static bool head_is_of_others(const struct exchange *ex)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	const struct http_request *r = &ex->request;
	const uint64_t own = ex->verdict.own | bound(ex);

	for (size_t i = 0; i < r->fields.count; i++)
		if (credential_store_mentions_placeholder(store, r->fields.items[i].name, own) ||
		        credential_store_mentions_placeholder(store, r->fields.items[i].value, own))
			return true;
	return credential_store_mentions_placeholder(store, r->target, own) ||
	       credential_store_name_mentions(store, destination_host(&ex->destination));
}

void exchange_check_placeholders(struct exchange *ex)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	const struct policy_decision *d = &ex->verdict.decision;
	struct http_request *r = &ex->request;
	bool bound = ex->verdict.allowed && d->credential != POLICY_NONE;
	struct policy_credential spec = {0};
	bool own_fields;
	const char *where = NULL;

	if (bound)
		policy_credential(ex->proxy->config.policy, d->credential, &spec);
	own_fields = bound &&
	             (spec.inject == POLICY_INJECT_HEADER || spec.inject == POLICY_INJECT_FIELDS ||
	                     spec.inject == POLICY_INJECT_HMAC);
	for (size_t i = 0; i < r->fields.count; i++) {
		struct http_field *f = &r->fields.items[i];
		uint32_t credential = foreign_whose(store, f->value);

		secrets_look_at_field(ex, f);
		if (bound && spec.inject == POLICY_INJECT_PLACEHOLDER) {
			if (substituted_is_foreign(ex, &spec, f, credential))
				where = field_text;
			continue;
		}
		if (bound && credential == d->credential && carries_keys(f, &spec, own_fields))
			f->dropped = true; /* the credential takes its place */
		else if (bound && spec.inject == POLICY_INJECT_COOKIE && is_cookie(f) &&
		         !cookies_are_foreign(ex, f->value, &spec))
			continue;
		else if (is_foreign(ex, f->value, credential) ||
		         is_foreign(ex, f->name, POLICY_NONE))
			where = field_text;
	}
	if (credential_store_name_mentions(store, destination_host(&ex->destination)))
		where = "a credential's placeholder was sent where it does not belong: in the "
		        "host's name";
	if (url_is_foreign(ex, bound, &spec))
		where = "a credential's placeholder was sent where it does not belong: in the URL";
	if (where)
		exchange_found_placeholder(ex, where, head_is_of_others(ex));
	secrets_look_at_url(ex);
}

bool exchange_refuses_leak(struct exchange *ex)
{
	if (ex->scanning.state < SCANNING_LEAK || !ex->verdict.allowed)
		return false;
	ex->verdict.allowed = false;
	ex->verdict.decision.reason =
	        secrets_refuse(ex) ? POLICY_REASON_SECRET : POLICY_REASON_LEAK;
	ex->verdict.cause = EVENT_CAUSE_POLICY;
	ex->verdict.detail = ex->scanning.leak;
	return true;
}

static void on_leak_end(struct loop_task *task)
{
	struct exchange *ex = container_of(task, struct exchange, scanning.task);

	exchange_fail(ex, EVENT_CAUSE_POLICY, ex->scanning.leak);
}

bool exchange_ends_leak(struct exchange *ex)
{
	if (exchange_refuses_leak(ex)) {
		enter(ex, SCANNING_ENDS);
		ex->scanning.task.run = on_leak_end;
		loop_task_queue(ex->proxy->config.loop, &ex->scanning.task);
	}
	return scanning_ends(&ex->scanning);
}

/* --- bodies --- */

void exchange_scan_text(struct exchange *ex, const uint8_t *p, size_t n, const char *where)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	struct credential_scan before = ex->scanning.scan;

	secrets_look_at_text(ex, slice_of(p, n));
	if (scanning_is_over(&ex->scanning) || n == 0 ||
	        !credential_store_scan(store, &ex->scanning.scan, p, n, ex->verdict.own))
		return;
	/* The credential's own placeholder tells this destination nothing. */
	exchange_found_placeholder(ex, where,
	        credential_store_scan(store, &before, p, n, ex->verdict.own | bound(ex)));
}

static const char body_text[] =
        "a credential's placeholder was sent where it does not belong: in the request's body";

/* True as long as something is looked for in the body. */
static bool is_searched(const struct exchange *ex)
{
	return secrets_are_wanted(ex) ||
	       (!scanning_is_over(&ex->scanning) &&
	               credential_store_has_placeholders(ex->proxy->config.credentials));
}

/* The part of a body that is beyond the bounds, or for which there is no memory, could hide a
 * placeholder. */
static void inflates_too_far(struct exchange *ex)
{
	secrets_note_coding(ex);
	see(ex, "the request's compressed body inflates to too much to be searched for "
	        "placeholders");
}

/* Decompresses a piece of a body and searches the result. Returns how many of its bytes were read:
 * fewer than n if the rest cannot be decompressed. */
static size_t scan_compressed(struct exchange *ex, const uint8_t *p, size_t n)
{
	size_t at = 0, used;
	struct buf out;
	bool more = true;
	int rc = 0;

	buf_init(&out, 4 * SCAN_CHUNK);
	while (rc == 0 && (at < n || more) && is_searched(ex)) {
		rc = decompress_feed(ex->scanning.decoder, p + at, n - at, &used, &out, SCAN_CHUNK);
		at += used;
		more = out.len >= SCAN_CHUNK;
		exchange_scan_text(ex, buf_bytes(&out), out.len, body_text);
		buf_consume(&out, out.len);
	}
	buf_fini(&out);
	if (rc == -EFBIG || rc == -ENOMEM)
		inflates_too_far(ex);
	if (rc < 0) { /* the upstream's decoder may read on where this one does not */
		secrets_note_coding(ex);
		decompress_free(ex->scanning.decoder);
		ex->scanning.decoder = NULL;
		ex->scanning.scan.n = 0;
	}
	return rc < 0 ? at : n;
}

static void begin_scanning(struct exchange *ex)
{
	enum content_coding coding = content_coding_of(&ex->request.fields);

	ex->scanning.begun = true;
	if (coding == CONTENT_OTHER)
		secrets_note_coding(ex);
	if (!content_is_compressed(coding))
		return;
	ex->scanning.decoder = decompress_new(content_decoder_of(coding), &ex->proxy->decoders);
	if (!ex->scanning.decoder)
		inflates_too_far(ex);
}

void exchange_scan_request(struct exchange *ex, const uint8_t *p, size_t n)
{
	size_t read = 0;

	if (!is_searched(ex))
		return;
	if (ex->scanning.state == SCANNING_HEAD)
		enter(ex, SCANNING_BODY);
	if (!ex->scanning.begun)
		begin_scanning(ex);
	if (ex->scanning.decoder)
		read = scan_compressed(ex, p, n);
	exchange_scan_text(ex, p + read, n - read, body_text);
}
