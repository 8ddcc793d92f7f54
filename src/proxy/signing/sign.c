/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs what will be sent, in the form in which the sandbox signed: a field (also for requests
 * without a signature), or parameters of a presigned URL. The canonical request may hold a session
 * token, so it is written into locked memory.
 */
#include <errno.h>

#include "proxy/exchange/exchange.h"
#include "proxy/signing/signature.h"
#include "proxy/signing/signing.h"
#include "vethguard/base/clock.h"

struct parts {
	const struct signature *claim;
	struct sigv4_scope scope;
	const struct aws_keys *keys;
	struct slice payload;
	size_t count;
	struct sigv4_field fields[SIGV4_FIELDS_MAX];
	char authority[HTTP_AUTHORITY_MAX];
};

static struct slice payload_word(const struct exchange *ex, const struct signature *claim)
{
	const struct signing *s = ex->signing;
	bool s3 = sigv4_is_s3(claim->service);

	if (claim->body != SIGNATURE_BODY_OPEN)
		return claim->payload;
	if (s->body == SIGNING_HOLDS)
		return slice_of(s->hash, SIGV4_HEX);
	if (s3 && (claim->form == SIGNATURE_QUERY || exchange_has_body(ex)))
		return SLICE(SIGV4_UNSIGNED);
	return SLICE(SIGV4_EMPTY);
}

/* True for a field that the client may have signed, but that the proxy or a hop behind it may
 * change. */
static bool changes_on_the_way(struct slice name)
{
	static const struct slice names[] = {{"content-length", 14}, {"user-agent", 10},
	        {"accept-encoding", 15}, {"x-forwarded-for", 15}, {"via", 3}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals_ignoring_case(name, names[i]))
			return true;
	return false;
}

static bool is_signed(const struct http_field *f, const struct signature *claim)
{
	struct slice name = f->name;

	if (name.n > 6 && slice_equals_ignoring_case(slice_of(name.p, 6), SLICE("x-amz-")))
		return true;
	if (f->known == HTTP_CONTENT_TYPE || slice_equals_ignoring_case(name, SLICE("content-md5")))
		return true;
	return !changes_on_the_way(name) && signature_covers(claim, name);
}

static int add(struct parts *parts, struct slice name, struct slice value)
{
	if (parts->count == SIGV4_FIELDS_MAX)
		return -ENOBUFS;
	parts->fields[parts->count++] = (struct sigv4_field){name, value};
	return 0;
}

/* Adds an injected field, and signs it too. */
static int inject(struct parts *parts, struct outgoing *head, struct slice name, struct slice value)
{
	head->fields[head->field_count++] = (struct outgoing_field){name, value};
	return add(parts, name, value);
}

/* Chooses the fields to sign, and injects the ones that a signature in a field needs. */
static int choose_fields(struct parts *parts, struct outgoing *head, const struct http_request *r)
{
	struct slice own = SLICE("x-amz-content-sha256");
	bool has_payload = false;
	int rc = add(parts, SLICE("host"), http_authority_text(r, parts->authority));

	for (size_t i = 0; rc == 0 && i < r->fields.count; i++) {
		const struct http_field *f = &r->fields.items[i];

		if (f->dropped || !is_signed(f, parts->claim))
			continue;
		has_payload |= slice_equals_ignoring_case(f->name, own);
		rc = add(parts, f->name, f->value);
	}
	if (rc || parts->claim->form == SIGNATURE_QUERY)
		return rc;
	rc = inject(parts, head, SLICE("x-amz-date"), slice_of(parts->scope.time, SIGV4_TIME));
	if (rc == 0 && parts->keys->token.n)
		rc = inject(parts, head, SLICE("x-amz-security-token"), parts->keys->token);
	if (rc == 0 && !has_payload && sigv4_is_s3(parts->scope.service))
		rc = inject(parts, head, own, parts->payload);
	return rc;
}

/* Appends the request's query without its own signature. */
static int put_query(struct buf *text, const struct http_request *r)
{
	struct slice rest = r->has_query ? r->query : SLICE("");
	size_t from = text->len;
	int rc = 0;

	while (rc == 0 && rest.n) {
		ptrdiff_t end = slice_find_byte(rest, '&');
		size_t n = end < 0 ? rest.n : (size_t)end;
		struct slice pair = slice_of(rest.p, n);

		n += end >= 0;
		rest = slice_of(rest.p + n, rest.n - n);
		if (!pair.n || signature_is_parameter(pair))
			continue;
		if (text->len > from)
			rc = buf_append(text, "&", 1);
		if (rc == 0)
			rc = sigv4_write_query(text, pair);
	}
	return rc;
}

static int put_parameter(struct buf *text, const char *name, struct slice value)
{
	int rc = buf_printf(text, "%s%s=", text->len ? "&" : "", name);

	return rc ? rc : sigv4_escape(text, value, false);
}

