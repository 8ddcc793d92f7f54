/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches the key set (RFC 7517) of a signer of tokens: public keys, as one JSON text. The request
 * carries no secret. If the set of before had an ETag (RFC 9110 section 8.8.3), the server may say
 * that it is still the same.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fetch/services/services.h"

#define ETAG_MAX 256
#define NOT_MODIFIED 304

_Static_assert(ETAG_MAX <= MESSAGE_LEASE_MAX, "an ETag fits into the place of a lease");

/* Keeps the answer's ETag. One that would not be sent back as it came is left out. */
static void keep_etag(const struct https *https, struct fetched *out)
{
	char text[ETAG_MAX];
	const char *at = text;

	out->lease[0] = '\0';
	if (!https_header(https, "ETag", text, sizeof(text)))
		return;
	if (at[0] == 'W' && at[1] == '/')
		at += 2;
	if (*at++ != '"')
		return;
	while (*at > ' ' && *at < 0x7f && *at != '"')
		at++;
	if (at[0] == '"' && !at[1])
		snprintf(out->lease, sizeof(out->lease), "%s", text);
}

bool key_set_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	const struct slice etag = fetch_argument(request, ".etag");
	char condition[ETAG_MAX + 32];
	const char *fields[] = {"Accept: application/jwk-set+json, application/json", NULL, NULL};
	char url[HTTPS_URL_MAX];
	char *text = NULL;
	json_t *answer = NULL;
	bool taken;

	snprintf(condition, sizeof(condition), "If-None-Match: %.*s", SLICE_ARG(etag));
	if (etag.n && etag.n < ETAG_MAX)
		fields[1] = condition;
	snprintf(fault, HTTPS_TEXT_MAX, "its URL is too long");
	if (snprintf(url, sizeof(url), "%.*s", SLICE_ARG(request->message.sites[0].url)) <
	        (int)sizeof(url))
		answer = https_json(https,
		        &(struct https_call){.method = "GET", .url = url, .fields = fields}, fault);
	if (!answer && fields[1] && https_status(https) == NOT_MODIFIED) {
		out->same = true;
		return true;
	}
	if (answer)
		keep_etag(https, out);
	if (answer)
		text = json_dumps(answer, JSON_COMPACT);
	taken = text && buf_append(&out->value, text, strlen(text)) == 0;
	if (answer && !taken)
		snprintf(fault, HTTPS_TEXT_MAX, "its key set is longer than 64 KiB");
	free(text);
	json_decref(answer);
	return taken;
}
