/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a condition names a parameter of the query or a header field, and the values
 * that it may have, or that it must be absent.
 * - For an allow rule the parameter or field must be there once, under exactly that name, with one
 * of the values, and the request must have nothing else that a server could take for it.
 * - For a deny rule it is enough that something which a server could take for it has one of the
 *   values, in letters of any case.
 *
 * Fields that a Connection field names count as absent, since they are not sent on. Names come from
 * the policy, everything else from the request.
 *
 * A condition on the body is open until somebody has read the body. A body that is not read as what
 * the condition names (a form, a JSON text) meets no condition of an allow rule and every condition
 * of a deny rule. A request without a body counts as one with an empty body.
 */
#include "policy/decide/condition.h"
#include "policy/decide/condition_body.h"
#include "policy/decide/condition_unmet.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/url.h"

struct judged {
	const struct policy *policy;
	const struct policy_request *request;
	const struct image_rule *rule;
	bool deny;
	struct slice parameters;        /* the query, or a form */
	enum image_condition_kind kind; /* of conditions on these: CONDITION_QUERY or _FORM */
};

static bool has_value(
        const struct judged *j, const struct image_condition *c, struct slice value, bool fold)
{
	const struct image_text *values = image_section(j->policy, SECTION_VALUES);

	for (uint32_t i = 0; i < c->value_count; i++)
		if (condition_matches(
		            image_slice(j->policy, values[c->first_value + i]), value, fold))
			return true;
	return false;
}

/* --- the query, and forms --- */

/* Whether a parameter's value is one of the condition's. A deny rule also compares the value as
 * written and decoded twice, because a server behind a rewriting proxy may read it so. */
static bool parameter_has_value(
        const struct judged *j, const struct image_condition *c, struct slice pair)
{
	char once[POLICY_QUERY_MAX], twice[POLICY_QUERY_MAX];
	struct slice written = url_parameter_value(pair), decoded;

	decoded = url_parameter_decode(written, once);
	if (!j->deny)
		return has_value(j, c, decoded, false);
	return has_value(j, c, decoded, true) || has_value(j, c, written, true) ||
	       has_value(j, c, url_parameter_decode(decoded, twice), true);
}

/* True if a condition of the rule names the parameter. */
static bool is_named(const struct judged *j, struct slice pair)
{
	for (uint32_t i = 0; i < j->rule->condition_count; i++) {
		const struct image_condition *c =
		        image_condition_at(j->policy, j->rule->first_condition + i);

		if (c->kind == j->kind && url_parameter_is(pair, image_slice(j->policy, c->name)))
			return true;
	}
	return false;
}

static bool allows_parameter(const struct judged *j, const struct image_condition *c)
{
	struct slice rest = j->parameters, name = image_slice(j->policy, c->name), pair;
	unsigned alike = 0, right = 0;

	while (url_parameter_next(&rest, &pair)) {
		if (pair.n > POLICY_QUERY_MAX)
			return false;
		if (c->kind == CONDITION_QUERY_ONLY || c->kind == CONDITION_FORM_ONLY) {
			alike += !is_named(j, pair);
			continue;
		}
		if (!url_parameter_resembles(pair, name))
			continue;
		alike++;
		right += url_parameter_is(pair, name) && c->need == CONDITION_VALUE &&
		         parameter_has_value(j, c, pair);
	}
	return c->need == CONDITION_ABSENT ? alike == 0 : alike == 1 && right == 1;
}

static bool denies_parameter(const struct judged *j, const struct image_condition *c)
{
	struct slice rest = j->parameters, name = image_slice(j->policy, c->name), pair;

	while (url_parameter_next(&rest, &pair)) {
		if (pair.n > POLICY_QUERY_MAX)
			return true;
		if (c->need == CONDITION_ABSENT && url_parameter_is(pair, name))
			return false;
		if (c->need == CONDITION_VALUE && url_parameter_resembles(pair, name) &&
		        parameter_has_value(j, c, pair))
			return true;
	}
	return c->need == CONDITION_ABSENT;
}

/* --- header fields --- */

static bool next_field(const struct judged *j, size_t *at, struct policy_field *field)
{
	const struct policy_fields *fields = j->request->fields;

	return fields && fields->next(fields->context, at, field);
}

static bool allows_field(const struct judged *j, const struct image_condition *c)
{
	struct slice name = image_slice(j->policy, c->name);
	unsigned alike = 0, right = 0;
	struct policy_field field;
	size_t at = 0;

	while (next_field(j, &at, &field)) {
		if (!condition_names_alike(field.name, name))
			continue;
		alike++;
		right += slice_equals_ignoring_case(field.name, name) &&
		         has_value(j, c, field.value, false);
	}
	return c->need == CONDITION_ABSENT ? alike == 0 : alike == 1 && right == 1;
}

/* A field may be a list (RFC 9110 section 5.6.1), so each element counts as a value too. */
static bool list_has_value(
        const struct judged *j, const struct image_condition *c, struct slice list)
{
	if (has_value(j, c, list, true))
		return true;
	while (list.n) {
		ptrdiff_t comma = slice_find_byte(list, ',');
		size_t n = comma < 0 ? list.n : (size_t)comma;

		if (has_value(j, c, slice_trim(slice_of(list.p, n)), true))
			return true;
		n += comma >= 0;
		list = slice_of(list.p + n, list.n - n);
	}
	return false;
}

