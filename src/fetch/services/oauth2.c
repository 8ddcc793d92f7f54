/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OAuth 2.0: gets an access token for the client itself (RFC 6749 section 4.4), or for a refresh
 * token (section 6). The client authenticates by Basic (section 2.3.1), in the body if the server
 * wants that, or with a token that its key signs (RFC 7523). Token exchange (RFC 8693) is the same
 * with another grant: the secret is the token to be exchanged, and the client may have none of its
 * own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fetch/form.h"
#include "vethguard/base/hash.h"
#include "vethguard/tls/jwt.h"

static int add_all(struct buf *form, const struct fetch_request *request, const char *const *names)
{
	int rc = 0;

	for (; rc == 0 && *names; names++)
		rc = form_add(form, *names, fetch_argument(request, *names));
	return rc;
}

#define ASSERTION_LIFE_S 300
#define ASSERTION_MAX 16384
#define JTI_BYTES 16

/* Returns the claims by which a client proves that it has its key (RFC 7523 section 3), or NULL. */
static char *make_claims(const struct fetch_request *request)
{
	const struct slice id = fetch_argument(request, "client_id");
	const struct slice url = request->message.sites[0].url;
	const json_int_t now = (json_int_t)time(NULL);
	uint8_t random[JTI_BYTES];
	char jti[2 * JTI_BYTES + 1], *text;
	json_t *claims;

	random_bytes(random, sizeof(random));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(jti + 2 * i, 3, "%02x", random[i]);
	claims = json_pack("{s:s%, s:s%, s:s%, s:s, s:I, s:I}", "iss", id.p, id.n, "sub", id.p,
	        id.n, "aud", url.p, url.n, "jti", jti, "iat", now, "exp", now + ASSERTION_LIFE_S);
	text = claims ? json_dumps(claims, JSON_COMPACT) : NULL;
	json_decref(claims);
	return text;
}

static int add_assertion(const struct fetch_request *request, struct slice key, struct buf *form)
{
	char *claims = make_claims(request);
	struct buf assertion;
	int rc = -ENOMEM;

	private_buf_init(&assertion, ASSERTION_MAX);
	if (claims)
		rc = jwt_sign_rs256_as(key, fetch_argument(request, "key_id"),
		        slice_from_string(claims), &assertion);
	if (rc == 0)
		rc = form_add(form, "client_assertion_type",
		        SLICE("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
	if (rc == 0)
		rc = form_add(form, "client_assertion", buf_slice(&assertion));
	private_buf_fini(&assertion);
	free(claims);
	return rc;
}

/* Adds the grant: the client's own credentials, or a refresh token (RFC 6749 section 6). */
static int add_grant(const struct fetch_request *request, struct buf *form)
{
	static const char *const of_client[] = {"scope", "audience", "resource", NULL};
	const struct slice refresh = fetch_secret(request, "refresh_token");
	int rc = form_add(form, "grant_type",
	        refresh.n ? SLICE("refresh_token") : SLICE("client_credentials"));

	if (rc == 0 && refresh.n)
		rc = form_add(form, "refresh_token", refresh);
	return rc == 0 ? add_all(form, request, of_client) : rc;
}

/* Adds the client's authentication: by a key, by its secret in the body, or, for a public client,
 * its name alone. Basic authentication is a header field and not added here. */
static int add_client(const struct fetch_request *request, bool in_body, struct buf *form)
{
	const struct slice key = fetch_secret(request, "private_key");
	const struct slice secret = fetch_secret(request, "client_secret");
	int rc = 0;

	if (in_body)
		rc = form_add(form, "client_id", fetch_argument(request, "client_id"));
	if (rc == 0 && key.n)
		rc = add_assertion(request, key, form);
	else if (rc == 0 && in_body)
		rc = form_add(form, "client_secret", secret);
	return rc;
}

/* Basic authentication takes both parts encoded as in a form. */
static bool make_login(const struct fetch_request *request, struct buf *login)
{
	struct buf pair;
	bool made;

	private_buf_init(&pair, FORM_MAX);
	made = form_encode(&pair, fetch_argument(request, "client_id")) == 0 &&
	       buf_append(&pair, ":", 1) == 0 &&
	       form_encode(&pair, fetch_secret(request, "client_secret")) == 0 &&
	       form_basic(login, buf_slice(&pair)) == 0;
	private_buf_fini(&pair);
	return made;
}

static void explain(int rc, char fault[HTTPS_TEXT_MAX])
{
	snprintf(fault, HTTPS_TEXT_MAX, "%s",
	        rc == -EINVAL ? "private_key is not an RSA key in PEM without a passphrase, or "
	                        "key_id has a character that it may not have"
	        : rc == -EKEYREJECTED ? "private_key is shorter than 2048 bits"
	                              : "the request to it is too long");
}

/* Takes the tokens from the answer. A server that gives a new refresh token soon refuses the
 * previous one (RFC 9700 section 4.14.2), so the new one is stored before the access token is used.
 */
static bool take_tokens(const json_t *answer, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const json_t *next = json_object_get(answer, "refresh_token");

	if (json_is_string(next) && buf_append(&out->next_secret, json_string_value(next),
	                                    json_string_length(next)) != 0) {
		snprintf(fault, HTTPS_TEXT_MAX, "its next refresh token is too long");
		return false;
	}
	if (!fetched_take(json_object_get(answer, "access_token"), "access_token", out, fault))
		return false;
	fetched_lives(out, json_object_get(answer, "expires_in"));
	return true;
}

bool oauth2_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	const bool basic = fetch_secret(request, "client_secret").n &&
	                   !slice_equals(fetch_argument(request, "auth"), SLICE("post"));
	const bool refreshes = fetch_secret(request, "refresh_token").n > 0;
	struct buf form, login;
	json_t *answer = NULL;
	bool taken = false;
	int rc;

	private_buf_init(&form, FORM_MAX);
	private_buf_init(&login, 2 * FORM_MAX);
	rc = add_grant(request, &form);
	if (rc == 0)
		rc = add_client(request, !basic, &form);
	explain(rc, fault);
	if (rc == 0 && (!basic || make_login(request, &login)))
		answer = form_post(request, https, buf_slice(&form),
		        basic ? (const char *)buf_bytes(&login) : NULL, fault);
	if (answer)
		taken = take_tokens(answer, out, fault);
	if (!refreshes)
		private_buf_fini(&out->next_secret); /* the supervisor has no file for it */
	json_decref(answer);
	private_buf_fini(&form);
	private_buf_fini(&login);
	return taken;
}

bool token_exchange_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	static const char *const names[] = {
	        "client_id", "scope", "audience", "resource", "requested_token_type", NULL};
	struct slice type = fetch_argument(request, "subject_token_type");
	struct buf form;
	bool taken = false;

	if (!type.n)
		type = SLICE("urn:ietf:params:oauth:token-type:jwt");
	private_buf_init(&form, FORM_MAX);
	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (form_add(&form, "grant_type",
	            SLICE("urn:ietf:params:oauth:grant-type:token-exchange")) == 0 &&
	        form_add(&form, "subject_token", request->secret) == 0 &&
	        form_add(&form, "subject_token_type", type) == 0 &&
	        add_all(&form, request, names) == 0)
		taken = form_fetch_token(request, https, buf_slice(&form), NULL, out, fault);
	private_buf_fini(&form);
	return taken;
}
