/* SPDX-License-Identifier: Apache-2.0 */
/* Takes values out of an answer. */
#include <stdio.h>
#include <string.h>

#include "fetch/services.h"

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
