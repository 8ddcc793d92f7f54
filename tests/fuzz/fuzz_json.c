/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json: any bytes as the JSON body of a request. Whatever the strict reader takes, jansson has
 * to take too, as the same tree; only numbers beyond jansson's range may differ. Rules then judge
 * the body.
 */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/policy/json.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static uint32_t compare(const struct json_tree *tree, uint32_t index, json_t *other);

static void compare_inside(const struct json_tree *tree, uint32_t index, json_t *other)
{
	const struct json_value *v = json_at(tree, index);
	uint32_t i = index + 1;
	size_t count = 0;

	while (i < v->next) {
		json_t *inner;

		if (v->kind == JSON_IS_OBJECT) {
			struct slice key = json_text(tree, json_at(tree, i));

			inner = json_object_getn(other, key.p, key.n);
			i++;
		} else {
			inner = json_array_get(other, count);
		}
		must(inner != NULL);
		i = compare(tree, i, inner);
		count++;
	}
	must(i == v->next);
	must(count ==
	        (v->kind == JSON_IS_OBJECT ? json_object_size(other) : json_array_size(other)));
}

/* Returns the index behind the value. */
static uint32_t compare(const struct json_tree *tree, uint32_t index, json_t *other)
{
	const struct json_value *v = json_at(tree, index);
	struct slice text = json_text(tree, v);

	switch (v->kind) {
	case JSON_IS_OBJECT:
	case JSON_IS_ARRAY:
		must(v->kind == JSON_IS_OBJECT ? json_is_object(other) : json_is_array(other));
		compare_inside(tree, index, other);
		break;
	case JSON_IS_STRING:
		must(json_is_string(other) && json_string_length(other) == text.n &&
		        memcmp(json_string_value(other), text.p, text.n) == 0);
		break;
	case JSON_IS_NUMBER:
		must(json_is_number(other));
		break;
	default:
		must(v->kind == JSON_IS_TRUE       ? json_is_true(other)
		        : v->kind == JSON_IS_FALSE ? json_is_false(other)
		                                   : json_is_null(other));
	}
	return v->next;
}

static const char rules[] =
        "vethguard: 1\nallow:\n"
        "  - {name: a, to: a.example, json: {a: [\"x*\", 1, true, {max: 5}], \"/b/*/c\": \"*\", "
        "d: ~}}\n"
        "  - {name: f, to: a.example, form: {a: \"b*\", c: ~, \"*\": ~}}\n"
        "  - {name: r, to: a.example, jsonrpc: {methods: [\"a*\"], params: {b: c, d: ~}}}\n"
        "  - {name: m, to: a.example, mcp: {tools: [\"a*\"], methods: [b], arguments: {p: "
        "[\"/a/**\", "
        "1], q: ~}}}\n"
        "  - {name: g, to: a.example, graphql: {operations: [query], fields: [\"a*\"], persisted: "
        "b}}\n"
        "  - {name: l, to: a.example, llm: {models: [\"a*\"], max_output_tokens: 5}}\n"
        "  - {name: b, to: b.example}\n"
        "deny:\n"
        "  - {name: d, to: b.example, json: {a: [\"x*\", 1, false, {min: 5}], \"/b/*/c\": "
        "\"*\"}}\n"
        "  - {name: n, to: b.example, mcp: {tools: [\"a*\"], arguments: {p: \"/a/**\"}}}\n";

static int read_rules(void *context, const char *path, char **text, size_t *n)
{
	(void)context;
	(void)path;
	*text = strdup(rules);
	*n = sizeof(rules) - 1;
	return *text ? 0 : -ENOMEM;
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	*out = (struct policy_field){SLICE("content-type"), slice_from_string(context)};
	return (*at)++ == 0;
}

static void judge(struct slice text, const char *type)
{
	static struct policy policy;
	static uint8_t *image;
	const struct policy_reader reader = {NULL, read_rules, NULL};
	const struct policy_fields fields = {type, next_field};
	struct diag_list diags = {.count = 0};
	struct policy_body body;
	struct policy_decision d;
	size_t size;

	if (!image)
		must(policy_load(&reader, "/rules.yaml", NULL, &image, &size, &diags) == 0 &&
		        policy_open(&policy, image, size) == 0);
	policy_body_read(&body, &fields, text);
	for (int i = 0; i < 2; i++) {
		struct policy_request request = {.scheme = POLICY_HTTPS,
		        .host = i ? SLICE("a.example") : SLICE("b.example"),
		        .port = 443,
		        .method = SLICE("POST"),
		        .path = SLICE("/"),
		        .fields = &fields,
		        .body = &body};

		policy_decide(&policy, &request, &d);
		must(!d.needs_body);
		/* A body that is not read matches no allow rule and every deny rule. */
		must(body.kind != POLICY_BODY_OTHER || d.verdict == POLICY_DENY);
	}
	policy_body_fini(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);
	struct json_tree tree;
	json_error_t error;

	if (json_read(&tree, text) == 0) {
		json_t *other = json_loadb(
		        (const char *)data, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

		must(other || json_error_code(&error) == json_error_numeric_overflow);
		if (other)
			must(compare(&tree, 0, other) == tree.count);
		json_decref(other);
	}
	json_fini(&tree);
	judge(text, "application/json");
	judge(text, "application/x-www-form-urlencoded");
	return 0;
}
