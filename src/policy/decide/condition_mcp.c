/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on messages of the Model Context Protocol, as clients send them over HTTP: each
 * message is the body of a POST; the revision of 2025-03-26 also has arrays of messages. A rule
 * names tools, conditions on their arguments, and methods.
 * - An allow rule takes calls of its tools, its methods, and what every session needs: the methods
 *   of `basics`, notifications, the list of tools if the rule names tools, answers to the server's
 *   requests, and a GET or DELETE without a body. A message that two readers could take differently
 *   meets no allow rule. The header fields Mcp-Method and Mcp-Name have to agree with the message.
 * - A deny rule holds if some reader would find one of its calls or methods in a message or in
 *   these fields, and if the body is not JSON. A rule with arguments does not look at Mcp-Name.
 */
#include "policy/decide/condition_asked.h"
#include "policy/decide/condition_body.h"
#include "policy/json/json_path.h"
#include "vethguard/base/base64.h"
#include "vethguard/policy/body.h"

#define BATCHES_REVISION "2025-03-26"

struct mcp {
	struct condition_asked of;
	const struct json_tree *tree;
};

static const char method_field[] = "mcp-method", name_field[] = "mcp-name";
static const char version_field[] = "mcp-protocol-version";

static bool is_call(struct slice method)
{
	return slice_equals_ignoring_case(slice_trim(method), SLICE("tools/call"));
}

/* True if the arguments meet all the rule's conditions on them. arguments: NULL if the call has
 * none. */
static bool arguments_agree(const struct mcp *m, const struct json_value *arguments, bool deny)
{
	for (uint32_t i = 0; i < m->of.rule->condition_count; i++) {
		const struct image_condition *c =
		        image_condition_at(m->of.policy, m->of.rule->first_condition + i);

		if (c->kind != CONDITION_MCP_ARGUMENT ||
		        condition_json_at(m->of.policy, c, m->tree, arguments, deny))
			continue;
		return !deny &&
		       condition_refuse(&m->of, REFUSAL_VALUE, "the argument",
		               image_slice(m->of.policy, c->name),
		               "of the call is missing, repeated, or not what the rule asks for");
	}
	return true;
}

/* --- fields --- */

/* Counts the header fields of that name. *value is the last one's value, trimmed; empty: none. */
static unsigned find_field(const struct mcp *m, const char *name, struct slice *value)
{
	const struct policy_fields *fields = m->of.request->fields;
	struct policy_field field;
	unsigned count = 0;
	size_t at = 0;

	*value = SLICE("");
	while (fields && fields->next(fields->context, &at, &field))
		if (condition_names_alike(field.name, slice_from_string(name))) {
			*value = slice_trim(field.value);
			count++;
		}
	return count;
}

/* Decodes a value "=?base64?...?=" into out and leaves any other value as it is. Returns false if
 * the base64 is broken. */
static bool decode_value(struct slice *value, char out[POLICY_VALUE_MAX])
{
	static const struct slice begin = {"=?base64?", 9}, end = {"?=", 2};
	ssize_t n;

	if (!slice_starts_with(*value, begin) || !slice_ends_with(*value, end) ||
	        value->n < begin.n + end.n)
		return true;
	n = base64_decode(slice_of(value->p + begin.n, value->n - begin.n - end.n), BASE64_STRICT,
	        out, POLICY_VALUE_MAX);
	if (n < 0)
		return false;
	*value = slice_of(out, (size_t)n);
	return true;
}

/* True if Mcp-Method and Mcp-Name, where present, are the message's method and name. name: empty if
 * the message has none; any Mcp-Name then agrees. */
static bool fields_agree(const struct mcp *m, struct slice method, struct slice name)
{
	char decoded[POLICY_VALUE_MAX];
	struct slice value;
	unsigned count = find_field(m, method_field, &value);

	if (count > 1 || (count == 1 && !slice_equals(value, method)))
		return false;
	count = find_field(m, name_field, &value);
	if (count == 0)
		return true;
	return count == 1 && decode_value(&value, decoded) &&
	       (name.n == 0 || slice_equals(value, name));
}

/* Only revision 2025-03-26 has batches. The next one, which has none, introduced the field
 * MCP-Protocol-Version, so a batch may come without it. */
static bool may_be_batch(const struct mcp *m)
{
	struct slice version, value;
	unsigned count = find_field(m, version_field, &version);

	return (count == 0 || (count == 1 && slice_equals(version, SLICE(BATCHES_REVISION)))) &&
	       find_field(m, method_field, &value) == 0 && find_field(m, name_field, &value) == 0;
}

/* --- allow rules --- */

