/* SPDX-License-Identifier: Apache-2.0 */
/* A Google service account: its key (a JSON file) signs a token for the token endpoint, which
 * answers with an access token (RFC 7523 section 2.1). */
#include <stdio.h>
#include <time.h>

#include "fetch/form.h"
#include "vethguard/tls/jwt.h"

#define ASSERTION_MAX 16384
#define LIFE_S 3600 /* the longest life that Google accepts */

/* Returns the claims of the assertion, or NULL. */
static char *make_claims(const struct fetch_request *request, const json_t *key)
{
	const struct slice scope = fetch_argument(request, "scope");
	const struct slice url = request->message.url;
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

static bool make_assertion(const struct fetch_request *request, const json_t *key, struct buf *out,
        char fault[HTTPS_TEXT_MAX])
{
	const char *pem = json_string_value(json_object_get(key, "private_key"));
	char *claims = make_claims(request, key);
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

bool gcp_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	json_t *key = json_loadb(request->secret.p, request->secret.n, 0, NULL);
	struct buf assertion, form;
	bool taken = false;

	private_buf_init(&assertion, ASSERTION_MAX);
	private_buf_init(&form, FORM_MAX);
	if (make_assertion(request, key, &assertion, fault) &&
	        form_add(&form, "grant_type",
	                SLICE("urn:ietf:params:oauth:grant-type:jwt-bearer")) == 0 &&
	        form_add(&form, "assertion", buf_slice(&assertion)) == 0)
		taken = form_fetch_token(request, https, buf_slice(&form), NULL, out, fault);
	json_decref(key);
	private_buf_fini(&assertion);
	private_buf_fini(&form);
	return taken;
}
