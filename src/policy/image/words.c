/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a rule of an opened image says. */
#include "vethguard/policy/words.h"

#include "policy/image/image.h"

static enum policy_rule_kind kind_of(const struct image_rule *r)
{
	if ((r->flags & RULE_DENY) != 0)
		return POLICY_RULE_DENY;
	return (r->flags & RULE_ASK) != 0 ? POLICY_RULE_ASK : POLICY_RULE_ALLOW;
}

bool policy_rule_words(const struct policy *policy, uint32_t rule, struct policy_rule_words *out)
{
	const struct image_rule *r;

	if (rule >= policy_rule_count(policy))
		return false;
	r = image_rule_at(policy, rule);
	*out = (struct policy_rule_words){.kind = kind_of(r),
	        .name = image_slice(policy, r->name),
	        .to = image_slice(policy, r->to),
	        .reason = image_slice(policy, r->text),
	        .conditions = image_slice(policy, r->conditions),
	        .upgrades = image_slice(policy, r->upgrades),
	        .any_method = (r->flags & RULE_METHODS) == 0,
	        .any_path = (r->flags & RULE_PATHS) == 0,
	        .credential = r->credential != POLICY_NONE,
	        .passthrough = (r->flags & RULE_PASSTHROUGH) != 0,
	        .wait_s = r->wait_s};
	return true;
}

bool policy_rule_method(const struct policy *policy, uint32_t rule, uint32_t *at, struct slice *out)
{
	const struct image_text *names = image_section(policy, SECTION_METHODS);
	const struct image_rule *r = image_rule_at(policy, rule);

	while ((r->flags & RULE_METHODS) != 0 && *at < image_count(policy, SECTION_METHODS)) {
		uint32_t i = (*at)++;

		if ((r->methods >> i & 1) == 0)
			continue;
		*out = image_slice(policy, names[i]);
		return true;
	}
	return false;
}

bool policy_rule_path(const struct policy *policy, uint32_t rule, uint32_t *at, struct slice *out)
{
	const struct image_rule *r = image_rule_at(policy, rule);

	if ((r->flags & RULE_PATHS) == 0 || *at >= r->pattern_count)
		return false;
	*out = image_slice(policy, image_pattern_at(policy, r->first_pattern + (*at)++)->text);
	return true;
}
