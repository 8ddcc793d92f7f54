/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on a JSON body. A condition names a value by a path of keys ("/user/name"; "*" stands
 * for each element of an array). Readers differ in which spellings they accept for a key (letters
 * in other case,
 * "_" or "-" inside), in arrays of one element and in types ("1", 1, true). So:
 * - For an allow rule each key must be there once, with no other that a reader could take for it,
 *   and the value must have the type that the policy asks for.
 * - For a deny rule it is enough that some reader would find such a value.
 */
#include <string.h>

#include "policy/decide/condition_body.h"
#include "policy/decide/file_path.h"
#include "policy/json/json_path.h"

struct search {
	const struct policy *policy;
	const struct image_condition *condition;
	const struct json_tree *tree;
};

/* --- values --- */

static bool is_in_range(struct slice bounds, double number)
{
	double low, high;

	memcpy(&low, bounds.p + 1, sizeof(low));
	memcpy(&high, bounds.p + 1 + sizeof(low), sizeof(high));
	return number >= low && number <= high;
}

static struct slice scalar_text(const struct json_tree *tree, const struct json_value *v)
{
	switch (v->kind) {
	case JSON_IS_TRUE:
		return SLICE("true");
	case JSON_IS_FALSE:
		return SLICE("false");
	case JSON_IS_NULL:
		return SLICE("null");
	case JSON_IS_STRING:
	case JSON_IS_NUMBER:
		return json_text(tree, v);
	default:
		return SLICE("");
	}
}

/* pattern: a value of the image, which begins with its type. */
static bool allows_value(const struct search *s, struct slice pattern, const struct json_value *v)
{
	struct slice rest = slice_of(pattern.p + 1, pattern.n - 1);
	double number;

	switch (pattern.p[0]) {
	case JSON_VALUE_NUMBER:
		return v->kind == JSON_IS_NUMBER && json_number(json_text(s->tree, v), &number) &&
		       is_in_range(pattern, number);
	case JSON_VALUE_WORD:
		return v->kind == (rest.n == 4 ? JSON_IS_TRUE : JSON_IS_FALSE);
	case JSON_VALUE_ANY:
		return v->kind >= JSON_IS_STRING && v->kind <= JSON_IS_FALSE;
	case JSON_VALUE_PATH:
		return v->kind == JSON_IS_STRING && file_path_allows(rest, json_text(s->tree, v));
	default:
		return v->kind == JSON_IS_STRING &&
		       condition_matches(rest, json_text(s->tree, v), false);
	}
}

static bool is_one_of(struct slice text, const char *const words[])
{
	for (size_t i = 0; words[i]; i++)
		if (slice_equals_ignoring_case(text, slice_from_string(words[i])))
			return true;
	return false;
}

/* Texts that programs accept as true or false. */
static bool resembles_word(const struct search *s, bool wanted, const struct json_value *v)
{
	static const char *const yes[] = {"true", "1", "yes", "on", "y", "t", NULL};
	static const char *const no[] = {"false", "0", "no", "off", "n", "f", "", "null", NULL};
	double number;

	if (v->kind == JSON_IS_NUMBER && json_number(json_text(s->tree, v), &number))
		return (number != 0) == wanted;
	return is_one_of(slice_trim(scalar_text(s->tree, v)), wanted ? yes : no) ||
	       v->kind == JSON_IS_NUMBER;
}

static bool denies_value(const struct search *s, struct slice pattern, const struct json_value *v)
{
	struct slice rest = slice_of(pattern.p + 1, pattern.n - 1);
	struct slice text = slice_trim(scalar_text(s->tree, v));
	double number;

	if (pattern.p[0] == JSON_VALUE_ANY)
		return true;
	if (v->kind == JSON_IS_OBJECT || v->kind == JSON_IS_ARRAY)
		return false;
	switch (pattern.p[0]) {
	case JSON_VALUE_NUMBER:
		if (v->kind != JSON_IS_NUMBER && v->kind != JSON_IS_STRING)
			return false;
		if (v->kind == JSON_IS_STRING && !json_looks_numeric(text))
			return false;
		return !json_number(text, &number) || is_in_range(pattern, number);
	case JSON_VALUE_WORD:
		return resembles_word(s, rest.n == 4, v);
	case JSON_VALUE_PATH:
		return v->kind == JSON_IS_STRING && file_path_denies(rest, text);
	default:
		return condition_matches(rest, scalar_text(s->tree, v), true) ||
		       condition_matches(rest, text, true);
	}
}

static bool has_value(const struct search *s, const struct json_value *v, bool deny)
{
	const struct image_text *values = image_section(s->policy, SECTION_VALUES);

	for (uint32_t i = 0; i < s->condition->value_count; i++) {
		struct slice pattern =
		        image_slice(s->policy, values[s->condition->first_value + i]);

		if (deny ? denies_value(s, pattern, v) : allows_value(s, pattern, v))
			return true;
	}
	return false;
}

/* --- finding them by their path --- */

static bool allows_at(const struct search *s, const struct json_value *v, struct slice path);

static uint32_t index_of(const struct search *s, const struct json_value *v)
{
	return (uint32_t)(v - s->tree->values);
}

/* Each element has to meet the condition. An empty array meets none. */
static bool allows_elements(const struct search *s, const struct json_value *v, struct slice path)
{
	bool absent = s->condition->need == CONDITION_ABSENT;
	uint32_t i = index_of(s, v) + 1;

	if (v->kind != JSON_IS_ARRAY)
		return absent && v->kind != JSON_IS_OBJECT;
	if (i == v->next)
		return absent;
	for (; i < v->next; i = json_at(s->tree, i)->next)
		if (!allows_at(s, json_at(s->tree, i), path))
			return false;
	return true;
}

