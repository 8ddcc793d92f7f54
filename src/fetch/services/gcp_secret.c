/* SPDX-License-Identifier: Apache-2.0 */
/* Google's Secret Manager: a login by gcp.c, then one version of one secret. */
#include <stdio.h>

#include "fetch/services/bearer.h"
#include "fetch/services/gcp.h"
#include "vethguard/base/base64.h"

static json_t *read_version(const struct fetch_request *request, struct https *https,
        struct slice token, char fault[HTTPS_TEXT_MAX])
{
	const struct slice project = fetch_argument(request, "project");
	const struct slice secret = fetch_argument(request, "secret");
	struct slice version = fetch_argument(request, "version");
	char path[HTTPS_URL_MAX];

	if (!version.n)
		version = SLICE("latest");
	snprintf(path, sizeof(path), "/v1/projects/%.*s/secrets/%.*s/versions/%.*s:access",
	        SLICE_ARG(project), SLICE_ARG(secret), SLICE_ARG(version));
	return bearer_get(request, https, token, path, fault);
}

/* The secret is in base64: payload.data. */
static bool take_payload(const struct fetch_request *request, const json_t *answer,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const json_t *data = json_object_get(json_object_get(answer, "payload"), "data");
	const struct slice text = slice_of(
	        json_string_value(data), json_string_value(data) ? json_string_length(data) : 0);
	struct buf secret;
	void *room;
	ssize_t n = -1;
	bool taken = false;

	private_buf_init(&secret, HTTPS_ANSWER_MAX);
	room = text.n ? buf_reserve(&secret, text.n) : NULL;
	if (room)
		n = base64_decode(text, BASE64_EITHER, room, text.n);
	if (n >= 0)
		taken = fetched_take_secret(request, slice_of(room, (size_t)n), out, fault);
	else
		snprintf(fault, HTTPS_TEXT_MAX, "its answer has no payload.data in base64");
	private_buf_fini(&secret);
	return taken;
}

bool gcp_secret_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	struct fetched login = {0};
	json_t *answer = NULL;
	bool taken = false;

	private_buf_init(&login.value, SECRET_MAX);
	if (gcp_get_token(request, https, fetch_argument(request, "token_url"),
	            SLICE(GCP_SCOPE_ALL), &login, fault))
		answer = read_version(request, https, buf_slice(&login.value), fault);
	if (answer)
		taken = take_payload(request, answer, out, fault);
	json_decref(answer);
	private_buf_fini(&login.value);
	return taken;
}
