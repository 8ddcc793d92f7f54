/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the content is JSON (RFC 6749 section 5.1), held in locked memory. For a
 * credential for sigv4 it is XML of AWS's STS instead (sealing_keys.c). In JSON, the value of each
 * member with the name of a token, at any depth, is replaced by the token's text
 * (credential/jar.h): a new one for a new token, the same for one that is known, since a refreshed
 * login may repeat its refresh token. Then all tokens of the jar are masked in the rest, the head
 * included: an answer may repeat a token, or echo the one that came with the request.
 *
 * Names are compared without regard to case, "_" and "-", because some services write accessToken.
 */
#include "proxy/rewrite/sealing.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"
#include "proxy/http/content.h"
#include "proxy/inject/registry.h"
#include "proxy/redact/charset.h"
#include "vethguard/policy/json.h"

const char sealing_no_memory[] = "no memory to seal the tokens of the upstream's response";
const char sealing_too_large[] =
        "the upstream's response has more than 48 KiB, so its tokens cannot be sealed";
static const char type_text[] =
        "the upstream's response is not uncompressed JSON in UTF-8, so its tokens cannot be sealed";
static const char broken_text[] =
        "the upstream's response is not the JSON that it promises, so its tokens cannot be sealed";
static const char kind_text[] = "a token of the upstream's response is not a string of 6 to 8192 "
                                "visible characters, so it cannot be sealed";
static const char keys_type_text[] =
        "the upstream's response is not uncompressed XML in UTF-8, so its "
        "keys cannot be sealed";
static const char stale_text[] =
        "an operator has rotated or revoked the credential since the request was sent, so the "
        "tokens of the upstream's response are not kept: log in again";
static const char redirect_text[] =
        "the upstream's response is a redirect, in which tokens could not be sealed";

bool sealing_is_wanted(const struct exchange *ex)
{
	return ex->verdict.decision.seals && ex->credential;
}

/* --- the head --- */

/* True if there is one Content-Type, and it is one of these two. */
static bool is_type(const struct http_fields *fields, struct slice one, struct slice other)
{
	const struct slice type = content_type_of(fields);

	return slice_equals_ignoring_case(type, one) || slice_equals_ignoring_case(type, other);
}

/* True if the endpoint answers as AWS's STS does. */
static bool gives_keys(const struct exchange *ex)
{
	struct policy_credential spec;

	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	return spec.inject == POLICY_INJECT_SIGV4;
}

const char *sealing_check_empty(const struct http_response *r)
{
	return r->status / 100 == 3 ? redirect_text : NULL;
}

const char *sealing_begin(struct exchange *ex, const struct http_response *r)
{
	const bool has_keys = gives_keys(ex);
	struct sealing *s;

	if (r->status / 100 == 3)
		return redirect_text;
	if (!(has_keys ? is_type(&r->fields, SLICE("text/xml"), SLICE("application/xml"))
	               : is_type(&r->fields, SLICE("application/json"),
	                         SLICE("application/x-amz-json-1.1"))) ||
	        !charset_is_searchable(&r->fields) ||
	        content_coding_of(&r->fields) != CONTENT_PLAIN ||
	        content_has_coded_messages(&r->fields))
		return has_keys ? keys_type_text : type_text;
	if (r->body == HTTP_BODY_LENGTH && r->content_length > SEALING_ANSWER_MAX)
		return sealing_too_large;
	s = calloc(1, sizeof(*s));
	if (!s)
		return sealing_no_memory;
	ex->sealing = s;
	s->has_keys = has_keys;
	if (!kept_head_init(&s->kept, r) || secret_alloc(&s->body, SECRET_MAX) < 0 ||
	        secret_alloc(&s->out, SECRET_MAX) < 0)
		return sealing_no_memory;
	return NULL;
}

void sealing_free(struct exchange *ex)
{
	struct sealing *s = ex->sealing;

	if (!s)
		return;
	kept_head_fini(&s->kept);
	secret_free(&s->body);
	secret_free(&s->out);
	secret_free(&s->jar);
	free(s);
	ex->sealing = NULL;
}

/* --- the content --- */

void sealing_take(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct sealing *s = ex->sealing;

	if (ex->redacting.undecodable) /* further pieces of the same read */
		return;
	if (n > SEALING_ANSWER_MAX - s->body.n) {
		exchange_mark_undecodable(ex, sealing_too_large);
		return;
	}
	memcpy(s->body.p + s->body.n, p, n);
	s->body.n += n;
}

/* "token" is a name for an access token only at the token service of a registry. */
static bool is_token_name(struct slice name, bool registry)
{
	static const struct slice names[] = {
	        {"accesstoken", 11}, {"refreshtoken", 12}, {"idtoken", 7}, {"token", 5}};
	const size_t count = sizeof(names) / sizeof(*names) - !registry;
	char plain[64];
	size_t n = 0;

	if (name.n > sizeof(plain))
		return false; /* longer than any of these names */
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] != '_' && name.p[i] != '-')
			plain[n++] = name.p[i];
	for (size_t i = 0; i < count; i++)
		if (slice_equals_ignoring_case(slice_of(plain, n), names[i]))
			return true;
	return false;
}

const char *sealing_keep_token(
        struct exchange *ex, struct slice value, struct jar_token *token, char end[JAR_END_MAX])
{
	struct credential_store *store = ex->proxy->config.credentials;
	uint32_t credential = ex->verdict.decision.credential;
	struct slice placeholder = credential_store_placeholder(store, credential);
	struct sealing *s = ex->sealing;
	int rc;

