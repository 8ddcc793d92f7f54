/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a rule's conditions on requests to APIs of language models: llm, with models and a bound
 * for the tokens of a request's answers. They become one condition. */
#include "policy/rules/rule.h"

#define TOKENS_MAX 1000000000u

static bool check_tokens(struct rule_parse *p, const struct tree_node *node, struct slice text)
{
	uint64_t tokens;

	(void)text;
	return tree_uint(p->tree, node, "max_output_tokens", 1, TOKENS_MAX, &tokens);
}

void load_rule_llm(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const keys[] = {"models", "max_output_tokens", NULL};
	struct tree_node *tokens = tree_get(node, "max_output_tokens");
	const struct rule_names lists[] = {{tree_get(node, "models"), "models", "a model's name",
	                                           "model", LLM_VALUE_MODEL, NULL, NULL},
	        {tokens, "max_output_tokens", "max_output_tokens", "most tokens", LLM_VALUE_TOKENS,
	                check_tokens, NULL}};

	if (!tree_is_map(p->tree, node, "llm") || !tree_check_keys(p->tree, node, keys, NULL))
		return;
	if (!lists[0].node && !tokens)
		tree_error(p->tree, node,
		        "llm needs models or max_output_tokens: {models: [\"gpt-4o-mini*\"], "
		        "max_output_tokens: 4096}");
	else if (tokens && tokens->kind != TREE_SCALAR)
		tree_error(p->tree, tokens, "max_output_tokens is one number");
	else if (tokens && p->rule.deny)
		tree_error(p->tree, tokens,
		        "max_output_tokens belongs to allow rules: a deny rule names models");
	else
		load_rule_names(p, CONDITION_LLM, lists, 2);
}
