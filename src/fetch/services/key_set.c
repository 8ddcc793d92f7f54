/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches what is public: the key set (RFC 7517) of a signer of tokens, as one JSON text, and
 * signed bundles, as bytes. The request carries no secret. If the last answer had an ETag (RFC 9110
 * section 8.8.3), the server may say that nothing has changed.
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

/* A request, on the condition that the answer has changed if there is an ETag. */
struct asking {
	const char *fields[3];
	char url[HTTPS_URL_MAX];
	char condition[ETAG_MAX + 32];
};

static bool prepare(const struct fetch_request *request, const char *accept, struct asking *a,
        char fault[HTTPS_TEXT_MAX])
{
	const struct slice etag = fetch_argument(request, ".etag");

	a->fields[0] = accept;
	a->fields[1] = a->fields[2] = NULL;
	snprintf(a->condition, sizeof(a->condition), "If-None-Match: %.*s", SLICE_ARG(etag));
	if (etag.n && etag.n < ETAG_MAX)
		a->fields[1] = a->condition;
	snprintf(fault, HTTPS_TEXT_MAX, "its URL is too long");
	return snprintf(a->url, sizeof(a->url), "%.*s", SLICE_ARG(request->message.sites[0].url)) <
	       (int)sizeof(a->url);
}

/* Sets and returns out->same: true if the server says that what has the request's ETag has not
 * changed. */
static bool is_same(const struct asking *a, const struct https *https, struct fetched *out)
{
	out->same = a->fields[1] && https_status(https) == NOT_MODIFIED;
	return out->same;
}

bool key_set_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	struct asking a;
	char *text = NULL;
	json_t *answer = NULL;
	bool taken;

	if (prepare(request, "Accept: application/jwk-set+json, application/json", &a, fault))
		answer = https_json(https,
		        &(struct https_call){.method = "GET", .url = a.url, .fields = a.fields},
		        fault);
	if (!answer)
		return is_same(&a, https, out);
	keep_etag(https, out);
	text = json_dumps(answer, JSON_COMPACT);
	taken = text && buf_append(&out->value, text, strlen(text)) == 0;
	if (!taken)
		snprintf(fault, HTTPS_TEXT_MAX, "its key set is longer than 64 KiB");
	free(text);
	json_decref(answer);
	return taken;
}

bool bundle_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	struct asking a;
	struct slice bytes;

	if (!prepare(request, "Accept: application/octet-stream, */*", &a, fault))
		return false;
	if (!https_text(https,
	            &(struct https_call){.method = "GET", .url = a.url, .fields = a.fields}, &bytes,
	            fault))
		return is_same(&a, https, out);
	keep_etag(https, out);
	if (buf_append_slice(&out->value, bytes) == 0)
		return true;
	snprintf(fault, HTTPS_TEXT_MAX, "there is no memory for its answer");
	return false;
}
