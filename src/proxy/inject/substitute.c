/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts with the value are written into locked memory, one after the other. The request's
 * fields point there only while the head is sent; afterwards they hold the placeholder again, for a
 * second try.
 */
#include "proxy/inject/substitute.h"

#include "proxy/http/basic.h"
#include "vethguard/base/base64.h"
#include "vethguard/sign/sigv4.h"

#define PAIR_MAX 1024 /* bytes of the decoded "user:password" */

/* Finds the credential's placeholder. */
static bool find_own(const struct credential_store *store, uint32_t credential, struct slice text,
        size_t *at, size_t *n)
{
	size_t before = 0;

	while (text.n) {
		uint32_t found = credential_store_find_placeholder(store, text, at, n);

		if (found == POLICY_NONE)
			return false;
		if (found == credential) {
			*at += before;
			return true;
		}
		before += *at + *n;
		text = slice_of(text.p + *at + *n, text.n - *at - *n);
	}
	return false;
}

static bool has_own(const struct credential_store *store, uint32_t credential, struct slice text)
{
	size_t at, n;

	return find_own(store, credential, text, &at, &n);
}

/* The same, also in base64: a sealed JWT has it in its signature. */
static bool has_own_or_sealed(const struct credential_store *store,
        const struct policy_credential *spec, uint32_t credential, struct slice text)
{
	return has_own(store, credential, text) ||
	       (spec->source == POLICY_SOURCE_SEALED &&
	               credential_store_find_encoded_placeholder(store, text) == credential);
}

bool substitute_find(
        const struct substitute *s, struct slice text, size_t *at, size_t *n, struct slice *value)
{
	struct jar_token token;

	if (!s->sealed) {
		*value = s->value;
		return find_own(s->store, s->credential, text, at, n);
	}
	if (!substitute_mentions(s, text) || !jar_find(s->jar, text, at, n, &token))
		return false;
	*value = token.value;
	return true;
}

bool substitute_mentions(const struct substitute *s, struct slice text)
{
	return has_own_or_sealed(s->store, s->spec, s->credential, text);
}

/* True if the field's Basic credentials hold the placeholder. */
static bool has_own_in_basic(const struct credential_store *store,
        const struct policy_credential *spec, uint32_t credential, struct slice value)
{
	char pair[PAIR_MAX];
	ssize_t n = base64_decode(basic_credentials(value), BASE64_LENIENT, pair, sizeof(pair));

	return n > 0 && has_own_or_sealed(store, spec, credential, slice_of(pair, (size_t)n));
}

bool substitute_takes_field(const struct credential_store *store,
        const struct policy_credential *spec, uint32_t credential, const struct http_field *field)
{
	if (policy_replaces_in(spec, SLICE("header")) &&
	        has_own_or_sealed(store, spec, credential, field->value))
		return true;
	return policy_replaces_in(spec, SLICE("basic")) && field->known == HTTP_AUTHORIZATION &&
	       has_own_in_basic(store, spec, credential, field->value);
}

/* Appends text with the value in place of each placeholder of the credential. */
static int put_replaced(
        const struct substitute *s, struct buf *out, struct slice text, bool escaped)
{
	size_t at = 0, n = 0;
	struct slice value;
	int rc = 0;

	while (rc == 0 && substitute_find(s, text, &at, &n, &value)) {
		rc = buf_append(out, text.p, at);
		if (rc == 0)
			rc = escaped ? sigv4_escape(out, value, false)
			             : buf_append_slice(out, value);
		text = slice_of(text.p + at + n, text.n - at - n);
	}
	return rc ? rc : buf_append_slice(out, text);
}

/* Appends the pair with the value in it, and then, from *at on, "Basic " and its base64. */
static int put_basic(const struct substitute *s, struct buf *out, struct slice value, size_t *at)
{
	char pair[PAIR_MAX];
	ssize_t n = base64_decode(basic_credentials(value), BASE64_LENIENT, pair, sizeof(pair));
	size_t from = out->len;
	int rc = n < 0 ? (int)n : put_replaced(s, out, slice_of(pair, (size_t)n), false);

	*at = out->len;
	if (rc == 0)
		rc = buf_append_slice(out, SLICE("Basic "));
	return rc ? rc : base64_append(out, slice_of(out->mem + from, *at - from));
}

static int replace_field(const struct substitute *s, struct http_field *f)
{
	struct buf *text = s->text;
	size_t at = text->len;
	bool plain = f->known != HTTP_AUTHORIZATION || !basic_credentials(f->value).n ||
	             has_own(s->store, s->credential, f->value);
	int rc = plain ? put_replaced(s, text, f->value, false) : put_basic(s, text, f->value, &at);

	if (rc < 0)
		return rc;
	f->value = slice_of(text->mem + at, text->len - at);
	f->secret = true;
	return 0;
}

int substitute_fields(
        const struct substitute *s, struct http_fields *fields, struct substitute_saved *saved)
{
	int rc = 0;

	saved->count = 0;
	for (size_t i = 0; rc == 0 && i < fields->count; i++) {
		struct http_field *f = &fields->items[i];

		if (f->dropped || !substitute_takes_field(s->store, s->spec, s->credential, f))
			continue;
		saved->items[saved->count].field = f;
		saved->items[saved->count++].value = f->value;
		rc = replace_field(s, f);
	}
	return rc;
}

void substitute_restore(struct substitute_saved *saved)
{
	for (size_t i = 0; i < saved->count; i++) {
		saved->items[i].field->value = saved->items[i].value;
		saved->items[i].field->secret = false;
	}
}

int substitute_path(
        const struct substitute *s, const struct http_request *request, struct outgoing *head)
{
	struct slice path = slice_of(request->path, request->path_n);
	size_t from = s->text->len;
	int rc;

	if (!policy_replaces_in(s->spec, SLICE("path")) || !substitute_mentions(s, path))
		return 0;
	rc = put_replaced(s, s->text, path, true);
	head->path = slice_of(s->text->mem + from, s->text->len - from);
	return rc;
}

int substitute_query(const struct substitute *s, struct outgoing *head)
{
	size_t from = s->text->len;
	int rc;

	if (!head->has_query || !policy_replaces_in(s->spec, SLICE("query")) ||
	        !substitute_mentions(s, head->query))
		return 0;
	rc = put_replaced(s, s->text, head->query, true);
	head->query = slice_of(s->text->mem + from, s->text->len - from);
	return rc;
}
