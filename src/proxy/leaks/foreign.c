/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields and query parameters in which services take a key. The lists hold what the documentation
 * of public APIs names; a service that takes keys elsewhere is not known here, and a body is not
 * read.
 */
#include "proxy/leaks/foreign.h"
#include "proxy/signing/signature.h"
#include "vethguard/credential/inject.h"

#define NAME(literal)                        \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct slice key_fields[] = {NAME("authorization"), NAME("private-token"),
        NAME("job-token"), NAME("deploy-token"), NAME("x-github-token"), NAME("x-token"),
        NAME("x-auth-key"), NAME("x-amz-security-token"), NAME("x-vault-token"),
        NAME("x-figma-token"), NAME("dd-application-key"), NAME("circle-token"),
        NAME("x-contentful-token"), NAME("x-goog-iam-authorization-token"), NAME("x-session-token"),
        NAME("x-jfrog-art-api"), NAME("x-postmark-server-token"), NAME("fastly-key"),
        NAME("x-honeycomb-team")};

/* Any field whose name ends so: "x-api-key", "xi-api-key", "x-shopify-access-token". */
static const struct slice key_endings[] = {NAME("api-key"), NAME("apikey"), NAME("api-token"),
        NAME("access-token"), NAME("access-key"), NAME("auth-token"), NAME("secret-key"),
        NAME("client-secret"), NAME("subscription-key"), NAME("subscription-token"),
        NAME("x-authorization")};

static const struct slice key_parameters[] = {NAME("access_token"), NAME("api_key"), NAME("apikey"),
        NAME("x_api_key"), NAME("api_token"), NAME("key"), NAME("token"), NAME("auth_token"),
        NAME("authtoken"), NAME("auth"), NAME("authorization"), NAME("oauth_token"),
        NAME("private_token"), NAME("job_token"), NAME("personal_access_token"),
        NAME("client_secret"), NAME("id_token"), NAME("access_key"), NAME("accesskey"),
        NAME("subscription_key"), NAME("sig"), NAME("signature"), NAME("awsaccesskeyid"),
        NAME("x-amz-credential"), NAME("x-amz-signature"), NAME("x-amz-security-token"),
        NAME("x-goog-credential"), NAME("x-goog-signature"), NAME("googleaccessid")};

/* Browsers can send no field with a WebSocket but this one, so services take keys there:
 * "openai-insecure-api-key.KEY", "base64url.bearer.authorization.k8s.io.TOKEN", "token, TOKEN". */
static const struct slice key_words[] = {NAME("api-key"), NAME("apikey"), NAME("bearer"),
        NAME("token"), NAME("authorization"), NAME("jwt"), NAME("secret")};

static bool ends_alike(struct slice name, struct slice ending)
{
	return name.n >= ending.n &&
	       http_names_alike(slice_of(name.p + name.n - ending.n, ending.n), ending);
}

bool foreign_is_key_field(struct slice name)
{
	for (size_t i = 0; i < sizeof(key_fields) / sizeof(*key_fields); i++)
		if (http_names_alike(name, key_fields[i]))
			return true;
	for (size_t i = 0; i < sizeof(key_endings) / sizeof(*key_endings); i++)
		if (ends_alike(name, key_endings[i]))
			return true;
	return false;
}

static bool has_word(struct slice text, struct slice word)
{
	for (size_t at = 0; at + word.n <= text.n; at++)
		if (http_names_alike(slice_of(text.p + at, word.n), word))
			return true;
	return false;
}

static bool is_key_protocol(struct slice protocol)
{
	for (size_t i = 0; i < sizeof(key_words) / sizeof(*key_words); i++)
		if (has_word(protocol, key_words[i]))
			return true;
	return false;
}

uint32_t foreign_whose(const struct credential_store *store, struct slice text)
{
	size_t at, n;
	uint32_t credential = credential_store_find_placeholder(store, text, &at, &n);

	return credential != POLICY_NONE ? credential
	                                 : credential_store_find_encoded_placeholder(store, text);
}

