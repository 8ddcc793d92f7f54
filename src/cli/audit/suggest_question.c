/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a policy about requests with conditions. The log has only the names in a request, so the
 * smallest request with these names is written anew: a call without arguments, a document of bare
 * fields. If a policy bounds arguments, it does not allow that one, and the rule stays suggested.
 * The texts need no escaping: see suggest_facts.c.
 */
#include <jansson.h>
#include <stdlib.h>

#include "cli/audit/suggest.h"
#include "vethguard/policy/body.h"

#define TEXT_MAX (SUGGEST_VALUES_MAX * (SUGGEST_VALUE_MAX + 2) + 256)

struct question {
	const struct policy *policy;
	const struct suggest_ask *ask;
	struct policy_request request;
	const char *content_type;
	struct policy_decision last;
	char text[TEXT_MAX];
};

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	if ((*at)++ > 0)
		return false;
	*out = (struct policy_field){SLICE("content-type"), slice_from_string(context)};
	return true;
}

/* Decides about the request with the body; NULL: without one. */
static bool is_allowed(struct question *q, const struct policy_body *body)
{
	const struct policy_fields fields = {q->content_type, next_field};

	q->request.fields = &fields;
	q->request.body = body;
	policy_decide(q->policy, &q->request, &q->last);
	q->request.fields = NULL;
	q->request.body = NULL;
	return q->last.verdict == POLICY_ALLOW && !q->last.observed;
}

/* The same with q->text as a body of JSON. */
static bool allows_text(struct question *q)
{
	const struct policy_fields fields = {q->content_type, next_field};
	struct policy_body body = {.state = POLICY_BODY_UNREAD};
	bool allowed;

	policy_body_read(&body, &fields, slice_from_string(q->text));
	allowed = is_allowed(q, &body);
	policy_body_fini(&body);
	return allowed;
}

static const json_t *list_of(const struct question *q, const char *key)
{
	return json_object_get(q->ask->values, key);
}

static const char *text_at(const json_t *list, size_t i)
{
	return json_string_value(json_array_get(list, i));
}

static bool allows_message(struct question *q, const char *method, const char *params)
{
	snprintf(q->text, TEXT_MAX, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"%s}", method,
	        params);
	return allows_text(q);
}

static bool allows_messages(struct question *q)
{
	const json_t *tools = list_of(q, "tools"), *methods = list_of(q, "methods");
	char params[SUGGEST_VALUE_MAX + 32];

	for (size_t i = 0; i < json_array_size(tools); i++) {
		snprintf(
		        params, sizeof(params), ",\"params\":{\"name\":\"%s\"}", text_at(tools, i));
		if (!allows_message(q, "tools/call", params))
			return false;
	}
	for (size_t i = 0; i < json_array_size(methods); i++)
		if (!allows_message(q, text_at(methods, i), ""))
			return false;
	return json_object_size(q->ask->values) > 0 || allows_message(q, "ping", "");
}

static bool allows_document(struct question *q)
{
	const json_t *fields = list_of(q, "fields"), *kept = list_of(q, "persisted");
	const char *operation = text_at(list_of(q, "operations"), 0);
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(kept); i++) {
		snprintf(q->text, TEXT_MAX,
		        "{\"extensions\":{\"persistedQuery\":{\"version\":1,\"sha256Hash\":\"%s\"}}"
		        "}",
		        text_at(kept, i));
		if (!allows_text(q))
			return false;
	}
	if (!operation)
		return json_array_size(kept) > 0;
	n = (size_t)snprintf(q->text, TEXT_MAX, "{\"query\":\"%s {", operation);
	for (size_t i = 0; i < json_array_size(fields); i++)
		n += (size_t)snprintf(q->text + n, TEXT_MAX - n, " %s", text_at(fields, i));
	snprintf(
	        q->text + n, TEXT_MAX - n, "%s }\"}", json_array_size(fields) ? "" : " __typename");
	return allows_text(q);
}

/* The model is named in the body or in the path, as the API wants it. */
static bool allows_models(struct question *q)
{
	const json_t *models = list_of(q, "models");

	for (size_t i = 0; i < json_array_size(models); i++) {
		snprintf(q->text, TEXT_MAX, "{\"model\":\"%s\"}", text_at(models, i));
		if (allows_text(q))
			continue;
		snprintf(q->text, TEXT_MAX, "{}");
		if (!allows_text(q))
			return false;
	}
	return true;
}

static bool allows_git(struct question *q)
{
	const json_t *refs = list_of(q, "push");
	const char *repository = text_at(list_of(q, "repositories"), 0);
	struct policy_git_command command = {.change = POLICY_GIT_CREATES};
	struct policy_git git = {.commands = &command, .command_count = 1};
	const struct policy_body push = {
	        .state = POLICY_BODY_READ, .kind = POLICY_BODY_GIT_PUSH, .git = &git};

	snprintf(q->text, TEXT_MAX, "/%s/info/refs", repository);
	q->request.path = slice_from_string(q->text);
	q->request.method = SLICE("GET");
	q->request.query = SLICE("service=git-upload-pack");
	if (!is_allowed(q, NULL))
		return false;
	snprintf(q->text, TEXT_MAX, "/%s/git-receive-pack", repository);
	q->request.path = slice_from_string(q->text);
	q->request.method = SLICE("POST");
	q->request.query = SLICE("");
	for (size_t i = 0; i < json_array_size(refs); i++) {
		command.ref = slice_from_string(text_at(refs, i));
		if (!is_allowed(q, &push))
			return false;
	}
	return true;
}

static void ask(struct question *q)
{
	switch (q->ask->kind) {
	case SUGGEST_MCP:
	case SUGGEST_JSONRPC:
		allows_messages(q);
		break;
	case SUGGEST_GRAPHQL:
		allows_document(q);
		break;
	case SUGGEST_LLM:
		allows_models(q);
		break;
	case SUGGEST_GRPC:
		q->content_type = "application/grpc";
		is_allowed(q, NULL);
		break;
	default:
		q->content_type = "application/x-git-receive-pack-request";
		allows_git(q);
	}
}

void suggest_question_decide(const struct policy *policy, const struct suggest_ask *about,
        const struct policy_request *request, struct policy_decision *decision)
{
	struct question q = {.policy = policy,
	        .ask = about,
	        .request = *request,
	        .content_type = "application/json",
	        .last = {.verdict = POLICY_DENY,
	                .reason = POLICY_REASON_CONDITION,
	                .rule = POLICY_NONE,
	                .credential = POLICY_NONE}};

	ask(&q);
	*decision = q.last;
}
