/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the JSON tree of a text does not tell where in the text arrays and objects
 * begin and end. So a second reader walks through the text and the tree in the same order. It only
 * has to skip values, since json_read() has found the text valid. What stays is copied byte by
 * byte.
 */
#include "vethguard/policy/tools.h"

#include <errno.h>

#include "policy/json/json_path.h"
#include "vethguard/policy/json.h"

struct filter {
	const struct policy_tools *tools;
	const struct json_tree *tree;
	struct buf *out;
	const char *copied; /* the text up to here was copied or left out */
	bool changed, failed;
};

static const struct json_value *value_at(const struct filter *f, uint32_t index)
{
	return json_at(f->tree, index);
}

static uint32_t index_of(const struct filter *f, const struct json_value *v)
{
	return (uint32_t)(v - f->tree->values);
}

/* --- the text --- */

static const char *skip_string(const char *p)
{
	for (p++; *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p + 1;
}

static bool is_between(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ':';
}

/* Returns the next value's first byte. */
static const char *find_value(const char *p)
{
	while (is_between(*p))
		p++;
	return p;
}

/* Returns the byte behind the value that begins at p. end: the end of the text. */
static const char *skip_value(const char *p, const char *end)
{
	unsigned depth = 0;

	do {
		if (*p == '"') {
			p = skip_string(p);
		} else {
			depth += *p == '{' || *p == '[';
			depth -= *p == '}' || *p == ']';
			p++;
		}
		if (depth == 0)
			break;
	} while (p < end);
	while (p < end && !is_between(*p) && *p != '}' && *p != ']' && p[-1] != '"' &&
	        p[-1] != '}' && p[-1] != ']')
		p++; /* the rest of a number or word */
	return p;
}

static const char *text_end(const struct filter *f)
{
	return f->tree->text.p + f->tree->text.n;
}

static void put(struct filter *f, const char *from, const char *to)
{
	if (buf_append(f->out, from, (size_t)(to - from)) < 0)
		f->failed = true;
}

/* --- tools --- */

static bool may_stay(const struct filter *f, const struct json_value *tool)
{
	const struct json_value *name;

	return tool->kind == JSON_IS_OBJECT &&
	       json_path_member(f->tree, tool, SLICE("name"), &name) && name &&
	       name->kind == JSON_IS_STRING &&
	       f->tools->may_call(f->tools->context, json_text(f->tree, name)) &&
	       (!f->tools->may_show || f->tools->may_show(f->tools->context,
	                                       json_text(f->tree, name), f->tree, tool));
}

static bool all_may_stay(const struct filter *f, const struct json_value *array)
{
	for (uint32_t i = index_of(f, array) + 1; i < array->next; i = value_at(f, i)->next)
		if (!may_stay(f, value_at(f, i)))
			return false;
	return true;
}

/* Takes out the tools that may not stay. p: the '[' of the array. */
static void filter_array(struct filter *f, const struct json_value *array, const char *p)
{
	const char *end = skip_value(p, text_end(f));
	bool any = false;

	if (array->kind != JSON_IS_ARRAY || all_may_stay(f, array))
		return;
	put(f, f->copied, p + 1);
	p++;
	for (uint32_t i = index_of(f, array) + 1; i < array->next; i = value_at(f, i)->next) {
		const char *begin = find_value(p);

		p = skip_value(begin, text_end(f));
		if (!may_stay(f, value_at(f, i)))
			continue;
		if (any)
			put(f, ",", &","[1]);
		put(f, begin, p);
		any = true;
	}
	f->copied = end - 1;
	f->changed = true;
}

typedef void (*on_value)(struct filter *f, const struct json_value *value, const char *p);

/* Calls each() for each member that some reader takes for the key. p: the '{' of the object. */
static void each_member(struct filter *f, const struct json_value *object, const char *p,
        struct slice key, on_value each)
{
	p++;
	for (uint32_t i = index_of(f, object) + 1; i < object->next; i = value_at(f, i + 1)->next) {
		p = find_value(skip_string(find_value(p)));
		if (json_path_key_resembles(json_text(f->tree, value_at(f, i)), key))
			each(f, value_at(f, i + 1), p);
		p = skip_value(p, text_end(f));
	}
}

static void filter_result(struct filter *f, const struct json_value *result, const char *p)
{
	if (result->kind == JSON_IS_OBJECT)
		each_member(f, result, p, SLICE("tools"), filter_array);
}

static void filter_message(struct filter *f, const struct json_value *message, const char *p)
{
	if (message->kind == JSON_IS_OBJECT)
		each_member(f, message, p, SLICE("result"), filter_result);
}

static void filter_text(struct filter *f)
{
	const struct json_value *top = value_at(f, 0);
	const char *p = find_value(f->tree->text.p);

	if (top->kind != JSON_IS_ARRAY) {
		filter_message(f, top, p);
		return;
	}
	p++;
	for (uint32_t i = 1; i < top->next; i = value_at(f, i)->next) {
		p = find_value(p);
		filter_message(f, value_at(f, i), p);
		p = skip_value(p, text_end(f));
	}
}

int policy_tools_filter(const struct policy_tools *tools, struct slice text, struct buf *out)
{
	struct json_tree tree;
	struct filter f = {.tools = tools, .tree = &tree, .out = out, .copied = text.p};
	int rc = json_read(&tree, text);

	if (rc == 0) {
		filter_text(&f);
		if (f.changed)
			put(&f, f.copied, text_end(&f));
		rc = f.failed ? -ENOMEM : f.changed;
	}
	json_fini(&tree);
	return rc;
}

/* --- requests --- */

static bool asks_for_tools(const struct json_tree *tree, uint32_t index)
{
	const struct json_value *message = json_at(tree, index);

	if (message->kind != JSON_IS_OBJECT)
		return false;
	for (uint32_t i = index + 1; i < message->next; i = json_at(tree, i + 1)->next) {
		const struct json_value *value = json_at(tree, i + 1);

		if (value->kind == JSON_IS_STRING &&
		        json_path_key_resembles(
		                json_text(tree, json_at(tree, i)), SLICE("method")) &&
		        slice_equals_ignoring_case(
		                slice_trim(json_text(tree, value)), SLICE("tools/list")))
			return true;
	}
	return false;
}

bool policy_body_lists_tools(const struct policy_body *body)
{
	const struct json_tree *tree = body ? body->json : NULL;

	if (!body || body->state != POLICY_BODY_READ || body->kind != POLICY_BODY_JSON)
		return true;
	if (json_at(tree, 0)->kind != JSON_IS_ARRAY)
		return asks_for_tools(tree, 0);
	for (uint32_t i = 1; i < json_at(tree, 0)->next; i = json_at(tree, i)->next)
		if (asks_for_tools(tree, i))
			return true;
	return false;
}
