/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures by HMAC-SHA-256 over the text that the policy's template describes (inject: hmac). Its
 * parts are hashed where they are in memory, so the body is not copied.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/signing/signing.h"
#include "vethguard/base/base64.h"
#include "vethguard/base/clock.h"

_Static_assert(POLICY_TEMPLATE_PIECES_MAX <= HMAC_PARTS_MAX, "a template is signed at once");
_Static_assert(POLICY_FIELDS_MAX <= OUTGOING_FIELDS_MAX, "all fields of a template are sent");

/* The names that a template may use. */
enum part {
	USERNAME,
	METHOD,
	HOST,
	PATH,
	QUERY,
	TARGET,
	TIMESTAMP,
	TIMESTAMP_MS,
	BODY,
	BODY_HASH,
	SIGNATURE,
	PART_COUNT
};

static const struct slice part_names[] = {
        [USERNAME] = {"username", 8},
        [METHOD] = {"method", 6},
        [HOST] = {"host", 4},
        [PATH] = {"path", 4},
        [QUERY] = {"query", 5},
        [TARGET] = {"target", 6},
        [TIMESTAMP] = {"timestamp", 9},
        [TIMESTAMP_MS] = {"timestamp-ms", 12},
        [BODY] = {"body", 4},
        [BODY_HASH] = {"body-sha256", 11},
        [SIGNATURE] = {"signature", 9},
};
_Static_assert(sizeof(part_names) / sizeof(*part_names) == PART_COUNT, "a name per part");

struct parts {
	struct slice of[PART_COUNT];
	char authority[HTTP_AUTHORITY_MAX], time[24], signature[2 * HMAC_BYTES + 1];
};

static struct slice meaning(const struct parts *parts, struct slice literal, struct slice name)
{
	for (size_t i = 0; !literal.n && i < PART_COUNT; i++)
		if (slice_equals(name, part_names[i]))
			return parts->of[i];
	return literal;
}

/* Appends the target as it is sent, without the parameter for the signature. */
static int put_target(struct buf *text, const struct http_request *r, struct slice parameter)
{
	struct slice rest = r->has_query ? r->query : SLICE(""), pair;
	const char *follows = NULL; /* where the next parameter starts if its separator stays */
	int rc = buf_append(text, r->path, r->path_n);

	while (rc == 0 && url_parameter_next(&rest, &pair)) {
		if (parameter.n && url_parameter_is(pair, parameter))
			continue;
		rc = buf_append(text, !follows ? "?" : follows == pair.p ? pair.p - 1 : "&", 1);
		if (rc == 0)
			rc = buf_append_slice(text, pair);
		follows = rest.p;
	}
	return rc;
}

static void set_request(struct parts *parts, const struct exchange *ex, struct slice target)
{
	const struct http_request *r = &ex->request;
	const struct signing *s = ex->signing;
	bool held = s->body == SIGNING_HOLDS;
	size_t path_n = r->path_n, query_at = path_n + (target.n > path_n);

	parts->of[METHOD] = r->method;
	parts->of[HOST] = http_authority_text(r, parts->authority);
	parts->of[TARGET] = target;
	parts->of[PATH] = slice_of(target.p, path_n);
	parts->of[QUERY] = slice_of(target.p + query_at, target.n - query_at);
	parts->of[BODY] = held ? holding_bytes(ex) : SLICE("");
	parts->of[BODY_HASH] = held ? slice_of(s->hash, SIGV4_HEX) : SLICE(SIGV4_EMPTY);
}

static void set_time(struct parts *parts)
{
	int n = snprintf(parts->time, sizeof(parts->time), "%" PRId64, clock_real_ms());

	parts->of[TIMESTAMP_MS] = slice_of(parts->time, n > 3 ? (size_t)n : 0);
	parts->of[TIMESTAMP] = slice_of(parts->time, n > 3 ? (size_t)n - 3 : 0);
}

static int sign(struct exchange *ex, const struct policy_hmac *hmac, struct parts *parts)
{
	struct slice text[POLICY_TEMPLATE_PIECES_MAX], rest = hmac->sign, literal, name;
	uint8_t raw[HMAC_BYTES];
	size_t count = 0;
	int rc;

	while (count < POLICY_TEMPLATE_PIECES_MAX && policy_template_next(&rest, &literal, &name))
		text[count++] = meaning(parts, literal, name);
	rc = hmac_sha256(
	        &ex->proxy->hmac, secret_slice(&ex->credential->rendered), text, count, raw);
	hmac_hex(raw, sizeof(raw), parts->signature);
	parts->of[SIGNATURE] = slice_of(parts->signature, 2 * sizeof(raw));
	if (hmac->base64) {
		struct buf out = {.mem = (uint8_t *)parts->signature,
		        .cap = sizeof(parts->signature),
		        .max = sizeof(parts->signature)};

		base64_append(&out, slice_of(raw, sizeof(raw)));
		parts->of[SIGNATURE] = buf_slice(&out);
	}
	return rc;
}

static int put_fields(struct outgoing *head, const struct policy_credential *spec,
        const struct parts *parts, struct buf *text)
{
	struct slice rest = spec->prefix, field, template, literal, name;
	int rc = 0;

	while (rc == 0 && head->field_count < OUTGOING_FIELDS_MAX &&
	        policy_field_next(&rest, &field, &template)) {
		size_t from = text->len;

		while (rc == 0 && policy_template_next(&template, &literal, &name))
			rc = buf_append_slice(text, meaning(parts, literal, name));
		head->fields[head->field_count++] = (struct outgoing_field){
		        field, slice_of(text->mem + from, text->len - from)};
	}
	return rc;
}

int signing_hmac(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text)
{
	const struct http_request *r = &ex->request;
	struct parts parts = {.of = {[USERNAME] = spec->username}};
	struct policy_hmac hmac;
	int rc;

	policy_hmac(spec, &hmac);
	rc = put_target(text, r, hmac.query);
	set_request(&parts, ex, buf_slice(text));
	set_time(&parts);
	if (rc == 0)
		rc = sign(ex, &hmac, &parts);
	if (rc == 0 && hmac.query.n) {
		rc = buf_append(text, parts.of[QUERY].n ? "&" : "?", 1);
		if (rc == 0)
			rc = buf_append_slice(text, hmac.query);
		if (rc == 0)
			rc = buf_append(text, "=", 1);
		if (rc == 0)
			rc = sigv4_escape(text, parts.of[SIGNATURE], false);
	}
	head->has_query = text->len > r->path_n;
	if (head->has_query)
		head->query = slice_of(text->mem + r->path_n + 1, text->len - r->path_n - 1);
	if (rc == 0)
		rc = put_fields(head, spec, &parts, text);
	return rc ? rc : signing_begin_body(ex, NULL, NULL, NULL);
}
