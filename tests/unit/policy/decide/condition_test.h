/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of conditions share: policies with one rule, and header fields as text. */
#ifndef VETHGUARD_TESTS_UNIT_POLICY_DECIDE_CONDITION_TEST_H
#define VETHGUARD_TESTS_UNIT_POLICY_DECIDE_CONDITION_TEST_H

#include <string.h>

#define ALLOW(conditions) "vethguard: 1\nallow: [{to: a.example, " conditions "}]\n"
#define DENY(conditions) \
	"vethguard: 1\nallow: [{to: a.example}]\ndeny: [{to: a.example, " conditions "}]\n"

/* Reads fields from "Name: value" lines; see struct policy_fields. */
static inline bool next_line(const void *context, size_t *at, struct policy_field *out)
{
	const char *line = (const char *)context + *at, *end = strchr(line, '\n');
	const char *colon = strchr(line, ':');

	if (!end || !colon)
		return false;
	out->name = slice_of(line, (size_t)(colon - line));
	out->value = slice_trim(slice_of(colon + 1, (size_t)(end - colon) - 1));
	*at += (size_t)(end - line) + 1;
	return true;
}

#endif
