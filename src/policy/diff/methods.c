/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of a comparison: finds those that could make a difference, and puts a set of them
 * into words. */
#include <stdio.h>

#include "policy/diff/text.h"

static void add_method(struct diff_methods *methods, struct slice name)
{
	for (size_t i = 0; i < methods->count; i++)
		if (slice_equals(methods->names[i], name))
			return;
	methods->names[methods->count++] = name;
}

static void add_methods(struct diff_methods *methods, const struct policy *policy)
{
	const struct image_text *names = image_section(policy, SECTION_METHODS);

	for (uint32_t i = 0; i < image_count(policy, SECTION_METHODS); i++)
		add_method(methods, image_slice(policy, names[i]));
}

static bool is_named(const struct diff_methods *methods, struct slice name)
{
	for (size_t i = 0; i < methods->named; i++)
		if (slice_equals_ignoring_case(methods->names[i], name))
			return true;
	return false;
}

static struct slice in_small_letters(struct arena *arena, struct slice name)
{
	struct slice copy = arena_copy(arena, name);
	char *p = (char *)copy.p;

	for (size_t i = 0; i < copy.n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] + 'a' - 'A');
	return copy;
}

bool diff_methods_find(struct diff_methods *methods, struct arena *arena, const struct policy *from,
        const struct policy *to)
{
	struct slice other = SLICE("OTHER");

	methods->count = 0;
	add_methods(methods, from);
	add_methods(methods, to);
	methods->named = methods->count;
	for (size_t i = 0; i < methods->named; i++)
		add_method(methods, in_small_letters(arena, methods->names[i]));
	for (unsigned i = 0; is_named(methods, other); i++)
		other = arena_printf(arena, "OTHER%u", i);
	methods->names[methods->count++] = other;
	return !arena->failed;
}

static bool has_method(const uint64_t *set, size_t method)
{
	return (set[method / 64] >> (method % 64) & 1) != 0;
}

struct slice diff_method_words(
        const struct diff_methods *m, struct arena *arena, const uint64_t set[DIFF_METHOD_WORDS])
{
	bool any = m->count > 0 && has_method(set, m->count - 1);
	char line[POLICY_DIFF_LINE_MAX];
	size_t n = 0, words = 0;

	for (size_t i = 0; i + 1 < m->count && n < sizeof(line) - 1; i++) {
		bool small = i >= m->named;

		/* a method in lower case is only shown if no other is */
		if (has_method(set, i) == any || (small && (any || words > 0)))
			continue;
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%.*s", words++ ? ", " : "",
		        SLICE_ARG(m->names[i]));
	}
	if (n >= sizeof(line))
		n = sizeof(line) - 1;
	line[n] = '\0';
	if (any)
		return arena_printf(
		        arena, "any method%s%s ", words ? " but " : "", words ? line : "");
	return arena_printf(arena, "%s%s", line, words ? " " : "");
}
