/* SPDX-License-Identifier: Apache-2.0 */
/* Forms for token endpoints; see fetch/form.h. */
#include <stdio.h>

#include "fetch/form.h"
#include "vethguard/base/base64.h"

static bool is_plain(uint8_t c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '*';
}

int form_encode(struct buf *out, struct slice s)
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

int form_add(struct buf *form, const char *name, struct slice value)
{
	int rc = value.n ? buf_printf(form, "%s%s=", form->len ? "&" : "", name) : 0;

	return rc == 0 ? form_encode(form, value) : rc;
}

int form_basic(struct buf *out, struct slice login)
{
	int rc = buf_append_slice(out, SLICE("Authorization: Basic "));

	if (rc == 0)
		rc = base64_append(out, login);
	return rc == 0 ? buf_append(out, "", 1) : rc;
}

json_t *form_post_to(struct https *https, struct slice to, struct slice form, const char *login,
        char fault[HTTPS_TEXT_MAX])
{
	const char *const fields[] = {"Content-Type: application/x-www-form-urlencoded",
	        "Accept: application/json", login, NULL};
	char url[HTTPS_URL_MAX];

	if (!fetch_url_at(to, "", url, sizeof(url))) {
		snprintf(fault, HTTPS_TEXT_MAX, "the URL is too long");
		return NULL;
	}
	return https_json(https,
	        &(struct https_call){.method = "POST", .url = url, .fields = fields, .body = form},
	        fault);
}

json_t *form_post(const struct fetch_request *request, struct https *https, struct slice form,
        const char *login, char fault[HTTPS_TEXT_MAX])
{
	return form_post_to(https, request->message.sites[0].url, form, login, fault);
}

bool form_fetch_token(const struct fetch_request *request, struct https *https, struct slice form,
        const char *login, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	json_t *answer = form_post(request, https, form, login, fault);
	bool taken = answer && fetched_take(json_object_get(answer, "access_token"), "access_token",
	                               out, fault);

	if (taken)
		fetched_lives(out, json_object_get(answer, "expires_in"));
	json_decref(answer);
	return taken;
}
