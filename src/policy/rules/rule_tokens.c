/* SPDX-License-Identifier: Apache-2.0 */
/* Reads weights and prices of the tokens of a model's answers. Without them each token counts as
 * one and costs nothing. */
#include "policy/rules/rule.h"

#define TEXT_MAX 32
#define DECIMALS 6
#define WEIGHT_MAX 1000u /* times a token; units of money for a million tokens */

static const char *const keys[] = {"input", "cached", "output", NULL};
static const struct tree_refusal refused[] = {
        {"cached_input", "does not exist here: write cached:"},
        {"cache", "does not exist here: write cached:"},
        {"prompt", "does not exist here: write input:"},
        {"completion", "does not exist here: write output:"}, {NULL, NULL}};

bool load_decimal(struct slice text, uint64_t max, uint64_t *out)
{
	ptrdiff_t point = slice_find_byte(text, '.');
	struct slice whole = slice_of(text.p, point < 0 ? text.n : (size_t)point);
	struct slice part = slice_of(text.p + whole.n + 1, point < 0 ? 0 : text.n - whole.n - 1);
	uint64_t units, millionths = 0;

	if (!slice_to_u64(whole, max / POLICY_MILLIONTHS, &units))
		return false;
	if (point >= 0 &&
	        (part.n > DECIMALS || !slice_to_u64(part, POLICY_MILLIONTHS, &millionths)))
		return false;
	for (size_t i = part.n; point >= 0 && i < DECIMALS; i++)
		millionths *= 10;
	*out = units * POLICY_MILLIONTHS + millionths;
	return *out <= max;
}

/* Reads the mapping of the key. Numbers that the mapping does not have stay as they are. Returns
 * false if the rule has no such mapping. */
static bool take_map(struct rule_parse *p, const char *key, uint32_t out[TOKEN_KINDS])
{
	const struct tree_node *map = tree_get(p->node, key);
	char quoted[TREE_QUOTE_MAX];
	struct slice text;
	uint64_t value;

	if (!map || !tree_is_map(p->tree, map, key))
		return false;
	tree_check_keys(p->tree, map, keys, refused);
	for (int k = 0; k < TOKEN_KINDS; k++) {
		const struct tree_node *node = tree_get(map, policy_token_names[k]);

		if (!node || !tree_text(p->tree, node, policy_token_names[k], TEXT_MAX, &text))
			continue;
		if (load_decimal(text, (uint64_t)WEIGHT_MAX * POLICY_MILLIONTHS, &value))
			out[k] = (uint32_t)value;
		else
			tree_error(p->tree, node,
			        "%s must be a number from 0 to %u with at most six digits behind "
			        "the point, such as 0.25, not %s",
			        policy_token_names[k], WEIGHT_MAX, tree_quote(text, quoted));
	}
	if (!map->first)
		tree_error(p->tree, map,
		        "%s is empty; write %s: {input: 3, cached: 0.3, output: 15}, for example",
		        key, key);
	return true;
}

/* True if the mapping has a limit of tokens or cost. */
static bool has_limit(const struct rule_parse *p, const char *key)
{
	const struct tree_node *map = tree_get(p->node, key);

	return map && (tree_get(map, "tokens") || tree_get(map, "cost"));
}

void load_rule_tokens(struct rule_parse *p)
{
	bool some;

	for (int k = 0; k < TOKEN_KINDS; k++)
		p->rule.token_weights[k] = POLICY_MILLIONTHS;
	some = take_map(p, "weights", p->rule.token_weights);
	some |= take_map(p, "prices", p->rule.token_prices);
	p->rule.counts_tokens = some || model_has_condition(&p->rule, CONDITION_LLM) ||
	                        has_limit(p, "limits") || has_limit(p, "budget");
}

static bool has_prices(const struct model_rule *rule)
{
	for (int k = 0; k < TOKEN_KINDS; k++)
		if (rule->token_prices[k])
			return true;
	return false;
}

/* True if answers to the rule's requests count for limits of that kind. */
static bool is_fed(enum policy_limit_kind kind, const struct model_rule *rule)
{
	return !rule->deny && (kind == POLICY_LIMIT_COST ? has_prices(rule) : rule->counts_tokens);
}

static void report(struct loader *l, const struct mark *at, enum policy_limit_kind kind)
{
	diag_add(l->model.diags, at->file, at->line, at->column,
	        kind == POLICY_LIMIT_COST
	                ? "a limit of cost counts nothing: prices are missing; add prices: "
	                  "{input: 3, output: 15} to a rule that it counts"
	                : "a limit of tokens counts nothing: no rule has llm, weights or prices; "
	                  "add one of these to a rule that it counts");
	l->wrong = true;
}

void load_tokens_check(struct loader *l, struct tree *tree)
{
	const struct mark top = mark_of(tree, tree->root);

	for (size_t i = 0; i < l->model.limit_count; i++) {
		const struct model_limit *limit = &l->model.limits[i];
		const struct model_rule *rule =
		        limit->rule == POLICY_NONE ? NULL : vec_at(&l->model.rules, limit->rule);
		bool fed = limit->floor ||
		           (limit->kind != POLICY_LIMIT_TOKENS && limit->kind != POLICY_LIMIT_COST);

		for (size_t k = 0; k < l->model.rules.n && !fed; k++)
			if (!rule || k == limit->rule)
				fed = is_fed(limit->kind, vec_at(&l->model.rules, k));
		if (!fed)
			report(l, rule ? &rule->mark : &top, limit->kind);
	}
}
