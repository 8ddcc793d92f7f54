/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields and query parameters in which services take a key. The lists hold what the documentation
 * of public APIs names; a service that takes keys elsewhere is not known here, and a body is not
 * read.
 */
#include "proxy/exchange/foreign.h"
#include "vethguard/credential/inject.h"

#define NAME(literal)                        \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct slice key_fields[] = {NAME("authorization"), NAME("x-api-key"), NAME("api-key"),
        NAME("apikey"), NAME("x-goog-api-key"), NAME("private-token"), NAME("x-auth-token"),
        NAME("job-token"), NAME("deploy-token"), NAME("x-github-token"), NAME("x-access-token"),
        NAME("x-token"), NAME("x-auth-key"), NAME("x-api-token"), NAME("x-amz-security-token"),
        NAME("x-vault-token"), NAME("x-figma-token"), NAME("x-shopify-access-token"),
        NAME("x-subscription-token"), NAME("ocp-apim-subscription-key"), NAME("dd-api-key"),
        NAME("dd-application-key"), NAME("circle-token"), NAME("x-contentful-token"),
        NAME("x-goog-iam-authorization-token"), NAME("x-session-token"), NAME("x-client-secret")};

static const struct slice key_parameters[] = {NAME("access_token"), NAME("api_key"), NAME("apikey"),
        NAME("api-key"), NAME("key"), NAME("token"), NAME("auth_token"), NAME("auth"),
        NAME("private_token"), NAME("job_token"), NAME("personal_access_token"),
        NAME("client_secret"), NAME("id_token"), NAME("sig"), NAME("signature"),
        NAME("awsaccesskeyid"), NAME("x-amz-credential"), NAME("x-amz-signature"),
        NAME("x-amz-security-token"), NAME("x-goog-credential"), NAME("x-goog-signature"),
        NAME("googleaccessid")};

bool foreign_is_key_field(struct slice name)
{
	for (size_t i = 0; i < sizeof(key_fields) / sizeof(*key_fields); i++)
		if (http_names_alike(name, key_fields[i]))
			return true;
	return false;
}

static bool is_own(const struct credential_store *store, struct slice value, uint32_t credential)
{
	size_t at, n;

	return credential_store_find_placeholder(store, value, &at, &n) == credential ||
	       credential_store_find_encoded_placeholder(store, value) == credential;
}

/* Reads "name=value" of a query as a server does: the name decoded, in any case. */
static bool is_key_parameter(struct slice pair)
{
	for (size_t i = 0; i < sizeof(key_parameters) / sizeof(*key_parameters); i++)
		if (http_parameter_is(pair, key_parameters[i], true))
			return true;
	return false;
}

static bool query_is_foreign(const struct http_request *r, const struct policy_credential *spec,
        uint32_t credential, const struct credential_store *store)
{
	struct slice rest = r->has_query ? r->query : SLICE(""), pair;

	while (http_parameter_next(&rest, &pair)) {
		ptrdiff_t equals = slice_find_byte(pair, '=');
		bool empty = equals < 0 || (size_t)equals + 1 == pair.n;

		if (spec->inject == POLICY_INJECT_QUERY &&
		        http_parameter_is(pair, spec->field, false))
			continue; /* it is replaced */
		if (!empty && is_key_parameter(pair) && !is_own(store, pair, credential))
			return true;
	}
	return false;
}

const char *foreign_find(const struct http_request *request, const struct policy_credential *spec,
        uint32_t credential, const struct credential_store *store)
{
	const struct slice injected = inject_field(spec);

	for (size_t i = 0; i < request->fields.count; i++) {
		const struct http_field *f = &request->fields.items[i];

		if (f->value.n == 0 || (injected.n && http_names_alike(f->name, injected)))
			continue; /* it is replaced */
		if (foreign_is_key_field(f->name) && !is_own(store, f->value, credential))
			return "the request brings a credential of its own in a header field, and "
			       "the policy's credential takes no other beside it";
	}
	return query_is_foreign(request, spec, credential, store)
	               ? "the request brings a credential of its own in the URL, and the policy's "
	                 "credential takes no other beside it"
	               : NULL;
}
