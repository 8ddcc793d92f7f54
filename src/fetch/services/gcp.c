/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Google service account: its key (a JSON file) signs a token for the token endpoint, which
 * answers with an access token (RFC 7523 section 2.1). A machine of Google gets one of its own
 * account from its metadata. Either may stand in for another account (impersonation): IAM gives out
 * a token of that one.
 */
#include <stdio.h>
#include <time.h>

#include "fetch/form.h"
#include "fetch/services/gcp.h"
#include "vethguard/tls/jwt.h"

#define ASSERTION_MAX 16384
#define LIFE_S 3600 /* the longest life that Google accepts */
#define FIELD_MAX (FETCH_SECRET_MAX + 64)

/* Returns the claims of the assertion, or NULL. */
static char *make_claims(struct slice url, struct slice scope, const json_t *key)
{
	const json_int_t now = (json_int_t)time(NULL);
	const char *email = json_string_value(json_object_get(key, "client_email"));
	json_t *claims =
	        email ? json_pack("{s:s, s:s%, s:s%, s:I, s:I}", "iss", email, "scope", scope.p,
	                        scope.n, "aud", url.p, url.n, "iat", now, "exp", now + LIFE_S)
	              : NULL;
	char *text = claims ? json_dumps(claims, JSON_COMPACT) : NULL;

	json_decref(claims);
	return text;
}

static bool make_assertion(struct slice url, struct slice scope, const json_t *key, struct buf *out,
        char fault[HTTPS_TEXT_MAX])
{
	const char *pem = json_string_value(json_object_get(key, "private_key"));
	char *claims = make_claims(url, scope, key);
	int rc = -1;

	if (pem && claims)
		rc = jwt_sign_rs256(slice_from_string(pem), slice_from_string(claims), out);
	free(claims);
	if (rc < 0)
		snprintf(fault, HTTPS_TEXT_MAX,
		        "the file is not the key of a service account: JSON with client_email and "
		        "an RSA private_key of 2048 bits or more");
	return rc == 0;
}

static json_t *ask_by_key(const struct fetch_request *request, struct https *https,
        struct slice url, struct slice scope, char fault[HTTPS_TEXT_MAX])
{
	const struct slice secret = fetch_secret(request, "key");
	json_t *key = json_loadb(secret.p, secret.n, 0, NULL), *answer = NULL;
	struct buf assertion, form;

	private_buf_init(&assertion, ASSERTION_MAX);
	private_buf_init(&form, FORM_MAX);
	if (make_assertion(url, scope, key, &assertion, fault) &&
	        form_add(&form, "grant_type",
	                SLICE("urn:ietf:params:oauth:grant-type:jwt-bearer")) == 0 &&
	        form_add(&form, "assertion", buf_slice(&assertion)) == 0)
		answer = form_post_to(https, url, buf_slice(&form), NULL, fault);
	json_decref(key);
	private_buf_fini(&assertion);
	private_buf_fini(&form);
	return answer;
}

static json_t *ask_the_machine(
        const struct fetch_request *request, struct https *https, char fault[HTTPS_TEXT_MAX])
{
	static const char *const fields[] = {"Metadata-Flavor: Google", NULL};
	char url[HTTPS_URL_MAX];
	json_t *answer = NULL;

	snprintf(fault, HTTPS_TEXT_MAX, "the URL is too long");
	if (fetch_url_at(fetch_argument(request, "metadata_url"),
	            "/computeMetadata/v1/instance/service-accounts/default/token", url,
	            sizeof(url)))
		answer = https_json(https,
		        &(struct https_call){.method = "GET", .url = url, .fields = fields}, fault);
	if (!answer)
		fetched_blame("the machine's metadata", fault);
	return answer;
}

/* Returns the body of a request for a token of another account, or NULL. */
static char *make_body(struct slice scope)
{
	json_t *body = json_pack("{s:[s%], s:s}", "scope", scope.p, scope.n, "lifetime", "3600s");
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	json_decref(body);
	return text;
}

/* Returns the answer of IAM, to the account whose token is `own`. */
static json_t *impersonate(const struct fetch_request *request, struct https *https,
        struct slice own, struct slice scope, char fault[HTTPS_TEXT_MAX])
{
	static char token[FIELD_MAX];
	const struct slice account = fetch_argument(request, "impersonate");
	const char *fields[] = {token, "Content-Type: application/json", NULL};
	char url[HTTPS_URL_MAX], path[HTTPS_URL_MAX], *body = make_body(scope);
	json_t *answer = NULL;

	snprintf(path, sizeof(path), "/v1/projects/-/serviceAccounts/%.*s:generateAccessToken",
	        SLICE_ARG(account));
	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (body &&
	        snprintf(token, sizeof(token), "Authorization: Bearer %.*s", SLICE_ARG(own)) <
	                (int)sizeof(token) &&
	        fetch_url_at(fetch_argument(request, "impersonation_url"), path, url, sizeof(url)))
		answer = https_json(https,
		        &(struct https_call){.method = "POST",
		                .url = url,
		                .fields = fields,
		                .body = slice_from_string(body)},
		        fault);
	secret_wipe(token, sizeof(token));
	free(body);
	if (!answer)
		fetched_blame("the account to impersonate", fault);
	return answer;
}

static bool take_token(
        const json_t *answer, const char *name, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	if (!answer || !fetched_take(json_object_get(answer, name), name, out, fault))
		return false;
	fetched_lives(out, json_object_get(answer, "expires_in"));
	fetched_ends(out, json_string_value(json_object_get(answer, "expireTime")));
	return true;
}

bool gcp_get_token(const struct fetch_request *request, struct https *https, struct slice token_url,
        struct slice scope, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const bool stands_in = fetch_argument(request, "impersonate").n > 0;
	const struct slice first = stands_in ? SLICE(GCP_SCOPE_ALL) : scope;
	json_t *answer = fetch_secret(request, "key").n
	                         ? ask_by_key(request, https, token_url, first, fault)
	                         : ask_the_machine(request, https, fault);
	const char *own = json_string_value(json_object_get(answer, "access_token"));
	json_t *other;
	bool taken;

	if (!stands_in || !own) {
		taken = take_token(answer, "access_token", out, fault);
	} else {
		other = impersonate(request, https, slice_from_string(own), scope, fault);
		taken = take_token(other, "accessToken", out, fault);
		json_decref(other);
	}
	json_decref(answer);
	return taken;
}

bool gcp_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	return gcp_get_token(request, https, request->message.sites[0].url,
	        fetch_argument(request, "scope"), out, fault);
}
