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

void exchange_found_placeholder(struct exchange *ex, const char *where)
{
	ex->placeholder_seen = true;
	record_remark(ex, EVENT_FINDING_PLACEHOLDER_LEAK, SLICE(""), where);
}

/* A placeholder in the URL that does not stand for what is put there, plain or in base64. */
static bool strays_in_target(
        const struct credential_store *store, struct slice target, uint32_t allowed)
{
	struct slice rest = target;
	uint32_t credential;
	size_t at, n;

	while ((credential = credential_store_find_placeholder(store, rest, &at, &n)) !=
	        POLICY_NONE) {
		if (credential != allowed)
			return true;
		rest = slice_of(rest.p + at + n, rest.n - at - n);
	}
	credential = credential_store_find_encoded_placeholder(store, target);
	return credential != POLICY_NONE && credential != allowed;
}

void exchange_check_placeholders(struct exchange *ex)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	const struct policy_decision *d = &ex->judgement.decision;
	struct http_request *r = &ex->request;
	bool bound = ex->judgement.allowed && d->credential != POLICY_NONE;
	struct policy_credential spec = {0};
	uint32_t allowed = POLICY_NONE; /* which one's placeholder the URL may hold */
	const char *where = NULL;
	size_t at, n;

	if (bound)
		policy_credential(ex->proxy->config.policy, d->credential, &spec);
	if (bound && spec.inject == POLICY_INJECT_QUERY)
		allowed = d->credential;
	for (size_t i = 0; i < r->fields.count; i++) {
		struct http_field *f = &r->fields.items[i];
		uint32_t credential = credential_store_find_placeholder(store, f->value, &at, &n);

		if (credential == POLICY_NONE)
			credential = credential_store_find_encoded_placeholder(store, f->value);
		if (credential == POLICY_NONE)
			continue;
		if (bound && credential == d->credential && carries_keys(f, spec.field))
			f->dropped = true; /* the real one takes its place */
		else
			where = "a credential's placeholder was sent where it does not belong: in "
			        "a header field";
	}
	if (strays_in_target(store, r->target, allowed))
		where = "a credential's placeholder was sent where it does not belong: in the URL";
	if (where)
		exchange_found_placeholder(ex, where);
}

/* --- bodies --- */

/* Content in pieces: the end of what came before is looked at together with the beginning of this
 * piece. */
void exchange_scan_text(struct exchange *ex, const uint8_t *p, size_t n, const char *where)
{
	const struct credential_store *store = ex->proxy->config.credentials;
	char border[2 * PLACEHOLDER_MAX];
	size_t keep = sizeof ex->scanned, first = n < keep ? n : keep;
	size_t at, length;

	if (ex->placeholder_seen)
		return;
	memcpy(border, ex->scanned, ex->scanned_n);
	memcpy(border + ex->scanned_n, p, first);
	if (credential_store_find_placeholder(
	            store, slice_of(border, ex->scanned_n + first), &at, &length) != POLICY_NONE ||
	        credential_store_find_placeholder(store, slice_of(p, n), &at, &length) !=
	                POLICY_NONE) {
		exchange_found_placeholder(ex, where);
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

void exchange_scan_request(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (policy_credential_count(ex->proxy->config.policy))
		exchange_scan_text(ex, p, n,
		        "a credential's placeholder was sent where it does not belong: in the "
		        "request's body");
}
