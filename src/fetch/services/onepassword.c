/* SPDX-License-Identifier: Apache-2.0 */
/* 1Password Connect: one field of an item of a vault. */
#include <stdio.h>
#include <string.h>

#include "fetch/services/bearer.h"
#include "fetch/services/services.h"

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
	const struct slice vault = fetch_argument(request, "vault");
	const struct slice item = fetch_argument(request, "item");
	const struct slice field = fetch_argument(request, "field");
	char path[HTTPS_URL_MAX], label[LABEL_MAX];
	json_t *answer;
	bool taken;

	snprintf(label, sizeof(label), "%.*s", field.n ? (int)field.n : 8,
	        field.n ? field.p : "password");
	snprintf(path, sizeof(path), "/v1/vaults/%.*s/items/%.*s", SLICE_ARG(vault),
	        SLICE_ARG(item));
	answer = bearer_get(request, https, request->secret, path, fault);
	taken = answer && fetched_take(find_field(answer, label), label, out, fault);
	json_decref(answer);
	return taken;
}
