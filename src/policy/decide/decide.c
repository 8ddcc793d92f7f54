/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the verdict from what a search has found, and the reason of a denial. Only a denial walks
 * all entries of its targets, to say what was missing. Nothing here allocates or fails. The images
 * inside of the policy's image do not count here (decide/layers.c). */
#include "policy/decide/layers.h"
#include "policy/decide/search.h"
#include "vethguard/policy/registry.h"

/* True if the path is allowed, but only by other methods than this one. */
static bool another_method_may(const struct search *s, const struct found *found)
{
	struct search other = SEARCH_START(s->policy, s->question, found);
	struct path_view view;

	other.any_method = true;
	path_view_init(&view, s->question->request->path);
	for (uint32_t i = 0; i < found->count && other.allow == POLICY_NONE; i++)
		search_path(&other, found->targets[i], false, &view);
	return other.allow != POLICY_NONE || other.open != POLICY_NONE;
}

/* What was missing: how far the best allow entry of the targets got. If one rule lacks the method
 * and another the path, the reason is the method if some rule allows the path. */
static enum policy_reason why_denied(const struct search *s, const struct found *found)
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
			if (!search_entry_agrees(s, e, r))
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
static bool needs_requests(const struct search *s, const struct found *found)
{
	for (uint32_t i = 0; i < found->count; i++) {
		const struct image_profile *p = image_profile_at(
		        s->policy, image_target_at(s->policy, found->targets[i])->profile);

		if (search_first_agreeing(s, p->first_ref + p->deny_connection,
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
static void refuse(const struct search *s, struct policy_decision *out, enum policy_reason reason,
        uint32_t rule)
{
	deny(out, reason);
	out->rule = rule;
	out->observed = policy_mode(s->policy) == POLICY_OBSERVE &&
	                policy_rule_layer(s->policy, rule) != POLICY_LAYER_FLOOR;
	out->verdict = out->observed ? POLICY_ALLOW : POLICY_DENY;
}

static void set_naming(const struct search *s, struct policy_decision *out)
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
static bool body_decides(const struct search *s)
{
	if (s->open == POLICY_NONE)
		return s->deny_open && s->allow != POLICY_NONE;
	/* If the targets differ and s->allow is not an ask rule, the open allow comes first: it has
	 * the earlier, more specific target, or it is an ask rule. Once an allow was found, only
	 * ask rules of later targets are examined. */
	return s->deny_open ||
	       (s->open_target != s->allow_target && !rule_asks(s->policy, s->allow)) ||
	       search_beats(s, s->open_target, s->open_rank, s->open, s->allow_target,
	               s->allow_rank, s->allow);
}

/* Sets the credential of a request, or of a connection over tcp. */
static void set_credential(
        const struct search *s, struct policy_decision *out, const struct image_rule *rule)
{
	if (s->question->connection && s->question->request->scheme != POLICY_TCP)
		return;
	out->credential = rule->credential;
	out->seals = rule->seals.n > 0;
}

/* Judges, and fills all of *out except passthrough. */
static void decide(struct search *s, const struct found *found, struct policy_decision *out)
{
	if (s->question->connection)
		search_connection(s, found);
	else
		search_request(s, found);
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
	struct search s = SEARCH_START(policy, &q, found);

	connection.scheme = POLICY_HTTPS;
	search_connection(&s, found);
	return s.deny == POLICY_NONE && rule_passes_through(policy, s.allow) &&
	       !needs_requests(&s, found);
}

/* Refuses a request that gets a registry's credential but asks for other repositories or actions
 * than the credential's. Answers of the registry's token service are sealed. */
static void decide_scope(const struct search *s, struct policy_decision *out)
{
	struct policy_credential credential;
	struct policy_registry registry;
	const char *why;

	if (out->credential == POLICY_NONE || s->question->connection ||
	        image_credential_at(s->policy, out->credential)->inject !=
	                POLICY_INJECT_DOCKER_REGISTRY)
		return;
	policy_credential(s->policy, out->credential, &credential);
	policy_registry(&credential, &registry);
	why = policy_registry_check(&registry, s->question->request);
	if (why)
		refuse(s, out, POLICY_REASON_SCOPE, POLICY_NONE);
	else
		out->seals = policy_registry_gives_token(&registry, s->question->request);
	out->why = why;
}

/* Decides about requests for vethguard itself. No rule can let them go to another host, not even in
 * mode observe or with internal: off. Returns false for all other requests. */
static bool decide_own(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out)
{
	enum policy_scheme scheme = request->scheme;

	if (!slice_equals(request->host, SLICE(POLICY_OWN_HOST)))
		return false;
	deny(out, POLICY_REASON_DEFAULT);
	if (!policy_answers(policy))
		return true;
	out->inquires = (scheme == POLICY_HTTPS || scheme == POLICY_HTTP) &&
	                request->port == policy_scheme_default_port(scheme);
	out->verdict = out->inquires ? POLICY_ALLOW : POLICY_DENY;
	out->reason = out->inquires ? POLICY_REASON_RULE : POLICY_REASON_PORT;
	return true;
}

void decide_alone(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out)
{
	struct question q;
	struct found found;
	struct search s = SEARCH_START(policy, &q, &found);

	if (!question_prepare(policy, request, &q)) {
		deny(out, POLICY_REASON_BAD_REQUEST);
		return;
	}
	if (decide_own(policy, request, out))
		return;
	lookup_targets(policy, request, &found);
	decide(&s, &found, out);
	decide_scope(&s, out);
	if (out->verdict == POLICY_ALLOW && rule_passes_through(policy, out->rule))
		out->passthrough = passes_through(policy, request, &found);
}
