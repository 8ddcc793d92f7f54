/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: for each rule, every entry that one of the request's targets has from the
 * rule is compared with the request part by part. The rule is reported with the part at which the
 * best of its entries failed. The tests are those of decide.c, in the same order, without its
 * shortcuts. The verdict is not formed here.
 */
#include "vethguard/policy/explain.h"
#include "policy/decide/condition.h"
#include "policy/decide/lookup.h"
#include "policy/url/pattern.h"

/* How far an entry got: the part at which it failed. */
enum progress { AT_HOST, AT_SCHEME, AT_PORT, AT_EXCEPT, AT_METHOD, AT_PATH, AT_CONDITION, AT_END };

static const enum policy_match matches[] = {
        [AT_HOST] = POLICY_MISS_HOST,
        [AT_SCHEME] = POLICY_MISS_SCHEME,
        [AT_PORT] = POLICY_MISS_PORT,
        [AT_EXCEPT] = POLICY_MISS_EXCEPT,
        [AT_METHOD] = POLICY_MISS_METHOD,
        [AT_PATH] = POLICY_MISS_PATH,
        [AT_CONDITION] = POLICY_MISS_CONDITION,
        [AT_END] = POLICY_MATCHES,
};

struct explanation {
	const struct policy *policy;
	struct question question;
	struct found found;
	struct path_view view;
	bool by_reading; /* a reading of the path made the difference for the current rule */
};

static bool path_agrees(struct explanation *x, const struct image_rule *r)
{
	bool deny = (r->flags & RULE_DENY) != 0;

	if ((r->flags & RULE_PATHS) == 0)
		return true;
	for (uint32_t i = 0; i < r->pattern_count; i++) {
		const struct image_pattern *pattern =
		        image_pattern_at(x->policy, r->first_pattern + i);
		bool written = pattern_matches(
		        image_slice(x->policy, pattern->text), x->question.request->path);
		bool agrees = deny ? lookup_denies(x->policy, pattern, &x->view)
		                   : lookup_allows(x->policy, pattern, &x->view) == LOOKUP_MATCHES;

		x->by_reading |= agrees != written;
		if (agrees)
			return true;
	}
	return false;
}

static enum progress decide_entry(
        struct explanation *x, const struct image_entry *e, const struct image_rule *r)
{
	const struct policy_request *request = x->question.request;
	bool deny = (r->flags & RULE_DENY) != 0;

	if (!scheme_agrees(e->scheme, deny, request->scheme))
		return AT_SCHEME;
	if (!port_agrees(x->policy, e, request->port))
		return AT_PORT;
	if ((r->flags & RULE_EXCEPT) != 0 && lookup_excepts(x->policy, &x->found, request, e->rule))
		return AT_EXCEPT;
	if (x->question.connection) {
		/* a deny for some requests does not deny the connection that carries them */
		if (deny && (r->flags & RULE_METHODS) != 0)
			return AT_METHOD;
		if (deny && (r->flags & RULE_PATHS) != 0)
			return AT_PATH;
		return deny && (r->flags & RULE_CONDITIONS) != 0 ? AT_CONDITION : AT_END;
	}
	if (!method_agrees(&x->question, r))
		return AT_METHOD;
	if (!path_agrees(x, r))
		return AT_PATH;
	return (r->flags & RULE_CONDITIONS) == 0 ||
	                       condition_decide(x->policy, request, r) == CONDITION_MET
	               ? AT_END
	               : AT_CONDITION;
}

static enum policy_match decide_rule(struct explanation *x, uint32_t rule)
{
	const struct image_rule *r = image_rule_at(x->policy, rule);
	enum progress best = AT_HOST;

	for (uint32_t i = 0; i < x->found.count; i++) {
		const struct image_profile *p = image_profile_at(
		        x->policy, image_target_at(x->policy, x->found.targets[i])->profile);

		for (uint32_t k = 0; k < p->ref_count; k++) {
			const struct image_entry *e = image_entry_at(
			        x->policy, image_ref_at(x->policy, p->first_ref + k));
			enum progress progress = e->rule == rule ? decide_entry(x, e, r) : AT_HOST;

			if (progress > best)
				best = progress;
		}
	}
	return matches[best];
}

void policy_explain(const struct policy *policy, const struct policy_request *request,
        void (*each)(void *context, const struct policy_rule_report *report), void *context)
{
	struct explanation x = {.policy = policy};

	if (question_prepare(policy, request, &x.question)) {
		lookup_targets(policy, request, &x.found);
		if (!x.question.connection)
			path_view_init(&x.view, request->path);
	}
	for (uint32_t i = 0; i < policy_rule_count(policy); i++) {
		const struct image_rule *r = image_rule_at(policy, i);
		struct policy_rule_report report;

		x.by_reading = false;
		report = (struct policy_rule_report){
		        .rule = i,
		        .deny = (r->flags & RULE_DENY) != 0,
		        .asks = (r->flags & RULE_ASK) != 0,
		        .match = decide_rule(&x, i),
		        .name = image_slice(policy, r->name),
		        .to = image_slice(policy, r->to),
		        .file = image_slice(policy, r->file),
		        .line = r->line,
		};

		if (x.by_reading) {
			path_view_make(&x.view);
			report.reading = x.view.shortest;
		}
		each(context, &report);
	}
}
