/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the limits into the image: the policy's first, then the rules' in the order of the
 * rules. */
#include "policy/compile/compile.h"

static void compile_limit(struct compiler *c, const struct model_limit *from)
{
	struct image_limit out = {.amount = from->amount,
	        .rule = from->rule,
	        .kind = from->kind,
	        .period_s = from->period_s,
	        .flags = (from->budget ? LIMIT_BUDGET : 0u) | (from->floor ? LIMIT_FLOOR : 0u) |
	                 (from->hosts ? LIMIT_HOSTS : 0u) |
	                 (from->hosts == POLICY_HOSTS_LOCAL ? LIMIT_LOCAL : 0u),
	        .shared = compile_text(c, from->shared)};

	compile_push(c, SECTION_LIMITS, &out);
}

/* The loader has read the rules in their order, so the model has their limits in that order. */
void compile_limits(struct compiler *c)
{
	for (int of_rules = 0; of_rules <= 1; of_rules++)
		for (size_t i = 0; i < c->model->limit_count && !c->failed; i++)
			if ((c->model->limits[i].rule != POLICY_NONE) == of_rules)
				compile_limit(c, &c->model->limits[i]);
}
