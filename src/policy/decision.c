/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what an external decider answers, strictly: a text that two readers could take differently
 * is no answer. */
#include "vethguard/policy/decision.h"

#include "vethguard/policy/json_find.h"

/* Copies the reason as printable ASCII, cut to its bound. */
static bool take_reason(
        const struct json_tree *tree, const struct json_value *value, struct hook_answer *out)
{
	struct slice text;

	if (!value)
		return true;
	if (!json_tree_string_of(tree, value, &text))
		return false;
	slice_escape(text, out->reason, sizeof(out->reason));
	return true;
}

static bool take_time(
        const struct json_tree *tree, const struct json_value *value, struct hook_answer *out)
{
	int64_t s;

	if (!value)
		return true;
	if (out->verdict != HOOK_APPROVE || !json_tree_whole(tree, value, &s) || s < 1 ||
	        s > (int64_t)HOOK_FOR_MAX_S)
		return false;
	out->for_s = (uint32_t)s;
	return true;
}

static const char *read_members(const struct json_tree *tree, struct hook_answer *out)
{
	const struct json_value *top = json_at(tree, 0);
	const struct json_value *decision, *reason, *for_s;
	struct slice word = SLICE("");
	uint32_t count = 0;

	if (top->kind != JSON_IS_OBJECT)
		return "its answer is no JSON object";
	for (uint32_t i = 1; i < top->next; i = json_at(tree, i + 1)->next)
		count++;
	decision = json_tree_member(tree, top, SLICE("decision"));
	reason = json_tree_member(tree, top, SLICE("reason"));
	for_s = json_tree_member(tree, top, SLICE("for_s"));
	if (!decision || !json_tree_string_of(tree, decision, &word))
		return "its answer has no \"decision\"";
	if (count != 1u + (reason != NULL) + (for_s != NULL))
		return "its answer has members that do not belong there";
	if (slice_equals(word, SLICE("approve")))
		out->verdict = HOOK_APPROVE;
	else if (slice_equals(word, SLICE("refuse")))
		out->verdict = HOOK_REFUSE;
	else if (!slice_equals(word, SLICE("ask")))
		return "its decision is not approve, refuse or ask";
	if (!take_reason(tree, reason, out))
		return "its reason is not a text";
	return take_time(tree, for_s, out) ? NULL : "its for_s is no time for an approval";
}

const char *policy_decision_read(struct slice json, struct hook_answer *out)
{
	struct json_tree tree;
	const char *fault;
	int rc;

	memset(out, 0, sizeof(*out));
	out->verdict = HOOK_NONE;
	if (json.n > POLICY_DECISION_BYTES_MAX)
		return "its answer has more than 4096 bytes";
	rc = json_read(&tree, json);
	fault = rc == 0 ? read_members(&tree, out) : "its answer is no JSON";
	json_fini(&tree);
	if (fault)
		*out = (struct hook_answer){.verdict = HOOK_NONE};
	return fault;
}
