/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: find the targets that name the destination. For a request, look up each
 * literal start of its path among the nodes of each target's profile; that leaves the few (entry,
 * pattern) pairs that could match.
 * - Denies are looked up by the shortest reading of the path, which is made when the first of them
 *   needs it. The first deny that matches ends the search. A deny with exceptions is asked about
 *   them only when it would match.
 * - Of the allows the most specific is kept. Targets come most specific first, so a later target
 *   never beats an earlier one; inside a target the rank of the pattern decides.
 * - A connection (no method yet) is denied only by denies that name no method and no path, and is
 *   allowed if some request could be.
 *
 * Only a denial walks all entries of its targets, to say what was missing. Nothing here allocates
 * or fails.
 */
#include "policy/decide/condition.h"
#include "policy/decide/lookup.h"
#include "policy/pattern.h"

#define RULE_SPEAKS (RULE_MCP | RULE_GRAPHQL)

struct state {
	const struct policy *policy;
	const struct question *question;
	const struct found *found;
	uint32_t deny;  /* rule, or POLICY_NONE */
	uint32_t allow; /* rule of the best allow so far, or POLICY_NONE */
	uint32_t allow_rank;
	uint32_t allow_target;
	/* The best allow whose conditions depend on a body that was not read yet. */
	uint32_t open, open_rank, open_target;
	bool deny_open;  /* a deny depends on it */
	uint32_t asked;  /* an ask rule whose shadow matches the request, or POLICY_NONE */
	bool misread;    /* an allow did not match because of another reading of the path */
	bool unmet;      /* an allow did not match because of its conditions */
	bool any_method; /* judge as if every allow named the method */
	uint32_t speaks; /* RULE_MCP, RULE_GRAPHQL: a rule with such a condition matches the
	                    path, whatever its methods */
};

#define STATE_START(policy_, question_, found_)                                         \
	{                                                                               \
		.policy = (policy_), .question = (question_), .found = (found_),        \
		.deny = POLICY_NONE, .allow = POLICY_NONE, .allow_target = POLICY_NONE, \
		.open = POLICY_NONE, .open_target = POLICY_NONE, .asked = POLICY_NONE   \
	}

static bool entry_agrees(
        const struct state *s, const struct image_entry *e, const struct image_rule *r)
{
	const struct policy_request *request = s->question->request;

	return scheme_agrees(e->scheme, (r->flags & RULE_DENY) != 0, request->scheme) &&
	       port_agrees(s->policy, e, request->port) &&
	       !((r->flags & RULE_EXCEPT) != 0 &&
	               lookup_excepts(s->policy, s->found, request, e->rule));
}

/* Decides between two allows with the same rank on one target: one with conditions wins, then one
 * with a credential, then the one written first. best: POLICY_NONE if there is none yet. */
static bool beats(const struct state *s, uint32_t target, uint32_t rank, uint32_t rule,
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
static bool conditions_allow(struct state *s, uint32_t target, uint32_t rank, uint32_t rule)
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
	        beats(s, target, rank, rule, s->open_target, s->open_rank, s->open)) {
		s->open = rule;
		s->open_rank = rank;
		s->open_target = target;
	}
	return false;
}

static void note_speech(struct state *s, const struct image_candidate *c,
        const struct image_rule *r, struct path_view *view)
{
	const struct image_pattern *p =
	        c->pattern == POLICY_NONE ? NULL : image_pattern_at(s->policy, c->pattern);
	uint32_t speaks = r->flags & RULE_SPEAKS;

	if ((s->speaks & speaks) == speaks ||
	        !entry_agrees(s, image_entry_at(s->policy, c->entry), r))
		return;
	if (!p ||
	        ((r->flags & RULE_DENY) != 0 ? lookup_denies(s->policy, p, view)
	                                     : lookup_allows(s->policy, p, view) == LOOKUP_MATCHES))
		s->speaks |= speaks;
}

static void decide_allow(
        struct state *s, uint32_t target, const struct image_candidate *c, struct path_view *view)
{
	const struct image_entry *e = image_entry_at(s->policy, c->entry);
	const struct image_rule *r = image_rule_at(s->policy, e->rule);
	uint32_t rank = 0;

