/* SPDX-License-Identifier: Apache-2.0 */
/* 1Password Connect: one field of an item of a vault. */
#include <stdio.h>
#include <string.h>

#include "fetch/services.h"

#define FIELD_MAX (FETCH_SECRET_MAX + 64)
#define LABEL_MAX 256

/* The value of the field with that label or id. */
static const json_t *find_field(const json_t *item, const char *label)
{
	const json_t *fields = json_object_get(item, "fields"), *field;
	static const char *const members[] = {"label", "id"};

	for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++)
		for (size_t i = 0; i < json_array_size(fields); i++) {
			const char *name;

			field = json_array_get(fields, i);
			name = json_string_value(json_object_get(field, members[m]));
			if (name && strcmp(name, label) == 0)
				return json_object_get(field, "value");
		}
	return NULL;
}

bool onepassword_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	static char token[FIELD_MAX];
	const struct slice vault = fetch_argument(request, "vault");
	const struct slice item = fetch_argument(request, "item");
	const struct slice field = fetch_argument(request, "field");
	const char *fields[] = {token, "Accept: application/json", NULL};
	char url[HTTPS_URL_MAX], path[HTTPS_URL_MAX], label[LABEL_MAX];
	json_t *answer = NULL;
	bool taken;

	snprintf(label, sizeof(label), "%.*s", field.n ? (int)field.n : 8,
	        field.n ? field.p : "password");
	snprintf(path, sizeof(path), "/v1/vaults/%.*s/items/%.*s", SLICE_ARG(vault),
	        SLICE_ARG(item));
	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (snprintf(token, sizeof(token), "Authorization: Bearer %.*s",
	            SLICE_ARG(request->secret)) < (int)sizeof(token) &&
	        fetch_url(request, path, url, sizeof(url)))
		answer = https_json(https,
		        &(struct https_call){.method = "GET", .url = url, .fields = fields}, fault);
	secret_wipe(token, sizeof(token));
	taken = answer && fetched_take(find_field(answer, label), label, out, fault);
	json_decref(answer);
	return taken;
}