static bool allows_member(
        const struct search *s, const struct json_value *v, struct slice key, struct slice path)
{
	bool absent = s->condition->need == CONDITION_ABSENT;
	const struct json_value *found;

	if (v->kind != JSON_IS_OBJECT)
		return absent && v->kind != JSON_IS_ARRAY;
	if (!json_path_member(s->tree, v, key, &found))
		return false;
	return found ? allows_at(s, found, path) : absent;
}

/* path: the rest of it. The recursion is as deep as the path. */
static bool allows_at(const struct search *s, const struct json_value *v, struct slice path)
{
	struct slice key;

	if (!json_path_next(&path, &key))
		return s->condition->need == CONDITION_VALUE && has_value(s, v, false);
	return slice_equals(key, SLICE("*")) ? allows_elements(s, v, path)
	                                     : allows_member(s, v, key, path);
}

static bool finds_at(const struct search *s, const struct json_value *v, struct slice path);

static bool finds_element(const struct search *s, const struct json_value *v, struct slice path)
{
	for (uint32_t i = index_of(s, v) + 1; i < v->next; i = json_at(s->tree, i)->next)
		if (finds_at(s, json_at(s->tree, i), path))
			return true;
	return false;
}

static bool finds_member(
        const struct search *s, const struct json_value *v, struct slice key, struct slice path)
{
	for (uint32_t i = index_of(s, v) + 1; i < v->next; i = json_at(s->tree, i + 1)->next) {
		struct slice name = json_text(s->tree, json_at(s->tree, i));
		bool alike = s->condition->need == CONDITION_ABSENT
		                     ? json_path_key_is(name, key)
		                     : json_path_key_resembles(name, key);

		if (alike && finds_at(s, json_at(s->tree, i + 1), path))
			return true;
	}
	return false;
}

/* True if some reader finds a value that the condition names; for CONDITION_ABSENT, any value. An
 * array stands for its elements: the recursion is as deep as path and text together. */
static bool finds_at(const struct search *s, const struct json_value *v, struct slice path)
{
	struct slice rest = path, key;

	if (!json_path_next(&rest, &key)) {
		if (s->condition->need == CONDITION_ABSENT || has_value(s, v, true))
			return true;
		return v->kind == JSON_IS_ARRAY && finds_element(s, v, path);
	}
	if (slice_equals(key, SLICE("*")))
		return v->kind == JSON_IS_ARRAY ? finds_element(s, v, rest) : finds_at(s, v, rest);
	if (v->kind == JSON_IS_ARRAY)
		return finds_element(s, v, path);
	return v->kind == JSON_IS_OBJECT && finds_member(s, v, key, rest);
}

/* True if some condition of the rule begins with that key. */
static bool is_named(const struct policy *policy, const struct image_rule *rule, struct slice key)
{
	for (uint32_t i = 0; i < rule->condition_count; i++) {
		const struct image_condition *c =
		        image_condition_at(policy, rule->first_condition + i);
		struct slice path = image_slice(policy, c->name), first;

		if (c->kind == CONDITION_JSON && json_path_next(&path, &first) &&
		        json_path_key_is(key, first))
			return true;
	}
	return false;
}

static bool names_all(
        const struct policy *policy, const struct image_rule *rule, const struct json_tree *tree)
{
	const struct json_value *top = json_at(tree, 0);

	if (top->kind != JSON_IS_OBJECT)
		return false;
	for (uint32_t i = 1; i < top->next; i = json_at(tree, i + 1)->next)
		if (!is_named(policy, rule, json_text(tree, json_at(tree, i))))
			return false;
	return true;
}

/* A batch is an array of messages (https://www.jsonrpc.org/specification, section 6). Each
 * message has to meet the condition; an empty array is not a batch. */
static bool allows_messages(const struct search *s, struct slice path)
{
	const struct json_value *top = json_at(s->tree, 0);
	uint32_t i = 1;

	if (top->kind == JSON_IS_OBJECT)
		return allows_at(s, top, path);
	if (i == top->next)
		return false;
	for (; i < top->next; i = json_at(s->tree, i)->next) {
		const struct json_value *message = json_at(s->tree, i);

		if (message->kind != JSON_IS_OBJECT || !allows_at(s, message, path))
			return false;
	}
	return true;
}

bool condition_json_at(const struct policy *policy, const struct image_condition *condition,
        const struct json_tree *tree, const struct json_value *value, bool deny)
{
	const struct search s = {policy, condition, tree};
	struct slice path = image_slice(policy, condition->name);
	bool absent = condition->need == CONDITION_ABSENT;

	if (!value)
		return absent;
	return deny ? finds_at(&s, value, path) != absent : allows_at(&s, value, path);
}

bool condition_json(const struct policy *policy, const struct image_rule *rule,
        const struct image_condition *condition, const struct json_tree *tree)
{
	const struct search s = {policy, condition, tree};
	struct slice path = image_slice(policy, condition->name);
	bool found;

	if (condition->kind == CONDITION_JSON_ONLY)
		return names_all(policy, rule, tree);
	if ((rule->flags & RULE_DENY) == 0)
		return condition->kind == CONDITION_JSONRPC ? allows_messages(&s, path)
		                                            : allows_at(&s, json_at(tree, 0), path);
	found = finds_at(&s, json_at(tree, 0), path);
	return condition->need == CONDITION_ABSENT ? !found : found;
}