	if ((r->flags & RULE_SPEAKS) != 0)
		note_speech(s, c, r, view);
	if (!entry_agrees(s, e, r) || !(s->any_method || method_agrees(s->question, r)))
		return;
	if (c->pattern != POLICY_NONE) {
		const struct image_pattern *pattern = image_pattern_at(s->policy, c->pattern);
		enum lookup_match match = lookup_allows(s->policy, pattern, view);

		s->misread |= match == LOOKUP_MISREAD;
		if (match != LOOKUP_MATCHES)
			return;
		rank = pattern->rank;
	}
	if (!beats(s, target, rank, e->rule, s->allow_target, s->allow_rank, s->allow) ||
	        !conditions_allow(s, target, rank, e->rule))
		return;
	s->allow = e->rule;
	s->allow_rank = rank;
	s->allow_target = target;
}

static void decide_deny(struct state *s, const struct image_candidate *c, struct path_view *view)
{
	const struct image_entry *e = image_entry_at(s->policy, c->entry);
	const struct image_rule *r = image_rule_at(s->policy, e->rule);
	enum condition_answer answer = CONDITION_MET;

	if ((r->flags & RULE_SPEAKS) != 0)
		note_speech(s, c, r, view);
	if (!entry_agrees(s, e, r) || !method_agrees(s->question, r) ||
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
static void decide_start(
        struct state *s, uint32_t target, bool deny, struct slice start, struct path_view *view)
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
			decide_deny(s, c, view);
		else
			decide_allow(s, target, c, view);
	}
}

/* Tries every literal start of the path at whose depth the profile has a node. */
static void decide_path(struct state *s, uint32_t target, bool deny, struct path_view *view)
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
			decide_start(s, target, deny, slice_of(path.p, end), view);
		if (end >= path.n || end >= starts->longest || depths >> depth <= 1)
			return;
		slash = memchr(path.p + end + 1, '/', path.n - end - 1);
		end = slash ? (size_t)(slash - path.p) : path.n;
	}
}

/* Judges all denies of a profile one by one: for paths whose readings do not share one literal
 * start. */
static void decide_all_denies(struct state *s, uint32_t target, struct path_view *view)
{
	const struct image_profile *p =
	        image_profile_at(s->policy, image_target_at(s->policy, target)->profile);

	for (uint32_t k = 0; k < p->deny && s->deny == POLICY_NONE; k++) {
		struct image_candidate c = {
		        .entry = image_ref_at(s->policy, p->first_ref + k), .pattern = POLICY_NONE};
		const struct image_rule *r =
		        image_rule_at(s->policy, image_entry_at(s->policy, c.entry)->rule);

		if ((r->flags & RULE_PATHS) == 0)
			decide_deny(s, &c, view);
		for (uint32_t i = 0; i < r->pattern_count && s->deny == POLICY_NONE; i++) {
			c.pattern = r->first_pattern + i;
			decide_deny(s, &c, view);
		}
	}
}

static void decide_denies(struct state *s, uint32_t target, struct path_view *view)
{
	if (image_profile_at(s->policy, image_target_at(s->policy, target)->profile)->deny == 0)
		return;
	if (path_view_has_two_cuts(view))
		decide_all_denies(s, target, view);
	else
		decide_path(s, target, true, view);
}

static __attribute__((noinline)) void decide_request(struct state *s, const struct found *found)
{
	struct path_view view;

	path_view_init(&view, s->question->request->path);
	for (uint32_t i = 0; i < found->count && s->deny == POLICY_NONE; i++)
		decide_denies(s, found->targets[i], &view);
	for (uint32_t i = 0; i < found->count && s->deny == POLICY_NONE; i++)
		decide_path(s, found->targets[i], false, &view);
}

/* The first agreeing entry among count refs of a profile from first on, or POLICY_NONE. */
static uint32_t first_agreeing(const struct state *s, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t entry = image_ref_at(s->policy, first + i);
		const struct image_entry *e = image_entry_at(s->policy, entry);

		if (entry_agrees(s, e, image_rule_at(s->policy, e->rule)))
			return entry;
	}
	return POLICY_NONE;
}

