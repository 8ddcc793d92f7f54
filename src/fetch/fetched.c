/* SPDX-License-Identifier: Apache-2.0 */
/* Takes values out of an answer. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fetch/fetched.h"

bool fetched_take(
        const json_t *string, const char *name, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	char shown[128];

	slice_escape(slice_from_string(name), shown, sizeof(shown));
	if (!json_is_string(string))
		snprintf(fault, HTTPS_TEXT_MAX, "its answer has no string %s", shown);
	else if (buf_append(&out->value, json_string_value(string), json_string_length(string)) !=
	         0)
		snprintf(fault, HTTPS_TEXT_MAX,
		        "%s of its answer is longer than a credential may be", shown);
	else
		return true;
	return false;
}

void fetched_lives(struct fetched *out, const json_t *seconds)
{
	json_int_t n = json_integer_value(seconds);

	if (json_is_integer(seconds) && n > 0)
		out->ttl_s =
		        n < (json_int_t)FETCH_LIFETIME_MAX_S ? (uint32_t)n : FETCH_LIFETIME_MAX_S;
}

void fetched_ends(struct fetched *out, const char *when)
{
	struct tm end = {0};
	const char *rest = when ? strptime(when, "%Y-%m-%dT%H:%M:%S", &end) : NULL;
	json_t *seconds;

	if (rest && *rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (!rest || strcmp(rest, "Z") != 0)
		return;
	seconds = json_integer((json_int_t)(timegm(&end) - time(NULL)));
	fetched_lives(out, seconds);
	json_decref(seconds);
}

bool fetched_take_secret(const struct fetch_request *request, struct slice secret,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const struct slice field = fetch_argument(request, "field");
	char name[HTTPS_TEXT_MAX];
	json_t *object;
	bool taken = false;

	if (!field.n) {
		taken = buf_append_slice(&out->value, secret) == 0;
		if (!taken)
			snprintf(fault, HTTPS_TEXT_MAX,
			        "the secret is longer than a credential may be");
		return taken;
	}
	snprintf(name, sizeof(name), "%.*s", SLICE_ARG(field));
	object = json_loadb(secret.p, secret.n, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(object))
		taken = fetched_take(json_object_get(object, name), name, out, fault);
	else
		snprintf(fault, HTTPS_TEXT_MAX,
		        "the secret is not a JSON object, so it has no field: leave out the key "
		        "field if all of it is the value");
	json_decref(object);
	return taken;
}

void fetched_blame(const char *who, char fault[HTTPS_TEXT_MAX])
{
	char text[HTTPS_TEXT_MAX];

	snprintf(text, sizeof(text), "%s", fault);
	snprintf(fault, HTTPS_TEXT_MAX, "%s: %.*s", who, (int)(HTTPS_TEXT_MAX - strlen(who) - 3),
	        text);
}
