/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide/condition_asked.h"
#include "policy/decide/reading.h"

static struct slice value_at(const struct condition_asked *a, uint32_t i)
{
	const struct image_text *values = image_section(a->policy, SECTION_VALUES);

	return image_slice(a->policy, values[a->condition->first_value + i]);
}

bool condition_has_type(const struct condition_asked *a, char type)
{
	for (uint32_t i = 0; i < a->condition->value_count; i++)
		if (value_at(a, i).p[0] == type)
			return true;
	return false;
}

bool condition_has_value(const struct condition_asked *a, char type, struct slice text, bool fold)
{
	for (uint32_t i = 0; i < a->condition->value_count; i++) {
		struct slice value = value_at(a, i);

		if (value.p[0] == type &&
		        condition_matches(slice_of(value.p + 1, value.n - 1), text, fold))
			return true;
	}
	return false;
}

bool condition_refuse(const struct condition_asked *a, enum refusal_weight weight, const char *what,
        struct slice name, const char *why)
{
	return refusal_note(a->policy, a->request, a->rule, weight, what, name, why);
}

bool condition_denies(const struct condition_asked *a,
        bool (*denies)(const struct condition_asked *a, struct slice path))
{
	struct path_view view;

	path_view_init(&view, a->request->path);
	path_view_make(&view);
	return denies(a, a->request->path) || denies(a, view.shortest);
}
