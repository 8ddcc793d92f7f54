/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions call this while a denial is decided a second time (refusal_explain.c). */
#include "policy/decide/refusal.h"

#include <stdio.h>

bool refusal_note(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, enum refusal_weight weight, const char *what,
        struct slice name, const char *why)
{
	struct policy_refusal *r = request->refusal;
	char shown[POLICY_REFUSAL_NAME_MAX];

	if (!r || weight <= r->weight)
		return false;
	r->weight = weight;
	r->rule = (uint32_t)(rule - image_rule_at(policy, 0));
	if (name.n)
		snprintf(r->text, sizeof(r->text), "%s \"%s\" %s", what,
		        slice_escape(name, shown, sizeof(shown)), why);
	else
		snprintf(r->text, sizeof(r->text), "%s %s", what, why);
	return false;
}
