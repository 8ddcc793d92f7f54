/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: find the targets that name the destination. For a request, look up each
 * literal start of its path among the nodes of each target's profile; that leaves the few (entry,
 * pattern) pairs that could match.
 * - Denies are looked up by the shortest reading of the path, which is made when the first of them
 *   needs it. The first deny that matches ends the search. The exceptions of a deny are looked
 *   up only if its scheme and port agree.
 * - Of the allows the most specific is kept. Targets come most specific first, so a later target
 *   never beats an earlier one; inside a target the rank of the pattern decides.
 * - A connection (no method yet) is denied only by denies that name no method and no path, and is
 *   allowed if some request could be.
 *
 * Nothing here allocates or fails.
 */
#include "policy/decide/condition.h"
#include "policy/decide/search.h"
#include "policy/url/pattern.h"

#define RULE_SPEAKS (RULE_MCP | RULE_GRAPHQL)

bool search_entry_agrees(
        const struct search *s, const struct image_entry *e, const struct image_rule *r)
{
	const struct policy_request *request = s->question->request;

	return scheme_agrees(e->scheme, (r->flags & RULE_DENY) != 0, request->scheme) &&
	       port_agrees(s->policy, e, request->port) &&
	       !((r->flags & RULE_EXCEPT) != 0 &&
	               lookup_excepts(s->policy, s->found, request, e->rule));
}

bool search_beats(const struct search *s, uint32_t target, uint32_t rank, uint32_t rule,
        uint32_t best_target, uint32_t best_rank, uint32_t best)
{
	const struct image_rule *mine, *other;

	if (best == POLICY_NONE)
		return true;
	mine = image_rule_at(s->policy, rule);
	other = image_rule_at(s->policy, best);
	if (mine->wait_s != other->wait_s && (mine->wait_s == 0 || other->wait_s == 0))
		return mine->wait_s > 0; /* an ask rule beats every allow rule */
	if (target != best_target || rank != best_rank)
		return target == best_target && rank > best_rank;
	if ((mine->condition_count == 0) != (other->condition_count == 0))
		return other->condition_count == 0;
	if ((mine->credential == POLICY_NONE) != (other->credential == POLICY_NONE))
		return other->credential == POLICY_NONE;
	return rule < best;
}

/* True if the request meets the rule's conditions; otherwise notes why not. */
static bool conditions_allow(struct search *s, uint32_t target, uint32_t rank, uint32_t rule)
{
	const struct image_rule *r = image_rule_at(s->policy, rule);
	enum condition_answer answer;

	if ((r->flags & RULE_CONDITIONS) == 0)
		return true;
	answer = condition_decide(s->policy, s->question->request, r);
	if (answer == CONDITION_MET)
		return true;
	s->unmet = true;
	if (answer == CONDITION_OPEN &&
	        search_beats(s, target, rank, rule, s->open_target, s->open_rank, s->open)) {
		s->open = rule;
		s->open_rank = rank;
		s->open_target = target;
	}
	return false;
}

static void note_speech(struct search *s, const struct image_candidate *c,
        const struct image_rule *r, struct path_view *view)
{
	const struct image_pattern *p =
	        c->pattern == POLICY_NONE ? NULL : image_pattern_at(s->policy, c->pattern);
	uint32_t speaks = r->flags & RULE_SPEAKS;

	if ((s->speaks & speaks) == speaks ||
	        !search_entry_agrees(s, image_entry_at(s->policy, c->entry), r))
		return;
	if (!p ||
	        ((r->flags & RULE_DENY) != 0 ? lookup_denies(s->policy, p, view)
	                                     : lookup_allows(s->policy, p, view) == LOOKUP_MATCHES))
		s->speaks |= speaks;
}

static void search_allow(
        struct search *s, uint32_t target, const struct image_candidate *c, struct path_view *view)
{
	const struct image_entry *e = image_entry_at(s->policy, c->entry);
	const struct image_rule *r = image_rule_at(s->policy, e->rule);
	uint32_t rank = 0;

	if ((r->flags & RULE_SPEAKS) != 0)
		note_speech(s, c, r, view);
	if (!search_entry_agrees(s, e, r) || !(s->any_method || method_agrees(s->question, r)))
		return;
	if (c->pattern != POLICY_NONE) {
		const struct image_pattern *pattern = image_pattern_at(s->policy, c->pattern);
		enum lookup_match match = lookup_allows(s->policy, pattern, view);

		s->misread |= match == LOOKUP_MISREAD;
		if (match != LOOKUP_MATCHES)
			return;
		rank = pattern->rank;
	}
	if (!search_beats(s, target, rank, e->rule, s->allow_target, s->allow_rank, s->allow) ||
	        !conditions_allow(s, target, rank, e->rule))
		return;
	s->allow = e->rule;
	s->allow_rank = rank;
	s->allow_target = target;
}

static void search_deny(struct search *s, const struct image_candidate *c, struct path_view *view)
{
	const struct image_entry *e = image_entry_at(s->policy, c->entry);
	const struct image_rule *r = image_rule_at(s->policy, e->rule);
	enum condition_answer answer = CONDITION_MET;

	if ((r->flags & RULE_SPEAKS) != 0)
		note_speech(s, c, r, view);
	if (!search_entry_agrees(s, e, r) || !method_agrees(s->question, r) ||
	        (c->pattern != POLICY_NONE &&
	                !lookup_denies(s->policy, image_pattern_at(s->policy, c->pattern), view)))
		return;
	if ((r->flags & RULE_CONDITIONS) != 0)
		answer = condition_decide(s->policy, s->question->request, r);
	if (answer == CONDITION_MET && (r->flags & RULE_ASK) != 0)
		s->asked = r->wait_s - 1;
	else if (answer == CONDITION_MET)
		s->deny = e->rule;
	s->deny_open |= answer == CONDITION_OPEN;
}

