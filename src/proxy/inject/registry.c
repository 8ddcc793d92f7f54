/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the client inside asks the token service by itself, without a login or with
 * a worthless one. The policy judges the scope of that request. vethguard puts the login into it,
 * and gives the client a text in place of the token (sealing.c). The client shows the text to the
 * registry, and vethguard sends the token in its place. A text whose token is unknown or forgotten
 * is not sent: the registry answers with its challenge again, and the client asks for a new token.
 */
#include "proxy/inject/registry.h"

#include "proxy/exchange/exchange.h"
#include "vethguard/policy/registry.h"
#include "vethguard/wire/challenge.h"

static void spec_of(const struct exchange *ex, struct policy_credential *spec)
{
	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, spec);
}

bool registry_is_on(const struct exchange *ex)
{
	struct policy_credential spec;

	if (!ex->credential)
		return false;
	spec_of(ex, &spec);
	return spec.inject == POLICY_INJECT_DOCKER_REGISTRY;
}

/* Returns the token for "Bearer TEXT" in the request's Authorization; empty: there is none. Fields
 * that were dropped count too, as this one is. */
static struct slice find_token(const struct exchange *ex)
{
	const struct http_fields *fields = &ex->request.fields;
	struct slice scheme = SLICE("bearer "), found = SLICE("");
	struct jar_token token;
	size_t at, n;

	for (size_t i = 0; i < fields->count; i++) {
		struct slice value = fields->items[i].value, text;

		if (fields->items[i].known != HTTP_AUTHORIZATION)
			continue;
		if (found.n || value.n <= scheme.n ||
		        !slice_equals_ignoring_case(slice_of(value.p, scheme.n), scheme))
			return SLICE("");
		text = slice_trim(slice_of(value.p + scheme.n, value.n - scheme.n));
		if (!jar_find(secret_slice(&ex->credential->jar), text, &at, &n, &token) ||
		        at != 0 || n != text.n)
			return SLICE("");
		found = token.value;
	}
	return found;
}

int registry_fill_head(struct exchange *ex, struct outgoing *head, struct buf *text)
{
	struct slice token;
	int rc;

	http_drop(&ex->request.fields, SLICE("authorization"));
	if (ex->verdict.decision.seals) {
		head->fields[head->field_count++] = (struct outgoing_field){
		        SLICE("authorization"), secret_slice(&ex->credential->rendered)};
		return 0;
	}
	token = find_token(ex);
	if (!token.n)
		return 0;
	rc = buf_append_slice(text, SLICE("Bearer "));
	if (rc == 0)
		rc = buf_append_slice(text, token);
	head->fields[head->field_count++] =
	        (struct outgoing_field){SLICE("authorization"), buf_slice(text)};
	return rc;
}

/* --- the challenge --- */

/* Compares every challenge of one field with the policy's realm. */
static const char *check_field(const struct policy_registry *registry, struct slice value)
{
	struct challenge challenge;
	int rc;

	while ((rc = challenge_next(&value, &challenge)) > 0)
		if (slice_equals_ignoring_case(challenge.scheme, SLICE("bearer")) &&
		        !policy_is_realm(registry, challenge.realm))
			return "the registry's challenge sends clients to another token service "
			       "than the credential's realm";
	return rc == 0 ? NULL : "the registry's challenge (WWW-Authenticate) cannot be read";
}

const char *registry_check_challenge(const struct exchange *ex, const struct http_response *r)
{
	struct policy_credential spec;
	struct policy_registry registry;
	const char *why = NULL;

	if (ex->verdict.decision.seals) /* the token service's own answer */
		return NULL;
	spec_of(ex, &spec);
	policy_registry(&spec, &registry);
	for (size_t i = 0; !why && i < r->fields.count; i++)
		if (http_names_alike(r->fields.items[i].name, SLICE("www-authenticate")))
			why = check_field(&registry, r->fields.items[i].value);
	return why;
}
