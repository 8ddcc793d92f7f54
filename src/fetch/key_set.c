/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the key set (RFC 7517) of a signer of tokens: public keys, as one JSON text. The request
 * carries no secret. */
#include <stdio.h>
#include <stdlib.h>

#include "fetch/services.h"

bool key_set_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	static const char *const fields[] = {
	        "Accept: application/jwk-set+json, application/json", NULL};
	char url[HTTPS_URL_MAX];
	char *text = NULL;
	json_t *answer = NULL;
	bool taken;

	snprintf(fault, HTTPS_TEXT_MAX, "its URL is too long");
	if (snprintf(url, sizeof(url), "%.*s", SLICE_ARG(request->message.sites[0].url)) <
	        (int)sizeof(url))
		answer = https_json(https,
		        &(struct https_call){.method = "GET", .url = url, .fields = fields}, fault);
	if (answer)
		text = json_dumps(answer, JSON_COMPACT);
	taken = text && buf_append(&out->value, text, strlen(text)) == 0;
	if (answer && !taken)
		snprintf(fault, HTTPS_TEXT_MAX, "its key set is longer than 64 KiB");
	free(text);
	json_decref(answer);
	return taken;
}