/* Judges the candidates filed under one literal start. */
static void search_start(
        struct search *s, uint32_t target, bool deny, struct slice start, struct path_view *view)
{
	uint32_t profile = image_target_at(s->policy, target)->profile;
	uint32_t index = lookup_node(s->policy, profile, deny, start);
	const struct image_node *node;

	if (index == POLICY_NONE)
		return;
	node = image_node_at(s->policy, index);
	for (uint32_t i = 0; i < node->candidate_count && s->deny == POLICY_NONE; i++) {
		const struct image_candidate *c =
		        image_candidate_at(s->policy, node->first_candidate + i);

		if (deny)
			search_deny(s, c, view);
		else
			search_allow(s, target, c, view);
	}
}

void search_path(struct search *s, uint32_t target, bool deny, struct path_view *view)
{
	const struct image_starts *starts =
	        &image_profile_at(s->policy, image_target_at(s->policy, target)->profile)
	                 ->starts[deny];
	uint32_t depths = starts->depths;
	struct slice path = view->path;
	size_t end = 0;

	if (deny && depths > 1) {
		path_view_make(view);
		path = view->shortest;
	}
	for (unsigned depth = 0; depth <= IMAGE_DEPTH_MAX && s->deny == POLICY_NONE; depth++) {
		const char *slash;

		if ((depths & 1u << depth) != 0)
			search_start(s, target, deny, slice_of(path.p, end), view);
		if (end >= path.n || end >= starts->longest || depths >> depth <= 1)
			return;
		slash = memchr(path.p + end + 1, '/', path.n - end - 1);
		end = slash ? (size_t)(slash - path.p) : path.n;
	}
}

/* Judges all denies of a profile one by one: for paths whose readings do not share one literal
 * start. */
static void search_all_denies(struct search *s, uint32_t target, struct path_view *view)
{
	const struct image_profile *p =
	        image_profile_at(s->policy, image_target_at(s->policy, target)->profile);

	for (uint32_t k = 0; k < p->deny && s->deny == POLICY_NONE; k++) {
		struct image_candidate c = {
		        .entry = image_ref_at(s->policy, p->first_ref + k), .pattern = POLICY_NONE};
		const struct image_rule *r =
		        image_rule_at(s->policy, image_entry_at(s->policy, c.entry)->rule);

		if ((r->flags & RULE_PATHS) == 0)
			search_deny(s, &c, view);
		for (uint32_t i = 0; i < r->pattern_count && s->deny == POLICY_NONE; i++) {
			c.pattern = r->first_pattern + i;
			search_deny(s, &c, view);
		}
	}
}

static void search_denies(struct search *s, uint32_t target, struct path_view *view)
{
	if (image_profile_at(s->policy, image_target_at(s->policy, target)->profile)->deny == 0)
		return;
	if (path_view_has_two_cuts(view))
		search_all_denies(s, target, view);
	else
		search_path(s, target, true, view);
}

void search_request(struct search *s, const struct found *found)
{
	struct path_view view;

	path_view_init(&view, s->question->request->path);
	for (uint32_t i = 0; i < found->count && s->deny == POLICY_NONE; i++)
		search_denies(s, found->targets[i], &view);
	for (uint32_t i = 0; i < found->count && s->deny == POLICY_NONE; i++)
		search_path(s, found->targets[i], false, &view);
}

uint32_t search_first_agreeing(const struct search *s, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t entry = image_ref_at(s->policy, first + i);
		const struct image_entry *e = image_entry_at(s->policy, entry);

		if (search_entry_agrees(s, e, image_rule_at(s->policy, e->rule)))
			return entry;
	}
	return POLICY_NONE;
}

/* Returns the entry of a profile's allow that decides about a connection, or POLICY_NONE: the one
 * written first, or over tcp the first one with a credential, if there is one. */
static uint32_t first_allow(const struct search *s, const struct image_profile *p)
{
	uint32_t first = search_first_agreeing(s, p->first_ref + p->deny, p->ref_count - p->deny);

	if (s->question->request->scheme != POLICY_TCP)
		return first;
	for (uint32_t i = p->deny; first != POLICY_NONE && i < p->ref_count; i++) {
		uint32_t entry = image_ref_at(s->policy, p->first_ref + i);
		const struct image_entry *e = image_entry_at(s->policy, entry);
		const struct image_rule *r = image_rule_at(s->policy, e->rule);

		if (r->credential != POLICY_NONE && search_entry_agrees(s, e, r))
			return entry;
	}
	return first;
}

void search_connection(struct search *s, const struct found *found)
{
	for (uint32_t i = 0; i < found->count; i++) {
		const struct image_profile *p = image_profile_at(
		        s->policy, image_target_at(s->policy, found->targets[i])->profile);
		uint32_t entry = search_first_agreeing(s, p->first_ref, p->deny_connection);

		if (entry != POLICY_NONE) {
			s->deny = image_entry_at(s->policy, entry)->rule;
			return;
		}
		if (s->allow != POLICY_NONE)
			continue;
		entry = first_allow(s, p);
		if (entry != POLICY_NONE) {
			s->allow = image_entry_at(s->policy, entry)->rule;
			s->allow_target = found->targets[i];
		}
	}
}
