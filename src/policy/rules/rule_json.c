/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a rule asks of a JSON body: the key json. A key is the name of a member of the body,
 * or a path that begins with a slash. The type of a value is that which YAML gives it: true and 7
 * are JSON's, "7" is a text.
 */
#include <stdlib.h>

#include "vethguard/policy/json.h"
#include "policy/json/json_path.h"
#include "policy/load/variables.h"
#include "policy/rules/rule.h"

static const char what[] = "a value of json";

static bool take_number(
        struct rule_parse *p, const struct tree_node *node, const char *name, double *out)
{
	char quoted[TREE_QUOTE_MAX];
	bool negative = node->kind == TREE_SCALAR && slice_starts_with(node->text, SLICE("-"));
	struct slice digits = slice_of(node->text.p + negative, node->text.n - negative);

	if (node->kind == TREE_SCALAR && node->plain && digits.n && digits.p[0] >= '0' &&
	        digits.p[0] <= '9' && json_looks_numeric(node->text) &&
	        json_number(node->text, out))
		return true;
	if (name)
		tree_error(p->tree, node, "%s must be a number of at most 15 digits, not %s", name,
		        node->kind == TREE_SCALAR ? tree_quote(node->text, quoted)
		                                  : "a list or mapping");
	return false;
}

static struct slice number_value(struct arena *arena, double low, double high)
{
	char bytes[JSON_VALUE_NUMBER_BYTES] = {JSON_VALUE_NUMBER};

	memcpy(bytes + 1, &low, sizeof(low));
	memcpy(bytes + 1 + sizeof(low), &high, sizeof(high));
	return arena_copy(arena, slice_of(bytes, sizeof(bytes)));
}

/* {min: 1, max: 4096} */
static bool take_range(struct rule_parse *p, const struct tree_node *node, struct slice *value,
        struct slice *written)
{
	static const char *const keys[] = {"min", "max", NULL};
	const struct tree_node *min = tree_get(node, "min"), *max = tree_get(node, "max");
	double low = -1e300, high = 1e300;

	if (!tree_check_keys(p->tree, node, keys, NULL))
		return false;
	if (!min && !max) {
		tree_error(p->tree, node, "a range has min, max or both: {min: 1, max: 4096}");
		return false;
	}
	if ((min && !take_number(p, min, "min", &low)) ||
	        (max && !take_number(p, max, "max", &high)))
		return false;
	if (low > high) {
		tree_error(p->tree, node, "min is larger than max, so no number is in the range");
		return false;
	}
	*value = number_value(p->tree->arena, low, high);
	*written = arena_printf(p->tree->arena, "%.*s..%.*s",
	        SLICE_ARG(min ? min->text : SLICE("")), SLICE_ARG(max ? max->text : SLICE("")));
	return true;
}

static bool is_word(const struct tree_node *node)
{
	return node->plain && (slice_equals(node->text, SLICE("true")) ||
	                              slice_equals(node->text, SLICE("false")));
}

static bool take_scalar(struct rule_parse *p, const struct tree_node *node, struct slice *value,
        struct slice *written)
{
	struct arena *arena = p->tree->arena;
	struct slice text;
	double number;

	if (node->kind == TREE_SCALAR && is_word(node)) {
		*value = arena_printf(arena, "%c%.*s", JSON_VALUE_WORD, SLICE_ARG(node->text));
		*written = node->text;
		return true;
	}
	if (node->kind == TREE_SCALAR && node->plain && take_number(p, node, NULL, &number)) {
		*value = number_value(arena, number, number);
		*written = node->text;
		return true;
	}
	if (node->kind == TREE_SCALAR && !node->plain && node->text.n == 0) {
		text = node->text; /* a member can have the empty text as its value */
	} else if (!tree_text(p->tree, node, what, POLICY_VALUE_MAX, &text) ||
	           !variables_in_value(p->l, p->tree, node, &text)) {
		return false;
	}
	if (slice_equals(text, SLICE("*"))) {
		*value = arena_printf(arena, "%c", JSON_VALUE_ANY);
		*written = SLICE("anything");
		return true;
	}
	*value = arena_printf(arena, "%c%.*s", JSON_VALUE_TEXT, SLICE_ARG(text));
	*written = load_condition_quote(arena, text);
	return true;
}

