/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles what becomes of secrets in requests: the policy's setting, then the rules' in their
 * order. */
#include "policy/compile/compile.h"

static void push(struct compiler *c, uint32_t rule, const struct dlp_settings *settings)
{
	const struct image_dlp out = {rule, settings->mode, settings->except};

	compile_push(c, SECTION_DLPS, &out);
}

void compile_dlps(struct compiler *c)
{
	if (c->model->has_dlp)
		push(c, POLICY_NONE, &c->model->dlp);
	for (uint32_t i = 0; i < c->model->rules.n && !c->failed; i++) {
		const struct model_rule *rule = vec_at(&c->model->rules, i);

		if (rule->has_dlp && !rule->deny)
			push(c, i, &rule->dlp);
	}
}
