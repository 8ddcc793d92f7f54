/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholders: what the sandbox holds in place of a credential. Where the credential goes it may
 * come, and is replaced; seen anywhere else (another field, another host, the URL, a body) it tells
 * that something tries to carry a key away. It is worth nothing outside, so the request goes on;
 * the finding is recorded, once for an exchange.
 */
#include "proxy/exchange.h"

/* Fields in which SDKs send a key. */
static bool carries_keys(const struct http_field *f, struct slice injected)
{
	static const struct slice names[] = {{"x-api-key", 9}, {"api-key", 7},
	        {"x-goog-api-key", 14}, {"private-token", 13}, {"x-auth-token", 12},
	        {"job-token", 9}, {"x-github-token", 14}};

	if (f->known == HTTP_AUTHORIZATION ||
	        (injected.n && slice_equals_ignoring_case(f->name, injected)))
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (slice_equals_ignoring_case(f->name, names[i]))
			return true;
	return false;
}

static void found(struct exchange *ex, const char *where)
{
	ex->placeholder_seen = true;
	record_finding(
	        ex->proxy, ex->client, EVENT_FINDING_PLACEHOLDER_LEAK, ex->id, SLICE(""), where);
}

void exchange_check_placeholders(struct exchange *ex)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	const struct policy_decision *d = &ex->judgement.decision;
	struct http_request *r = &ex->request;
	bool bound = ex->judgement.allowed && d->credential != POLICY_NONE;
	struct policy_credential spec = {0};
	const char *where = NULL;
	size_t at, n;

	if (bound)
		policy_credential(ex->proxy->config.policy, d->credential, &spec);
	for (size_t i = 0; i < r->fields.count; i++) {
		struct http_field *f = &r->fields.items[i];
		uint32_t credential = credential_store_find_placeholder(store, f->value, &at, &n);

		if (credential == POLICY_NONE)
			continue;
		if (bound && credential == d->credential && carries_keys(f, spec.field))
			f->dropped = true; /* the real one takes its place */
		else
			where = "a credential's placeholder was sent where it does not belong: in "
			        "a header field";
	}
	if (!bound && credential_store_find_placeholder(store, r->target, &at, &n) != POLICY_NONE)
		where = "a credential's placeholder was sent where it does not belong: in the URL";
	if (where)
		found(ex, where);
}

/* --- bodies --- */

/* Content in pieces: the end of what came before is looked at together with the beginning of this
 * piece. */
static void scan(struct exchange *ex, const uint8_t *p, size_t n)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	char border[2 * PLACEHOLDER_MAX];
	size_t keep = sizeof ex->scanned, first = n < keep ? n : keep;
	size_t at, length;

	memcpy(border, ex->scanned, ex->scanned_n);
	memcpy(border + ex->scanned_n, p, first);
	if (credential_store_find_placeholder(
	            store, slice_of(border, ex->scanned_n + first), &at, &length) != POLICY_NONE ||
	        credential_store_find_placeholder(store, slice_of(p, n), &at, &length) !=
	                POLICY_NONE) {
		found(ex, "a credential's placeholder was sent where it does not belong: in the "
		          "request's body");
		return;
	}
	if (n >= keep) {
		memcpy(ex->scanned, p + n - keep, keep);
		ex->scanned_n = keep;
		return;
	}
	first = ex->scanned_n + n < keep ? ex->scanned_n : keep - n;
	memmove(ex->scanned, ex->scanned + ex->scanned_n - first, first);
	memcpy(ex->scanned + first, p, n);
	ex->scanned_n = first + n;
}

/* WebSocket content comes masked (RFC 6455 section 5.3). */
static void scan_frames(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct buf *plain = &ex->proxy->unpacked;

	while (n && !ex->placeholder_seen) {
		bool content;
		size_t run = websocket_next(&ex->frames_out, p, n, &content);

		buf_consume(plain, plain->len);
		if (content && buf_reserve(plain, run)) {
			websocket_unmask(&ex->frames_out, p, run, buf_bytes(plain));
			scan(ex, buf_bytes(plain), run);
		}
		p += run;
		n -= run;
	}
}

void exchange_scan_request(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (ex->placeholder_seen || !policy_credential_count(ex->proxy->config.policy))
		return;
	if (ex->state == EXCHANGE_UPGRADED)
		scan_frames(ex, p, n);
	else
		scan(ex, p, n);
}
