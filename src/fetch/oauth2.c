/* SPDX-License-Identifier: Apache-2.0 */
/* OAuth 2.0 client credentials: an access token for the client itself (RFC 6749 section 4.4). The
 * client says who it is by Basic authentication (section 2.3.1), or in the body where the server
 * wants that. */
#include <stdio.h>
#include <string.h>

#include "fetch/services.h"

#define FORM_MAX (4 * FETCH_SECRET_MAX)

static bool is_plain(uint8_t c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '*';
}

/* application/x-www-form-urlencoded (RFC 6749 appendix B). */
static int append_encoded(struct buf *out, struct slice s)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];

		if (is_plain(c))
			rc = buf_append(out, &c, 1);
		else if (c == ' ')
			rc = buf_append(out, "+", 1);
		else
			rc = buf_printf(out, "%%%02X", c);
	}
	return rc;
}

static int add(struct buf *form, const char *name, struct slice value)
{
	int rc = value.n ? buf_printf(form, "%s%s=", form->len ? "&" : "", name) : 0;

	return rc == 0 ? append_encoded(form, value) : rc;
}

static bool make_form(const struct fetch_request *request, bool post, struct buf *form)
{
	static const char *const optional[] = {"scope", "audience", "resource"};
	int rc = add(form, "grant_type", SLICE("client_credentials"));

	for (size_t i = 0; rc == 0 && i < sizeof(optional) / sizeof(optional[0]); i++)
		rc = add(form, optional[i], fetch_argument(request, optional[i]));
	if (rc == 0 && post)
		rc = add(form, "client_id", fetch_argument(request, "client_id"));
	if (rc == 0 && post)
		rc = add(form, "client_secret", request->secret);
	return rc == 0;
}

/* Basic authentication takes both parts encoded as in a form. */
static bool make_login(const struct fetch_request *request, struct buf *user, struct buf *password)
{
	return append_encoded(user, fetch_argument(request, "client_id")) == 0 &&
	       buf_append(user, "", 1) == 0 && append_encoded(password, request->secret) == 0 &&
	       buf_append(password, "", 1) == 0;
}

static void wipe(struct buf *b)
{
	if (b->mem)
		secret_wipe(b->mem, b->cap);
	buf_fini(b);
}

static json_t *ask(
        const struct fetch_request *request, struct https *https, char fault[HTTPS_TEXT_MAX])
{
	static const char *const fields[] = {"Content-Type: application/x-www-form-urlencoded",
	        "Accept: application/json", NULL};
	const bool post = slice_equals(fetch_argument(request, "auth"), SLICE("post"));
	char url[HTTPS_URL_MAX];
	struct buf form, user, password;
	json_t *answer = NULL;

	buf_init(&form, FORM_MAX);
	buf_init(&user, FORM_MAX);
	buf_init(&password, FORM_MAX);
	if (snprintf(url, sizeof(url), "%.*s", SLICE_ARG(request->message.url)) <
	                (int)sizeof(url) &&
	        make_form(request, post, &form) && make_login(request, &user, &password)) {
		const struct https_call call = {.method = "POST",
		        .url = url,
		        .fields = fields,
		        .user = post ? NULL : (const char *)buf_bytes(&user),
		        .password = (const char *)buf_bytes(&password),
		        .body = buf_slice(&form)};

		answer = https_json(https, &call, fault);
	} else {
		snprintf(fault, HTTPS_TEXT_MAX, "what it is to be asked is too long");
	}
	wipe(&form);
	wipe(&user);
	wipe(&password);
	return answer;
}

bool oauth2_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	json_t *answer = ask(request, https, fault);
	bool taken = answer && fetched_take(json_object_get(answer, "access_token"), "access_token",
	                               out, fault);

	if (taken)
		fetched_lives(out, json_object_get(answer, "expires_in"));
	json_decref(answer);
	return taken;
}