	if (!jar_can_hold(value))
		return kind_text;
	if (!placeholder.n)
		return sealing_no_memory;
	if (!jar_has(secret_slice(&s->jar), value, token)) {
		jar_seal(token, value, placeholder, end);
	} else {
		memcpy(end, token->end.p, token->end.n);
		token->end.p = end; /* the jar's bytes move */
		token->value = value;
	}
	rc = jar_add(&s->jar, token);
	if (rc == 0)
		rc = credential_store_seal(store, credential, ex->credential, token);
	if (rc)
		return rc == -ESTALE ? stale_text : sealing_no_memory;
	s->count++;
	return NULL;
}

/* Keeps the token, and appends its text to what is sent. Returns NULL, or why not. */
static const char *seal_token(struct exchange *ex, struct slice value)
{
	struct jar_token token;
	char end[JAR_END_MAX];
	const char *why = sealing_keep_token(ex, value, &token, end);

	return !why && jar_write_text(&ex->sealing->sent, &token) < 0 ? sealing_no_memory : why;
}

/* Writes the answer, given as tree, with texts in place of its tokens. */
static const char *rewrite(struct exchange *ex, const struct json_tree *tree)
{
	struct sealing *s = ex->sealing;
	const char *done = tree->text.p, *end = done + tree->text.n, *why = NULL;
	const bool registry = registry_is_on(ex);

	for (uint32_t i = 0; !why && i < tree->count; i++) {
		const struct json_value *key = json_at(tree, i), *v = key + 1;
		struct slice written, token;

		if (key->kind != JSON_IS_KEY || v->kind == JSON_IS_NULL ||
		        !is_token_name(json_text(tree, key), registry))
			continue;
		if (v->kind != JSON_IS_STRING)
			return kind_text;
		written = json_written(tree, v);
		token = json_text(tree, v);
		if (buf_append(&s->sent, done, (size_t)(written.p - done)) < 0)
			return sealing_too_large;
		if (token.n)
			why = seal_token(ex, token);
		done = written.p + written.n;
	}
	if (!why && buf_append(&s->sent, done, (size_t)(end - done)) < 0)
		why = sealing_too_large;
	return why;
}

/* Reads the answer, in locked memory like its bytes, and writes it anew. */
static const char *read_answer(struct exchange *ex)
{
	struct slice body = secret_slice(&ex->sealing->body);
	const char *why = sealing_no_memory;
	struct secret decoded;
	struct json_tree tree;
	int rc;

	if (secret_alloc(&decoded, body.n) < 0)
		return sealing_no_memory;
	rc = json_read_into(&tree, body, (char *)decoded.p);
	if (rc == 0)
		why = rewrite(ex, &tree);
	else if (rc == -EBADMSG)
		why = broken_text;
	json_fini(&tree);
	secret_free(&decoded);
	return why;
}

void sealing_mask(struct sealing *s, const struct mask *mask)
{
	mask_in_place(mask, s->out.p, s->sent.len);
	mask_in_place(mask, buf_bytes(&s->kept.text), s->kept.text.len);
}

/* Masks the jar's tokens in the rest of the answer. */
static const char *mask_rest(struct sealing *s)
{
	struct slice secrets[JAR_TOKENS_MAX];
	size_t n = jar_secrets(secret_slice(&s->jar), secrets);
	struct mask *mask = n ? mask_new(secrets, n) : NULL;

	if (!n)
		return NULL;
	if (!mask)
		return sealing_no_memory;
	sealing_mask(s, mask);
	mask_free(mask);
	return NULL;
}

/* Returns the tokens that the store holds now: another exchange may have added some. */
static const struct secret *held_jar(const struct exchange *ex)
{
	const struct credential_value *v = credential_store_held(
	        ex->proxy->config.credentials, ex->verdict.decision.credential);

	return v ? &v->jar : &ex->credential->jar;
}

static void send_sealed(struct exchange *ex)
{
	struct sealing *s = ex->sealing;
	struct http_fields *fields = &s->kept.head.fields;

	http_drop_hop_by_hop(fields);
	for (size_t i = 0; i < fields->count; i++)
		if (content_is_digest(fields->items[i].name) ||
		        http_names_alike(fields->items[i].name, SLICE("etag")))
			fields->items[i].dropped = true;
	s->kept.head.body = HTTP_BODY_LENGTH;
	s->kept.head.content_length = s->sent.len;
	ex->responding.framing = HTTP_BODY_LENGTH;
	ex->status = s->kept.head.status;
	ex->responding.counted = true;
	ex->responding.length = s->sent.len;
	if (s->count)
		ex->detail = "tokens in the response were replaced by placeholders";
	responding_enter(ex, RESPONDING_BEGUN);
	ex->ops->response_head(ex, &s->kept.head, SLICE(""));
	exchange_send_body(ex, s->out.p, s->sent.len);
}

const char *sealing_end(struct exchange *ex)
{
	struct sealing *s = ex->sealing;
	const struct secret *held = held_jar(ex);
	const char *why = NULL;

	if (ex->redacting.undecodable)
		return ex->redacting.undecodable;
	s->sent = (struct buf){.mem = s->out.p, .cap = SECRET_MAX, .max = SECRET_MAX};
	if (held->n && secret_copy(&s->jar, held->p, held->n) < 0)
		return sealing_no_memory;
	if (s->body.n)
		why = s->has_keys ? sealing_read_keys(ex) : read_answer(ex);
	if (!why && !s->has_keys)
		why = mask_rest(s);
	if (!why && registry_is_on(ex)) /* the login that was sent */
		sealing_mask(s, ex->credential->mask);
	if (!why)
		send_sealed(ex);
	return why;
}
