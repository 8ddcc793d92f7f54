/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: faults that show without the policy are reported here, before anything is
 * started. */
#include <stdio.h>

#include "cli/variable_option.h"

#define SHOWN_MAX 96

static bool complain(struct slice name, const char *why)
{
	char shown[SHOWN_MAX];

	slice_escape(name, shown, sizeof(shown));
	fprintf(stderr, "vethguard: error: --var %s: %s\n", shown, why);
	return false;
}

bool variable_take(const char *text, struct policy_variable *variables, size_t *count)
{
	struct slice all = slice_from_string(text);
	struct policy_variable v;
	const char *why;

	if (!policy_variable_split(all, &v))
		return complain(all, "write NAME=VALUE");
	why = policy_variable_objection(v.name, v.value);
	if (why)
		return complain(v.name, why);
	for (size_t i = 0; i < *count; i++)
		if (slice_equals(variables[i].name, v.name))
			return complain(v.name, "is given twice");
	if (*count == POLICY_VARIABLES_MAX)
		return complain(v.name, "is one too many: at most 64 are given at once");
	variables[(*count)++] = v;
	return true;
}