struct message {
	const struct json_value *version, *id, *method, *params, *result, *error;
};

/* Finds the members of a message. Returns false if two readers could find different members. */
static bool read_message(const struct mcp *m, const struct json_value *object, struct message *out)
{
	return object->kind == JSON_IS_OBJECT &&
	       json_path_member(m->tree, object, SLICE("jsonrpc"), &out->version) &&
	       json_path_member(m->tree, object, SLICE("id"), &out->id) &&
	       json_path_member(m->tree, object, SLICE("method"), &out->method) &&
	       json_path_member(m->tree, object, SLICE("params"), &out->params) &&
	       json_path_member(m->tree, object, SLICE("result"), &out->result) &&
	       json_path_member(m->tree, object, SLICE("error"), &out->error);
}

static bool is_kind(const struct json_value *value, enum json_kind kind)
{
	return value && value->kind == kind;
}

static bool allows_call(const struct mcp *m, const struct json_value *params)
{
	const struct json_value *name, *arguments;

	if (!params || !json_path_member(m->tree, params, SLICE("name"), &name) ||
	        !json_path_member(m->tree, params, SLICE("arguments"), &arguments))
		return false;
	if (!is_kind(name, JSON_IS_STRING) || (arguments && arguments->kind != JSON_IS_OBJECT))
		return false;
	if (!condition_has_value(&m->of, MCP_VALUE_TOOL, json_text(m->tree, name), false))
		return condition_refuse(&m->of, REFUSAL_NAME, "the tool", json_text(m->tree, name),
		        "may not be called");
	return (fields_agree(m, SLICE("tools/call"), json_text(m->tree, name)) ||
	               condition_refuse(&m->of, REFUSAL_NAME, "the field", SLICE("Mcp-Name"),
	                       "or Mcp-Method names another call than the message")) &&
	       arguments_agree(m, arguments, false);
}

/* True for a method that every session needs, in any revision. */
static bool is_basic(struct slice method)
{
	static const struct slice basics[] = {{"initialize", 10}, {"ping", 4},
	        {"server/discover", 15}, {"subscriptions/listen", 20}};

	for (size_t i = 0; i < sizeof(basics) / sizeof(*basics); i++)
		if (slice_equals(method, basics[i]))
			return true;
	return slice_starts_with(method, SLICE("notifications/"));
}

static bool allows_method(
        const struct mcp *m, struct slice method, const struct json_value *params, bool batch)
{
	if (is_call(method))
		return slice_equals(method, SLICE("tools/call")) && allows_call(m, params);
	if (batch && slice_equals(method, SLICE("initialize")))
		return false;
	if (!fields_agree(m, method, SLICE("")))
		return false;
	return is_basic(method) || condition_has_value(&m->of, MCP_VALUE_METHOD, method, false) ||
	       (slice_equals(method, SLICE("tools/list")) &&
	               condition_has_type(&m->of, MCP_VALUE_TOOL)) ||
	       condition_refuse(&m->of, REFUSAL_PLACE, "the method", method, "may not be called");
}

static bool allows_message(const struct mcp *m, const struct json_value *object, bool batch)
{
	struct message message;

	if (!read_message(m, object, &message) || !is_kind(message.version, JSON_IS_STRING) ||
	        !slice_equals(json_text(m->tree, message.version), SLICE("2.0")))
		return false;
	if (message.id && message.id->kind != JSON_IS_STRING && message.id->kind != JSON_IS_NUMBER)
		return false;
	if (!message.method) /* an answer to the server's request */
		return message.id && !message.params && !message.result != !message.error &&
		       fields_agree(m, SLICE(""), SLICE(""));
	if (message.method->kind != JSON_IS_STRING || message.result || message.error ||
	        (message.params && message.params->kind != JSON_IS_OBJECT))
		return false;
	return allows_method(m, json_text(m->tree, message.method), message.params, batch);
}

static bool allows(const struct mcp *m)
{
	const struct json_value *top = json_at(m->tree, 0);
	uint32_t i = 1;

	if (!slice_equals(m->of.request->method, SLICE("POST")))
		return false;
	if (top->kind != JSON_IS_ARRAY)
		return allows_message(m, top, false);
	if (i == top->next || !may_be_batch(m))
		return false;
	for (; i < top->next; i = json_at(m->tree, i)->next)
		if (!allows_message(m, json_at(m->tree, i), true))
			return false;
	return true;
}

/* --- deny rules --- */