/* The allow among them that decides: one with a credential, else the one written first. */
static uint32_t first_allow(const struct state *s, const struct image_profile *p)
{
	uint32_t first = first_agreeing(s, p->first_ref + p->deny, p->ref_count - p->deny);

	if (s->question->request->scheme != POLICY_TCP)
		return first;
	for (uint32_t i = p->deny; first != POLICY_NONE && i < p->ref_count; i++) {
		uint32_t entry = image_ref_at(s->policy, p->first_ref + i);
		const struct image_entry *e = image_entry_at(s->policy, entry);
		const struct image_rule *r = image_rule_at(s->policy, e->rule);

		if (r->credential != POLICY_NONE && entry_agrees(s, e, r))
			return entry;
	}
	return first;
}

static void decide_connection(struct state *s, const struct found *found)
{
	for (uint32_t i = 0; i < found->count; i++) {
		const struct image_profile *p = image_profile_at(
		        s->policy, image_target_at(s->policy, found->targets[i])->profile);
		uint32_t entry = first_agreeing(s, p->first_ref, p->deny_connection);

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

/* True if the path is allowed, but only by other methods than this one. */
static bool another_method_may(const struct state *s, const struct found *found)
{
	struct state other = STATE_START(s->policy, s->question, found);
	struct path_view view;

	other.any_method = true;
	path_view_init(&view, s->question->request->path);
	for (uint32_t i = 0; i < found->count && other.allow == POLICY_NONE; i++)
		decide_path(&other, found->targets[i], false, &view);
	return other.allow != POLICY_NONE || other.open != POLICY_NONE;
}

/* What was missing: how far the best allow entry of the targets got. If one rule lacks the method
 * and another the path, the reason is the method if some rule allows the path. */
static enum policy_reason why_denied(const struct state *s, const struct found *found)
{
	enum policy_reason reason = POLICY_REASON_DEFAULT;

	if (s->misread)
		return POLICY_REASON_READING;
	if (s->unmet)
		return POLICY_REASON_CONDITION;
	for (uint32_t i = 0; i < found->count; i++) {
		const struct image_profile *p = image_profile_at(
		        s->policy, image_target_at(s->policy, found->targets[i])->profile);

		for (uint32_t k = p->deny; k < p->ref_count; k++) {
			const struct image_entry *e = image_entry_at(
			        s->policy, image_ref_at(s->policy, p->first_ref + k));
			const struct image_rule *r = image_rule_at(s->policy, e->rule);

			if (reason == POLICY_REASON_DEFAULT)
				reason = POLICY_REASON_PORT;
			if (!entry_agrees(s, e, r))
				continue;
			if (method_agrees(s->question, r))
				return another_method_may(s, found) ? POLICY_REASON_METHOD
				                                    : POLICY_REASON_PATH;
			reason = POLICY_REASON_METHOD;
		}
	}
	return reason;
}

/* True if a deny for some methods or paths requires that the requests be seen. */
static bool needs_requests(const struct state *s, const struct found *found)
{
	for (uint32_t i = 0; i < found->count; i++) {
		const struct image_profile *p = image_profile_at(
		        s->policy, image_target_at(s->policy, found->targets[i])->profile);

		if (first_agreeing(s, p->first_ref + p->deny_connection,
		            p->deny - p->deny_connection) != POLICY_NONE)
			return true;
	}
	return false;
}

static void deny(struct policy_decision *out, enum policy_reason reason)
{
	*out = (struct policy_decision){.verdict = POLICY_DENY,
	        .reason = reason,
	        .rule = POLICY_NONE,
	        .credential = POLICY_NONE};
}

/* Denies; in mode observe only notes the denial. */
static void refuse(const struct state *s, struct policy_decision *out, enum policy_reason reason,
        uint32_t rule)
{
	deny(out, reason);
	out->rule = rule;
	out->observed = policy_mode(s->policy) == POLICY_OBSERVE;
	out->verdict = out->observed ? POLICY_ALLOW : POLICY_DENY;
}

static void set_naming(const struct state *s, struct policy_decision *out)
{
	enum lookup_naming naming =
	        lookup_naming(s->policy, s->allow_target, &s->question->request->address);

	out->names_exactly = naming == LOOKUP_BY_ADDRESS;
	out->names_address = naming == LOOKUP_BY_ADDRESS || naming == LOOKUP_BY_NETWORK;
}

static bool rule_asks(const struct policy *policy, uint32_t rule)
{
	return rule != POLICY_NONE && image_rule_at(policy, rule)->wait_s > 0;
}

/* True if the body could change the verdict: it could make another allow the most specific one, or
 * meet a deny. */
static bool body_decides(const struct state *s)
{
	if (s->open == POLICY_NONE)
		return s->deny_open && s->allow != POLICY_NONE;
	/* If the targets differ and s->allow is not an ask rule, the open allow comes first: it has
	 * the earlier, more specific target, or it is an ask rule. Once an allow was found, only
	 * ask rules of later targets are examined. */
	return s->deny_open ||
	       (s->open_target != s->allow_target && !rule_asks(s->policy, s->allow)) ||
	       beats(s, s->open_target, s->open_rank, s->open, s->allow_target, s->allow_rank,
	               s->allow);
}

/* Sets the credential of a request, or of a connection over tcp. */
static void set_credential(
        const struct state *s, struct policy_decision *out, const struct image_rule *rule)
{
	if (s->question->connection && s->question->request->scheme != POLICY_TCP)
		return;
	out->credential = rule->credential;
	out->seals = rule->seals.n > 0;
}

/* Judges, and fills all of *out except passthrough. */
static void decide(struct state *s, const struct found *found, struct policy_decision *out)
{
	if (s->question->connection)
		decide_connection(s, found);
	else
		decide_request(s, found);
	if (s->deny != POLICY_NONE) {
		refuse(s, out, POLICY_REASON_RULE, s->deny);
	} else if (body_decides(s)) {
		deny(out, POLICY_REASON_CONDITION);
		out->needs_body = true;
	} else if (s->allow == POLICY_NONE) {
		refuse(s, out, why_denied(s, found), POLICY_NONE);
	} else if (s->asked != POLICY_NONE && !rule_asks(s->policy, s->allow)) {
		refuse(s, out, POLICY_REASON_READING, POLICY_NONE);
	} else {
		deny(out, POLICY_REASON_RULE);
		out->verdict = POLICY_ALLOW;
		out->rule = s->allow;
		out->asks = rule_asks(s->policy, s->allow) && !s->question->connection;
		set_credential(s, out, image_rule_at(s->policy, s->allow));
		set_naming(s, out);
		if (policy_mode(s->policy) == POLICY_ENFORCE) {
			out->lists_tools = (s->speaks & RULE_MCP) != 0;
			out->needs_messages = s->speaks != 0;
		}
	}
}

static bool rule_passes_through(const struct policy *policy, uint32_t rule)
{
	return rule != POLICY_NONE && (image_rule_at(policy, rule)->flags & RULE_PASSTHROUGH) != 0;
}

/* True if the TLS connection that a request comes by is passed through: its most specific allow
 * says so, and no deny requires that requests be seen. */
static bool passes_through(const struct policy *policy, const struct policy_request *request,
        const struct found *found)
{
	struct policy_request connection = *request;
	struct question q = {&connection, true, 0, 0};
	struct state s = STATE_START(policy, &q, found);

	connection.scheme = POLICY_HTTPS;
	decide_connection(&s, found);
	return s.deny == POLICY_NONE && rule_passes_through(policy, s.allow) &&
	       !needs_requests(&s, found);
}

void policy_decide(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out)
{
	struct question q;
	struct found found;
	struct state s = STATE_START(policy, &q, &found);

	if (!question_prepare(policy, request, &q)) {
		deny(out, POLICY_REASON_BAD_REQUEST);
		return;
	}
	lookup_targets(policy, request, &found);
	decide(&s, &found, out);
	if (out->verdict == POLICY_ALLOW && rule_passes_through(policy, out->rule))
		out->passthrough = passes_through(policy, request, &found);
}