/* Appends the parameters of a presigned URL, up to its signature. */
static int put_presigned(struct buf *text, const struct parts *parts)
{
	char scope[SIGV4_SCOPE_MAX], names_text[SIGNATURE_NAMES_MAX];
	struct buf names = {
	        .mem = (uint8_t *)names_text, .cap = sizeof(names_text), .max = sizeof(names_text)};
	int rc = sigv4_names(&names, parts->fields, parts->count);

	if (rc == 0)
		rc = put_parameter(text, "X-Amz-Algorithm", SLICE(SIGV4_ALGORITHM));
	if (rc == 0)
		rc = put_parameter(text, "X-Amz-Credential", parts->keys->id);
	if (rc == 0)
		rc = sigv4_escape(text, SLICE("/"), false);
	if (rc == 0)
		rc = sigv4_escape(text, sigv4_scope_text(&parts->scope, scope), false);
	if (rc == 0)
		rc = put_parameter(text, "X-Amz-Date", slice_of(parts->scope.time, SIGV4_TIME));
	if (rc == 0 && parts->claim->expires.n)
		rc = put_parameter(text, "X-Amz-Expires", parts->claim->expires);
	if (rc == 0)
		rc = put_parameter(text, "X-Amz-SignedHeaders", buf_slice(&names));
	if (rc == 0 && parts->keys->token.n)
		rc = put_parameter(text, "X-Amz-Security-Token", parts->keys->token);
	return rc;
}

/* Signs the head as it will be sent. */
static int compute(struct exchange *ex, const struct parts *parts, struct slice query,
        const uint8_t *key, char out[SIGV4_HEX + 1])
{
	struct proxy *proxy = ex->proxy;
	const struct http_request *r = &ex->request;
	const struct sigv4_request request = {.method = r->method,
	        .path = slice_of(r->path, r->path_n),
	        .query = query,
	        .fields = parts->fields,
	        .field_count = parts->count,
	        .payload = parts->payload,
	        .s3 = sigv4_is_s3(parts->scope.service)};
	struct buf canonical;
	int rc;

	if (!proxy->canonical.p && secret_alloc(&proxy->canonical, SECRET_MAX) < 0)
		return -ENOMEM;
	canonical = (struct buf){.mem = proxy->canonical.p, .cap = SECRET_MAX, .max = SECRET_MAX};
	rc = sigv4_canonical(&canonical, &request);
	if (rc == 0)
		rc = sigv4_sign(&proxy->hmac, key, &parts->scope, buf_slice(&canonical), out);
	secret_wipe(proxy->canonical.p, canonical.len);
	return rc;
}

/* Appends the value of Authorization and injects it. */
static int put_authorization(struct buf *text, const struct parts *parts, struct outgoing *head,
        const char signature[SIGV4_HEX + 1])
{
	size_t names_at = text->len, at;
	int rc = sigv4_names(text, parts->fields, parts->count);
	struct slice names = slice_of(text->mem + names_at, text->len - names_at);

	at = text->len;
	if (rc == 0)
		rc = sigv4_write_authorization(
		        text, parts->keys->id, &parts->scope, names, signature);
	head->fields[head->field_count++] = (struct outgoing_field){
	        SLICE("authorization"), slice_of(text->mem + at, text->len - at)};
	return rc;
}

static void drop_own(struct http_fields *fields)
{
	static const struct slice own[] = {
	        {"authorization", 13}, {"x-amz-date", 10}, {"x-amz-security-token", 20}};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		http_drop(fields, own[i]);
}

/* Returns the login's keys with whose text the sandbox has signed, or NULL. ex->signing owns them,
 * because the head that is sent points to them. */
static struct aws_keys *sealed_keys(struct exchange *ex, const struct signature *claim)
{
	struct slice jar = secret_slice(&ex->credential->jar);
	struct signing *s = ex->signing;
	struct jar_token token;
	const char *fault;
	size_t at, n;

	aws_keys_free(s->keys);
	s->keys = NULL;
	if (jar_find(jar, claim->key, &at, &n, &token) && at == 0 && n == claim->key.n)
		s->keys = aws_keys_new(token.value, &fault);
	return s->keys;
}

int signing_sign(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text)
{
	struct http_request *r = &ex->request;
	struct aws_keys *keys = ex->credential->aws;
	char signature[SIGV4_HEX + 1];
	struct signature claim;
	struct parts parts = {.claim = &claim, .keys = keys};
	const uint8_t *key;
	int rc;

	signature_read(r, &claim);
	if (spec->source == POLICY_SOURCE_SEALED)
		parts.keys = keys = sealed_keys(ex, &claim);
	if (!keys && spec->source == POLICY_SOURCE_SEALED)
		return -ENOKEY;
	if (!keys || signature_check(&claim, spec))
		return -EBADMSG;
	parts.scope.region = claim.region;
	parts.scope.service = claim.service;
	sigv4_time(clock_real_ms() / 1000, parts.scope.time);
	parts.payload = payload_word(ex, &claim);
	key = aws_keys_for(keys, &ex->proxy->hmac, &parts.scope);
	if (!key)
		return -EIO;
	drop_own(&r->fields);
	rc = choose_fields(&parts, head, r);
	if (rc == 0)
		rc = put_query(text, r);
	if (rc == 0 && claim.form == SIGNATURE_QUERY)
		rc = put_presigned(text, &parts);
	head->query = buf_slice(text);
	head->has_query = r->has_query || text->len;
	if (rc == 0)
		rc = compute(ex, &parts, head->query, key, signature);
	if (rc == 0 && claim.form == SIGNATURE_QUERY) {
		rc = put_parameter(text, "X-Amz-Signature", slice_of(signature, SIGV4_HEX));
		head->query = buf_slice(text);
	} else if (rc == 0) {
		rc = put_authorization(text, &parts, head, signature);
	}
	return rc ? rc : signing_begin_body(ex, key, &parts.scope, signature);
}
