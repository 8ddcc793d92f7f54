/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the limits that an allowed request counts against: the policy's, then the rule's. */
#include "cli/policy/explain.h"
#include "vethguard/policy/limits.h"

static bool is_counted(const struct explain *x)
{
	return x->decision.verdict == POLICY_ALLOW && policy_limit_count(&x->loaded.policy) > 0;
}

static void print_limit(const struct policy *policy, uint32_t index, const char *before)
{
	struct policy_limit limit;
	char text[POLICY_LIMIT_TEXT_MAX], rule[POLICY_NAME_MAX + 4],
	        shared[POLICY_LIMIT_SHARED_MAX];

	policy_limit(policy, index, &limit);
	slice_escape(policy_rule_name(policy, limit.rule), rule, sizeof(rule));
	printf("%s%s%s of %s%s%s", before, limit.budget ? "budget " : "",
	        policy_limit_text(&limit, text),
	        rule[0]       ? "rule "
	        : limit.floor ? "the floor"
	                      : "the policy",
	        rule, policy_limit_shared_text(&limit, shared));
}

void explain_limits_text(const struct explain *x)
{
	const uint32_t of[] = {POLICY_NONE, x->decision.rule};
	const char *before = "limits: ";
	uint32_t first, count;

	if (!is_counted(x))
		return;
	for (size_t k = 0; k < (of[1] == POLICY_NONE ? 1u : 2u); k++) {
		policy_limits_of(&x->loaded.policy, of[k], &first, &count);
		for (uint32_t i = 0; i < count; i++, before = "; ")
			print_limit(&x->loaded.policy, first + i, before);
	}
	if (before[0] == ';')
		printf("\n");
}

static void write_limit(const struct policy *policy, uint32_t index, struct json *j)
{
	struct policy_limit limit;

	policy_limit(policy, index, &limit);
	json_object(j, NULL);
	if (limit.rule != POLICY_NONE)
		json_string(j, "rule", policy_rule_name(policy, limit.rule), 0);
	if (limit.floor)
		json_literal(j, "layer", policy_layer_name(POLICY_LAYER_FLOOR));
	json_literal(j, "kind", policy_limit_kind_name(limit.kind));
	json_uint(j, "amount", limit.amount);
	if (limit.period_s)
		json_uint(j, "period_s", limit.period_s);
	json_bool(j, "budget", limit.budget);
	if (limit.shared.n)
		json_string(j, "shared", limit.shared, 0);
	if (limit.hosts)
		json_literal(j, "hosts", policy_hosts_word(limit.hosts));
	json_end_object(j);
}

void explain_limits_json(const struct explain *x, struct json *j)
{
	const uint32_t of[] = {POLICY_NONE, x->decision.rule};
	uint32_t first, count;

	if (!is_counted(x))
		return;
	json_array(j, "limits");
	for (size_t k = 0; k < (of[1] == POLICY_NONE ? 1u : 2u); k++) {
		policy_limits_of(&x->loaded.policy, of[k], &first, &count);
		for (uint32_t i = 0; i < count; i++)
			write_limit(&x->loaded.policy, first + i, j);
	}
	json_end_array(j);
}