/* Returns the next member that some reader takes for the key, or NULL. *at: 0 at first. */
static const struct json_value *next_alike(
        const struct mcp *m, const struct json_value *object, struct slice key, uint32_t *at)
{
	if (!object || object->kind != JSON_IS_OBJECT)
		return NULL;
	if (*at == 0)
		*at = (uint32_t)(object - m->tree->values) + 1;
	while (*at < object->next) {
		uint32_t i = *at;

		*at = json_at(m->tree, i + 1)->next;
		if (json_path_key_resembles(json_text(m->tree, json_at(m->tree, i)), key))
			return json_at(m->tree, i + 1);
	}
	return NULL;
}

static bool denies_arguments(const struct mcp *m, const struct json_value *params)
{
	const struct json_value *arguments;
	uint32_t at = 0;
	bool any = false;

	while ((arguments = next_alike(m, params, SLICE("arguments"), &at))) {
		any = true;
		if (arguments_agree(m, arguments, true))
			return true;
	}
	return !any && arguments_agree(m, NULL, true);
}

/* A call without a readable name counts as a call of the rule's tools. */
static bool denies_call(const struct mcp *m, const struct json_value *message)
{
	const struct json_value *params, *name;
	uint32_t at = 0, in;
	bool any = false;

	while ((params = next_alike(m, message, SLICE("params"), &at))) {
		for (in = 0; (name = next_alike(m, params, SLICE("name"), &in));) {
			struct slice text;

			if (name->kind != JSON_IS_STRING)
				return true;
			any = true;
			text = slice_trim(json_text(m->tree, name));
			if (condition_has_value(&m->of, MCP_VALUE_TOOL, text, true) &&
			        denies_arguments(m, params))
				return true;
		}
	}
	return !any;
}

static bool denies_message(const struct mcp *m, const struct json_value *message)
{
	const struct json_value *method;
	uint32_t at = 0;

	while ((method = next_alike(m, message, SLICE("method"), &at))) {
		struct slice text;

		if (method->kind != JSON_IS_STRING)
			continue;
		text = slice_trim(json_text(m->tree, method));
		if (condition_has_value(&m->of, MCP_VALUE_METHOD, text, true))
			return true;
		if (is_call(text) && condition_has_type(&m->of, MCP_VALUE_TOOL) &&
		        denies_call(m, message))
			return true;
	}
	return false;
}

static bool has_arguments(const struct policy *policy, const struct image_rule *rule)
{
	for (uint32_t i = 0; i < rule->condition_count; i++)
		if (image_condition_at(policy, rule->first_condition + i)->kind ==
		        CONDITION_MCP_ARGUMENT)
			return true;
	return false;
}

static bool denies_fields(const struct mcp *m)
{
	char decoded[POLICY_VALUE_MAX];
	struct slice value;

	if (find_field(m, method_field, &value) &&
	        condition_has_value(&m->of, MCP_VALUE_METHOD, value, true))
		return true;
	if (!find_field(m, name_field, &value) || has_arguments(m->of.policy, m->of.rule))
		return false;
	return !decode_value(&value, decoded) ||
	       condition_has_value(&m->of, MCP_VALUE_TOOL, value, true);
}

static bool denies(const struct mcp *m)
{
	const struct json_value *top = json_at(m->tree, 0);

	if (denies_fields(m))
		return true;
	if (top->kind != JSON_IS_ARRAY)
		return denies_message(m, top);
	for (uint32_t i = 1; i < top->next; i = json_at(m->tree, i)->next)
		if (denies_message(m, json_at(m->tree, i)))
			return true;
	return false;
}

bool condition_mcp(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition)
{
	const struct policy_body *body = request->body;
	bool deny = (rule->flags & RULE_DENY) != 0;
	struct mcp m = {{policy, request, rule, condition}, body ? body->json : NULL};

	if (!body && deny)
		return denies_fields(&m);
	if (!body)
		return slice_equals(request->method, SLICE("GET")) ||
		       slice_equals(request->method, SLICE("DELETE"));
	if (body->kind != POLICY_BODY_JSON)
		return deny;
	return deny ? denies(&m)
	            : allows(&m) || condition_refuse(&m.of, REFUSAL_KIND, "the message", SLICE(""),
	                                    "is not one of MCP, or programs could read it in "
	                                    "different ways");
}

bool condition_mcp_tool(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition)
{
	bool deny = (rule->flags & RULE_DENY) != 0;
	struct mcp m = {{policy, request, rule, condition}, NULL};

	if (!deny)
		return condition_has_value(&m.of, MCP_VALUE_TOOL, *request->tool, false);
	if (condition_has_value(&m.of, MCP_VALUE_METHOD, SLICE("tools/call"), true))
		return true;
	return condition_has_value(&m.of, MCP_VALUE_TOOL, slice_trim(*request->tool), true) &&
	       !has_arguments(policy, rule);
}