static bool denies_field(const struct judged *j, const struct image_condition *c)
{
	struct slice name = image_slice(j->policy, c->name);
	struct policy_field field;
	size_t at = 0;

	while (next_field(j, &at, &field)) {
		if (c->need == CONDITION_ABSENT && slice_equals_ignoring_case(field.name, name))
			return false;
		if (c->need == CONDITION_VALUE && condition_names_alike(field.name, name) &&
		        list_has_value(j, c, field.value))
			return true;
	}
	return c->need == CONDITION_ABSENT;
}

/* A raw ';' separates parameters for some servers and is a part of a value for others. */
static bool query_agrees(struct judged *j, const struct image_condition *c)
{
	j->parameters = j->request->query;
	j->kind = CONDITION_QUERY;
	if (j->deny)
		return j->parameters.n > POLICY_QUERY_MAX || denies_parameter(j, c);
	return j->parameters.n <= POLICY_QUERY_MAX && url_escapes_are_sound(j->parameters) &&
	       slice_find_byte(j->parameters, ';') < 0 && allows_parameter(j, c);
}

/* --- bodies --- */

static bool form_agrees(struct judged *j, const struct image_condition *c)
{
	const struct policy_body *body = j->request->body;

	if (body && body->kind != POLICY_BODY_FORM)
		return j->deny;
	j->parameters = body ? body->text : SLICE("");
	j->kind = CONDITION_FORM;
	return j->deny ? denies_parameter(j, c) : allows_parameter(j, c);
}

static bool json_agrees(const struct judged *j, const struct image_condition *c)
{
	const struct policy_body *body = j->request->body;

	if (!body)
		return c->need == CONDITION_ABSENT;
	if (body->kind != POLICY_BODY_JSON)
		return j->deny;
	return condition_json(j->policy, j->rule, c, body->json);
}

/* Judges a condition on the body for policy_may_call(): the body may be any call of request->tool.
 * An allow rule agrees if it could, a deny rule only if it refuses each call. */
static bool tool_agrees(const struct judged *j, const struct image_condition *c)
{
	if (c->kind == CONDITION_MCP)
		return condition_mcp_tool(j->policy, j->request, j->rule, c);
	return c->kind == CONDITION_MCP_ARGUMENT || !j->deny;
}

static enum condition_answer decide_one(struct judged *j, const struct image_condition *c)
{
	const struct policy_body *body = j->request->body;
	bool agrees;

	if (condition_reads_body(c->kind) && j->request->tool)
		return tool_agrees(j, c) ? CONDITION_MET : CONDITION_UNMET;
	if (condition_reads_body(c->kind) && body && body->state == POLICY_BODY_UNREAD)
		return CONDITION_OPEN;
	switch (c->kind) {
	case CONDITION_HEADER:
		agrees = j->deny ? denies_field(j, c) : allows_field(j, c);
		break;
	case CONDITION_FORM:
	case CONDITION_FORM_ONLY:
		agrees = form_agrees(j, c);
		break;
	case CONDITION_JSON:
	case CONDITION_JSON_ONLY:
	case CONDITION_JSONRPC:
		agrees = json_agrees(j, c);
		break;
	case CONDITION_MCP:
		agrees = condition_mcp(j->policy, j->request, j->rule, c);
		break;
	case CONDITION_GRAPHQL:
		agrees = condition_graphql(j->policy, j->request, j->rule, c);
		break;
	case CONDITION_LLM:
		agrees = condition_llm(j->policy, j->request, j->rule, c);
		break;
	case CONDITION_GIT:
		agrees = condition_git(j->policy, j->request, j->rule, c);
		break;
	case CONDITION_GRPC:
		agrees = condition_grpc(j->policy, j->request, j->rule, c);
		break;
	case CONDITION_MCP_ARGUMENT: /* condition_mcp() judges these too */
		return CONDITION_MET;
	default:
		agrees = query_agrees(j, c);
	}
	if (!agrees)
		condition_note_unmet(j->policy, j->request, j->rule, c);
	return agrees ? CONDITION_MET : CONDITION_UNMET;
}

enum condition_answer condition_decide(const struct policy *policy,
        const struct policy_request *request, const struct image_rule *rule)
{
	struct judged j = {.policy = policy,
	        .request = request,
	        .rule = rule,
	        .deny = (rule->flags & RULE_DENY) != 0};
	enum condition_answer answer = CONDITION_MET;

	for (uint32_t i = 0; i < rule->condition_count; i++) {
		enum condition_answer one =
		        decide_one(&j, image_condition_at(policy, rule->first_condition + i));

		if (one == CONDITION_UNMET)
			return CONDITION_UNMET;
		if (one == CONDITION_OPEN)
			answer = CONDITION_OPEN;
	}
	return answer;
}

bool policy_names_field(const struct policy *policy, struct slice name)
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_CONDITIONS); i++) {
		const struct image_condition *c = image_condition_at(policy, i);

		if (c->kind == CONDITION_HEADER &&
		        condition_names_alike(image_slice(policy, c->name), name))
			return true;
	}
	return false;
}
