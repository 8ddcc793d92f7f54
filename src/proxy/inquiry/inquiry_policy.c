/* SPDX-License-Identifier: Apache-2.0 */
/* What the sandbox may do by its policy, rule by rule. */
#include "proxy/exchange/exchange.h"
#include "proxy/inquiry/inquiry.h"
#include "proxy/inquiry/inquiry_page.h"
#include "vethguard/policy/words.h"

static const char *const kinds[] = {
        [POLICY_RULE_ALLOW] = "allow",
        [POLICY_RULE_ASK] = "ask",
        [POLICY_RULE_DENY] = "deny",
};

static void put_lists(struct page *page, const struct policy *policy, uint32_t rule,
        const struct policy_rule_words *w)
{
	struct slice text;
	uint32_t at = 0;

	if (!w->any_method) {
		page_list(page, "methods");
		while (policy_rule_method(policy, rule, &at, &text))
			page_item(page, text);
		page_list_end(page);
	}
	if (!w->any_path) {
		page_list(page, "paths");
		for (at = 0; policy_rule_path(policy, rule, &at, &text);)
			page_item(page, text);
		page_list_end(page);
	}
}

static void put_rule(struct page *page, const struct policy *policy, uint32_t rule)
{
	struct policy_rule_words w;

	if (!policy_rule_words(policy, rule, &w))
		return;
	page_object(page);
	page_text(page, "rule", w.name);
	page_text(page, "kind", slice_from_string(kinds[w.kind]));
	page_text(page, "to", w.to);
	put_lists(page, policy, rule, &w);
	if (w.conditions.n)
		page_text(page, "conditions", w.conditions);
	if (w.upgrades.n)
		page_text(page, "upgrades", w.upgrades);
	if (w.reason.n)
		page_text(page, "reason", w.reason);
	if (w.wait_s && w.kind == POLICY_RULE_ASK)
		page_number(page, "held_for_s", w.wait_s);
	if (w.credential)
		page_text(page, "credential",
		        SLICE("attached outside of the sandbox: send no key of your own"));
	page_object_end(page);
}

void inquiry_put_policy(const struct proxy *proxy, struct page *page)
{
	const struct policy *policy = proxy->config.policy;
	uint32_t count = policy_rule_count(policy);

	page_text(page, "policy", policy_name(policy));
	page_text(page, "meaning",
	        policy_mode(policy) == POLICY_OBSERVE
	                ? SLICE("What no rule allows is let through and recorded.")
	                : SLICE("What no rule allows is refused. Deny beats ask, and ask beats "
	                        "allow. A rule without methods or paths is for all of them."));
	page_number(page, "rule_count", count);
	page_list(page, "rules");
	for (uint32_t i = 0; i < count && i < INQUIRY_RULES_MAX; i++)
		put_rule(page, policy, i);
	page_list_end(page);
}
