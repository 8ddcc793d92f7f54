/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/option_wrong.h"
#include "vethguard/base/slice.h"
#include "vethguard/base/utf8.h"

#define SHOWN_MAX 128

bool option_wrong(const char *option, const char *value, const char *rule)
{
	char shown[SHOWN_MAX];

	fprintf(stderr, "vethguard: error: --%s %s: %s\n", option,
	        slice_escape(slice_from_string(value), shown, sizeof(shown)), rule);
	return false;
}

bool option_is_utf8(const char *option, const char *value)
{
	struct utf8 state = {0};

	return (utf8_feed(&state, (const uint8_t *)value, strlen(value)) &&
	               utf8_is_whole(&state)) ||
	       option_wrong(option, value, "it is not UTF-8");
}
