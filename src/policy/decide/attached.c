/* SPDX-License-Identifier: Apache-2.0 */
/* Which credentials belong to a destination: those that rules attach there for any request. */
#include "policy/decide/lookup.h"

_Static_assert(POLICY_CREDENTIALS_MAX <= 64, "one bit for each");

/* The credential that the entry attaches, as a bit. */
static uint64_t bit_of(
        const struct policy *policy, const struct policy_request *request, uint32_t entry)
{
	const struct image_entry *e = image_entry_at(policy, entry);
	uint32_t credential = image_rule_at(policy, e->rule)->credential;

	if (credential == POLICY_NONE || !scheme_agrees(e->scheme, false, request->scheme) ||
	        !port_agrees(policy, e, request->port))
		return 0;
	return UINT64_C(1) << credential;
}

uint64_t policy_credentials_at(const struct policy *policy, const struct policy_request *request)
{
	struct question q;
	struct found found;
	uint64_t bits = 0;

	if (!question_prepare(policy, request, &q))
		return 0;
	lookup_targets(policy, request, &found);
	for (uint32_t i = 0; i < found.count; i++) {
		const struct image_profile *p = image_profile_at(
		        policy, image_target_at(policy, found.targets[i])->profile);

		for (uint32_t k = p->deny; k < p->ref_count; k++)
			bits |= bit_of(policy, request, image_ref_at(policy, p->first_ref + k));
	}
	return bits;
}