bool load_json_values(struct rule_parse *p, struct tree_node *node, struct model_condition *out)
{
	struct tree_item single = {.value = node};
	const struct tree_item *item = &single;
	size_t n = node->kind == TREE_LIST ? node->count : 1;

	if (node->kind == TREE_LIST)
		item = tree_items(p->tree, node, what, &single);
	if (!item)
		return false;
	if (n > MODEL_VALUES_MAX) {
		tree_error(p->tree, node, "more than %d values in one condition", MODEL_VALUES_MAX);
		return false;
	}
	out->values = arena_take(p->tree->arena, n * sizeof(*out->values));
	out->written = arena_take(p->tree->arena, n * sizeof(*out->written));
	for (; item && out->values && out->written; item = item->next) {
		size_t i = out->value_count;
		bool good =
		        item->value->kind == TREE_MAP
		                ? take_range(p, item->value, &out->values[i], &out->written[i])
		                : take_scalar(p, item->value, &out->values[i], &out->written[i]);

		if (!good)
			return false;
		out->value_count++;
	}
	return out->values && out->written;
}

/* A name becomes a path of one key. */
static struct slice path_of(struct arena *arena, struct slice name)
{
	char text[2 * POLICY_VALUE_MAX + 1];
	size_t n = 0;

	if (slice_starts_with(name, SLICE("/")))
		return name;
	text[n++] = '/';
	for (size_t i = 0; i < name.n; i++) {
		bool escaped = name.p[i] == '~' || name.p[i] == '/';

		if (escaped)
			text[n++] = '~';
		text[n++] = name.p[i] == '~' ? '0' : name.p[i] == '/' ? '1' : name.p[i];
	}
	return arena_copy(arena, slice_of(text, n));
}

/* Two paths that a reader could mistake for each other would make every body ambiguous. */
static bool resembles(struct slice a, struct slice b)
{
	struct slice x, y;

	while (json_path_next(&a, &x)) {
		if (!json_path_next(&b, &y) || !json_path_keys_resemble(x, y))
			return false;
	}
	return b.n == 0;
}

bool load_json_is_new(
        struct rule_parse *p, const struct tree_node *key, const struct model_condition *c)
{
	for (size_t i = 0; i < p->rule.condition_count; i++) {
		const struct model_condition *other = &p->rule.conditions[i];

		if (other->kind != c->kind || !resembles(other->name, c->name))
			continue;
		tree_error(p->tree, key,
		        "\"%.*s\" and \"%.*s\" are the same to some readers; name one of them",
		        SLICE_ARG(other->name), SLICE_ARG(c->name));
		return false;
	}
	return true;
}

static bool take_others(
        struct rule_parse *p, const struct tree_item *item, struct model_condition *out)
{
	if (p->rule.deny)
		tree_error(p->tree, item->key,
		        "\"*\" belongs to allow rules: a deny rule names the members that it "
		        "denies");
	else if (!tree_is_null(item->value))
		tree_error(p->tree, item->value,
		        "\"*\": write \"*\": ~ for \"no other members\", or leave it out");
	else {
		out->kind = CONDITION_JSON_ONLY;
		out->need = CONDITION_ABSENT;
		return true;
	}
	return false;
}

bool load_json_condition(
        struct rule_parse *p, const struct tree_item *item, struct model_condition *out)
{
	struct slice name;

	if (!tree_text(p->tree, item->key, "a member's name", POLICY_VALUE_MAX / 2, &name))
		return false;
	if (slice_equals(name, SLICE("*")))
		return take_others(p, item, out);
	out->kind = CONDITION_JSON;
	out->name = path_of(p->tree->arena, name);
	if (!json_path_is_sound(out->name)) {
		tree_error(p->tree, item->key,
		        "\"%.*s\" is not a path: write a member's name, or \"/a/b\" with at most "
		        "%d names, \"~1\" for a slash and \"~0\" for a tilde in a name",
		        SLICE_ARG(name), JSON_PATH_KEYS_MAX);
		return false;
	}
	if (!load_json_is_new(p, item->key, out))
		return false;
	if (tree_is_null(item->value)) {
		out->need = CONDITION_ABSENT;
		return true;
	}
	return load_json_values(p, item->value, out);
}