static bool is_own(const struct credential_store *store, struct slice text, uint32_t credential)
{
	return credential != POLICY_NONE && foreign_whose(store, text) == credential;
}

/* Each of the list by itself: it is sent on as it is, so one with the placeholder excuses no other.
 */
static bool protocols_are_foreign(
        const struct credential_store *store, struct slice list, uint32_t credential)
{
	while (list.n) {
		ptrdiff_t comma = slice_find_byte(list, ',');
		size_t n = comma < 0 ? list.n : (size_t)comma;
		struct slice protocol = slice_of(list.p, n);

		if (is_key_protocol(protocol) && !is_own(store, protocol, credential))
			return true;
		n += comma >= 0;
		list = slice_of(list.p + n, list.n - n);
	}
	return false;
}

/* The credential takes the place of a key field with its placeholder. */
static bool field_is_foreign(
        const struct credential_store *store, const struct http_field *f, uint32_t credential)
{
	if (http_names_alike(f->name, SLICE("sec-websocket-protocol")))
		return protocols_are_foreign(store, f->value, credential);
	return foreign_is_key_field(f->name) && !is_own(store, f->value, credential);
}

/* injected: the parameter of the policy's credential, or empty. */
static bool is_key_parameter(struct slice pair, struct slice injected)
{
	if (injected.n && url_parameter_resembles(pair, injected))
		return true;
	for (size_t i = 0; i < sizeof(key_parameters) / sizeof(*key_parameters); i++)
		if (url_parameter_resembles(pair, key_parameters[i]))
			return true;
	return false;
}

static struct slice injected_parameter(const struct policy_credential *spec)
{
	struct policy_hmac hmac;

	if (spec->inject == POLICY_INJECT_QUERY)
		return spec->field;
	if (spec->inject != POLICY_INJECT_HMAC)
		return SLICE("");
	policy_hmac(spec, &hmac);
	return hmac.query;
}

static bool query_is_foreign(const struct http_request *r, const struct policy_credential *spec,
        uint32_t credential, const struct credential_store *store)
{
	const struct slice injected = injected_parameter(spec);
	struct slice rest = r->has_query ? r->query : SLICE(""), pair;

	while (url_parameter_next(&rest, &pair)) {
		ptrdiff_t equals = slice_find_byte(pair, '=');
		bool empty = equals < 0 || (size_t)equals + 1 == pair.n;

		if (injected.n && url_parameter_is(pair, injected))
			continue; /* it is replaced */
		if (spec->inject == POLICY_INJECT_SIGV4 && signature_is_parameter(pair))
			continue; /* a signature is replaced, too */
		if (!empty && is_key_parameter(pair, injected) && !is_own(store, pair, credential))
			return true;
	}
	return false;
}

bool foreign_is_replaced(struct slice name, const struct policy_credential *spec)
{
	struct slice field, none = SLICE(""), value;
	struct inject_rest rest = {0};

	while (inject_field_next(spec, &rest, &field, &none, &value))
		if (http_names_alike(name, field))
			return true;
	return false;
}

const char *foreign_find(const struct http_request *request, const struct policy_credential *spec,
        uint32_t credential, const struct credential_store *store)
{
	bool is_signed = spec->inject == POLICY_INJECT_SIGV4;

	for (size_t i = 0; i < request->fields.count; i++) {
		const struct http_field *f = &request->fields.items[i];

		if (f->value.n == 0 || foreign_is_replaced(f->name, spec))
			continue; /* it is replaced */
		if (is_signed && http_names_alike(f->name, SLICE("x-amz-security-token")))
			continue;
		if (field_is_foreign(store, f, credential))
			return "the request brings a credential of its own in a header field; the "
			       "policy allows it only with the policy's credential";
	}
	return query_is_foreign(request, spec, credential, store)
	               ? "the request brings a credential of its own in the URL; the policy allows "
	                 "it only with the policy's credential"
	               : NULL;
}
