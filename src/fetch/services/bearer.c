/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/services/bearer.h"

#include <stdio.h>

#include "vethguard/base/secret.h"

#define FIELD_MAX (SECRET_MAX + 64)

json_t *bearer_get(const struct fetch_request *request, struct https *https, struct slice token,
        const char *path, char fault[HTTPS_TEXT_MAX])
{
	static char field[FIELD_MAX];
	const char *fields[] = {field, "Accept: application/json", NULL};
	char url[HTTPS_URL_MAX];
	json_t *answer = NULL;

	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (snprintf(field, sizeof(field), "Authorization: Bearer %.*s", SLICE_ARG(token)) <
	                (int)sizeof(field) &&
	        fetch_url(request, path, url, sizeof(url)))
		answer = https_json(https,
		        &(struct https_call){.method = "GET", .url = url, .fields = fields}, fault);
	secret_wipe(field, sizeof(field));
	return answer;
}
