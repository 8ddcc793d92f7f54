/* SPDX-License-Identifier: Apache-2.0 */
#include "vethguard/policy/json_find.h"

#include "policy/json/json_path.h"

#define WHOLE_DIGITS_MAX 15

static uint32_t index_of(const struct json_tree *tree, const struct json_value *value)
{
	return (uint32_t)(value - tree->values);
}

static const struct json_value *find_member(const struct json_tree *tree,
        const struct json_value *object, bool (*is)(struct slice, struct slice), struct slice key)
{
	uint32_t at;

	if (!object || object->kind != JSON_IS_OBJECT)
		return NULL;
	at = index_of(tree, object) + 1;
	while (at < object->next) {
		const struct json_value *value = json_at(tree, at + 1);

		if (is(json_text(tree, json_at(tree, at)), key))
			return value;
		at = value->next;
	}
	return NULL;
}

static bool is_same(struct slice a, struct slice b)
{
	return slice_equals(a, b);
}

const struct json_value *json_tree_member(
        const struct json_tree *tree, const struct json_value *object, struct slice key)
{
	return find_member(tree, object, is_same, key);
}

const struct json_value *json_tree_find(const struct json_tree *tree, struct slice name)
{
	const struct json_value *value = tree->count ? json_at(tree, 0) : NULL;
	struct slice key;

	if (!name.n || name.p[0] != '/')
		return json_tree_member(tree, value, name);
	while (value && json_path_next(&name, &key))
		value = find_member(tree, value, json_path_key_is, key);
	return value;
}

bool json_tree_name_is_sound(struct slice name)
{
	return name.n > 0 && (name.p[0] != '/' || json_path_is_sound(name));
}

bool json_tree_string_of(
        const struct json_tree *tree, const struct json_value *value, struct slice *out)
{
	if (!value || value->kind != JSON_IS_STRING)
		return false;
	*out = json_text(tree, value);
	return true;
}

bool json_tree_string(const struct json_tree *tree, struct slice name, struct slice *out)
{
	return json_tree_string_of(tree, json_tree_find(tree, name), out);
}

bool json_tree_whole(const struct json_tree *tree, const struct json_value *value, int64_t *out)
{
	struct slice text;

	*out = 0;
	if (!value || value->kind != JSON_IS_NUMBER)
		return false;
	text = json_text(tree, value);
	if (text.n > WHOLE_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		*out = *out * 10 + (text.p[i] - '0');
	}
	return true;
}

static bool matches(struct slice value, struct slice text, bool with_star)
{
	if (with_star && text.n && text.p[text.n - 1] == '*')
		return slice_starts_with(value, slice_of(text.p, text.n - 1));
	return slice_equals(value, text);
}

bool json_tree_has(const struct json_tree *tree, const struct json_value *value, struct slice text,
        bool with_star)
{
	bool has = false;
	struct slice s;

	if (json_tree_string_of(tree, value, &s))
		return matches(s, text, with_star);
	if (!value || value->kind != JSON_IS_ARRAY)
		return false;
	for (uint32_t at = index_of(tree, value) + 1; at < value->next;
	        at = json_at(tree, at)->next) {
		if (!json_tree_string_of(tree, json_at(tree, at), &s))
			return false;
		has = has || matches(s, text, with_star);
	}
	return has;
}
