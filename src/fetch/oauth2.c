/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OAuth 2.0 client credentials: an access token for the client itself (RFC 6749 section 4.4). The
 * client says who it is by Basic authentication (section 2.3.1), or in the body where the server
 * wants that. Token exchange (RFC 8693) is the same with another grant: the secret is the token to
 * be exchanged, and the client may have no secret.
 */
#include <stdio.h>

#include "fetch/form.h"

static int add_all(struct buf *form, const struct fetch_request *request, const char *const *names)
{
	int rc = 0;

	for (; rc == 0 && *names; names++)
		rc = form_add(form, *names, fetch_argument(request, *names));
	return rc;
}

static bool make_form(const struct fetch_request *request, bool post, struct buf *form)
{
	static const char *const names[] = {"scope", "audience", "resource", NULL};
	int rc = form_add(form, "grant_type", SLICE("client_credentials"));

	if (rc == 0)
		rc = add_all(form, request, names);
	if (rc == 0 && post)
		rc = form_add(form, "client_id", fetch_argument(request, "client_id"));
	if (rc == 0 && post)
		rc = form_add(form, "client_secret", request->secret);
	return rc == 0;
}

/* Basic authentication takes both parts encoded as in a form. */
static bool make_login(const struct fetch_request *request, struct buf *login)
{
	struct buf pair;
	bool made;

	private_buf_init(&pair, FORM_MAX);
	made = form_encode(&pair, fetch_argument(request, "client_id")) == 0 &&
	       buf_append(&pair, ":", 1) == 0 && form_encode(&pair, request->secret) == 0 &&
	       form_basic(login, buf_slice(&pair)) == 0;
	private_buf_fini(&pair);
	return made;
}

bool oauth2_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	const bool post = slice_equals(fetch_argument(request, "auth"), SLICE("post"));
	struct buf form, login;
	bool taken = false;

	private_buf_init(&form, FORM_MAX);
	private_buf_init(&login, 2 * FORM_MAX);
	snprintf(fault, HTTPS_TEXT_MAX, "what it is to be asked is too long");
	if (make_form(request, post, &form) && make_login(request, &login))
		taken = form_fetch_token(request, https, buf_slice(&form),
		        post ? NULL : (const char *)buf_bytes(&login), out, fault);
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
	snprintf(fault, HTTPS_TEXT_MAX, "what it is to be asked is too long");
	if (form_add(&form, "grant_type",
	            SLICE("urn:ietf:params:oauth:grant-type:token-exchange")) == 0 &&
	        form_add(&form, "subject_token", request->secret) == 0 &&
	        form_add(&form, "subject_token_type", type) == 0 &&
	        add_all(&form, request, names) == 0)
		taken = form_fetch_token(request, https, buf_slice(&form), NULL, out, fault);
	private_buf_fini(&form);
	return taken;
}
