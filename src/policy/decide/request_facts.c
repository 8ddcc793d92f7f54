/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a JSON body is one of JSON-RPC if a message has `jsonrpc`; else one for a
 * language model if the path says so; else one of GraphQL if `query` is a document. Requests of git
 * and calls of gRPC are known by their heads. Whatever programs could read in different ways is no
 * fact, but is marked (REQUEST_FACT_CUT), so that no rule is made of a part of a request.
 */
#include "vethguard/policy/request_facts.h"

#include "policy/decide/condition_body.h"
#include "policy/decide/git_request.h"
#include "policy/graphql/graphql.h"
#include "policy/json/json_path.h"
#include "vethguard/policy/body.h"

#define FLAGS_ROOM (2 * 2) /* bytes kept for REQUEST_FACT_CUT and REQUEST_FACT_VALUE */

struct facts {
	const struct policy_request *request;
	uint8_t *out;
	size_t n;
	unsigned count;
	bool cut;
};

static const char *const names[REQUEST_FACT_COUNT] = {
        [REQUEST_FACT_CUT] = "cut",
        [REQUEST_FACT_VALUE] = "value_refused",
        [REQUEST_FACT_JSONRPC_METHOD] = "jsonrpc_methods",
        [REQUEST_FACT_MCP_METHOD] = "mcp_methods",
        [REQUEST_FACT_MCP_TOOL] = "mcp_tools",
        [REQUEST_FACT_GRAPHQL_OPERATION] = "graphql_operations",
        [REQUEST_FACT_GRAPHQL_FIELD] = "graphql_fields",
        [REQUEST_FACT_GRAPHQL_PERSISTED] = "graphql_persisted",
        [REQUEST_FACT_GRPC_SERVICE] = "grpc_services",
        [REQUEST_FACT_GRPC_METHOD] = "grpc_methods",
        [REQUEST_FACT_GIT_REPOSITORY] = "git_repositories",
        [REQUEST_FACT_GIT_SERVICE] = "git_services",
        [REQUEST_FACT_GIT_PUSH] = "git_pushes",
        [REQUEST_FACT_GIT_FORCE] = "git_forced",
        [REQUEST_FACT_GIT_DELETE] = "git_deleted",
        [REQUEST_FACT_LLM_MODEL] = "llm_models",
};

const char *request_fact_name(unsigned fact)
{
	return fact < REQUEST_FACT_COUNT ? names[fact] : NULL;
}

/* --- the encoding --- */

bool request_fact_next(struct slice *rest, unsigned *fact, struct slice *text)
{
	const uint8_t *p = (const uint8_t *)rest->p;

	if (rest->n < 2 || rest->n - 2 < p[1])
		return false;
	*fact = p[0];
	*text = slice_of(rest->p + 2, p[1]);
	*rest = slice_of(rest->p + 2 + p[1], rest->n - 2 - p[1]);
	return true;
}

static bool has(const struct facts *f, enum request_fact fact, struct slice text)
{
	struct slice rest = slice_of(f->out, f->n), known;
	unsigned kind;

	while (request_fact_next(&rest, &kind, &known))
		if (kind == fact && slice_equals(known, text))
			return true;
	return false;
}

static void put(struct facts *f, enum request_fact fact, struct slice text)
{
	if (!text.n || has(f, fact, text))
		return;
	if (text.n > REQUEST_FACT_MAX || f->count == REQUEST_FACTS_MAX ||
	        text.n + 2 > REQUEST_FACTS_BYTES_MAX - FLAGS_ROOM - f->n) {
		f->cut = true;
		return;
	}
	f->out[f->n++] = (uint8_t)fact;
	f->out[f->n++] = (uint8_t)text.n;
	memcpy(f->out + f->n, text.p, text.n);
	f->n += text.n;
	f->count++;
}

size_t request_facts_flag(uint8_t out[REQUEST_FACTS_BYTES_MAX], size_t n, enum request_fact fact)
{
	if (n + 2 > REQUEST_FACTS_BYTES_MAX)
		return n;
	out[n] = (uint8_t)fact;
	out[n + 1] = 0;
	return n + 2;
}

/* --- JSON-RPC and MCP --- */

/* Finds the object's member. If some reader could take another member for it, the facts are marked
 * as cut. */
static const struct json_value *member(struct facts *f, const struct json_tree *tree,
        const struct json_value *object, struct slice key)
{
	const struct json_value *value = NULL;

	if (!object || object->kind != JSON_IS_OBJECT)
		return NULL;
	if (!json_path_member(tree, object, key, &value)) {
		f->cut = true;
		return NULL;
	}
	return value;
}

/* Writes the member's text as a fact. If it is no text, the facts are marked as cut. */
static void put_text(struct facts *f, enum request_fact fact, const struct json_tree *tree,
        const struct json_value *value)
{
	if (value && value->kind == JSON_IS_STRING)
		put(f, fact, json_text(tree, value));
	else
		f->cut = true;
}

/* True if a header field tells that the client speaks MCP. */
static bool has_mcp_field(const struct policy_request *request)
{
	static const struct slice fields[] = {
	        {"mcp-protocol-version", 20}, {"mcp-session-id", 14}, {"mcp-method", 10}};
	struct policy_field field;
	size_t at = 0;

	while (request->fields && request->fields->next(request->fields->context, &at, &field))
		for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
			if (condition_names_alike(field.name, fields[i]))
				return true;
	return false;
}

static bool is_mcp(struct facts *f, const struct json_tree *tree, struct slice method,
        const struct json_value *params)
{
	static const struct slice begins[] = {
	        {"tools/", 6}, {"resources/", 10}, {"prompts/", 8}, {"notifications/", 14}};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (slice_starts_with(method, begins[i]))
			return true;
	return has_mcp_field(f->request) ||
	       (slice_equals(method, SLICE("initialize")) &&
	               member(f, tree, params, SLICE("protocolVersion")));
}

static void look_at_message(
        struct facts *f, const struct json_tree *tree, const struct json_value *message)
{
	const struct json_value *method = member(f, tree, message, SLICE("method")), *params;

	if (!method) /* an answer to what the server asked */
		return;
	if (method->kind != JSON_IS_STRING) {
		f->cut = true;
		return;
	}
	params = member(f, tree, message, SLICE("params"));
	if (!is_mcp(f, tree, json_text(tree, method), params)) {
		put(f, REQUEST_FACT_JSONRPC_METHOD, json_text(tree, method));
		return;
	}
	put(f, REQUEST_FACT_MCP_METHOD, json_text(tree, method));
	if (slice_equals(json_text(tree, method), SLICE("tools/call")))
		put_text(f, REQUEST_FACT_MCP_TOOL, tree, member(f, tree, params, SLICE("name")));
}

/* --- GraphQL --- */

static const struct slice operations[GRAPHQL_OPERATION_COUNT] = {[GRAPHQL_QUERY] = {"query", 5},
        [GRAPHQL_MUTATION] = {"mutation", 8},
        [GRAPHQL_SUBSCRIPTION] = {"subscription", 12}};

static void on_operation(void *context, enum graphql_operation operation)
{
	put(context, REQUEST_FACT_GRAPHQL_OPERATION, operations[operation]);
}

static void on_field(void *context, enum graphql_operation operation, struct slice name)
{
	(void)operation;
	if (!slice_equals(name, SLICE("__typename")))
		put(context, REQUEST_FACT_GRAPHQL_FIELD, name);
}

/* A text that is no document leaves no facts: it may be the query of any other API. */
static void look_at_document(struct facts *f, struct slice text)
{
	const struct facts before = *f;
	const struct graphql_sink sink = {f, on_operation, on_field};

	if (!graphql_read(text, &sink))
		*f = before;
}

static void look_at_graphql(
        struct facts *f, const struct json_tree *tree, const struct json_value *object)
{
	static const struct slice ids[] = {{"documentId", 10}, {"docId", 5}, {"queryId", 7}};
	const struct json_value *query = member(f, tree, object, SLICE("query"));
	const struct json_value *kept = member(f, tree, object, SLICE("extensions"));

	if (query && query->kind == JSON_IS_STRING)
		look_at_document(f, json_text(tree, query));
	kept = member(f, tree, kept, SLICE("persistedQuery"));
	if (kept)
		put_text(f, REQUEST_FACT_GRAPHQL_PERSISTED, tree,
		        member(f, tree, kept, SLICE("sha256Hash")));
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		kept = member(f, tree, object, ids[i]);
		if (kept)
			put_text(f, REQUEST_FACT_GRAPHQL_PERSISTED, tree, kept);
	}
}

/* --- bodies --- */

static void look_at_object(
        struct facts *f, const struct json_tree *tree, const struct json_value *object)
{
	if (member(f, tree, object, SLICE("jsonrpc")))
		look_at_message(f, tree, object);
	else
		look_at_graphql(f, tree, object);
}

static void look_at_json(struct facts *f, const struct json_tree *tree)
{
	const struct json_value *top = json_at(tree, 0);
	char decoded[POLICY_PATH_MAX];
	struct slice model;

	if (top->kind == JSON_IS_OBJECT && condition_llm_model(f->request, tree, decoded, &model)) {
		put(f, REQUEST_FACT_LLM_MODEL, model);
		return;
	}
	if (top->kind == JSON_IS_OBJECT)
		look_at_object(f, tree, top);
	for (uint32_t i = 1; top->kind == JSON_IS_ARRAY && i < top->next;
	        i = json_at(tree, i)->next)
		look_at_object(f, tree, json_at(tree, i));
}

/* --- heads --- */

static void look_at_push(struct facts *f, const struct policy_git *git)
{
	for (size_t i = 0; git && i < git->command_count; i++) {
		const struct policy_git_command *c = &git->commands[i];
		const bool tag = slice_starts_with(c->ref, SLICE("refs/tags/"));

		put(f,
		        c->change == POLICY_GIT_DELETES ? REQUEST_FACT_GIT_DELETE
		        : c->change == POLICY_GIT_UPDATES ||
		                        (tag && c->change == POLICY_GIT_FORWARDS)
		                ? REQUEST_FACT_GIT_FORCE
		                : REQUEST_FACT_GIT_PUSH,
		        c->ref);
	}
	f->cut |= git && git->option_count > 0;
}

/* Requests of Git LFS have no facts. */
static void look_at_git(struct facts *f)
{
	const struct policy_request *r = f->request;
	const struct policy_body *body = r->body;
	struct slice repository, word = SLICE("");
	enum git_service service = git_request_read(r->path, false, &repository);

	if (service == GIT_NONE || !git_request_is_plain(repository))
		return;
	if (service == GIT_REFS && slice_equals(r->method, SLICE("GET")))
		word = slice_equals(r->query, SLICE("service=git-upload-pack"))    ? SLICE("fetch")
		       : slice_equals(r->query, SLICE("service=git-receive-pack")) ? SLICE("push")
		                                                                   : SLICE("");
	else if (slice_equals(r->method, SLICE("POST")) && r->query.n == 0)
		word = service == GIT_FETCH  ? SLICE("fetch")
		       : service == GIT_PUSH ? SLICE("push")
		                             : SLICE("");
	if (!word.n)
		return;
	repository = git_request_bare(repository, false);
	put(f, REQUEST_FACT_GIT_REPOSITORY, slice_of(repository.p + 1, repository.n - 1));
	put(f, REQUEST_FACT_GIT_SERVICE, word);
	if (service == GIT_PUSH && body && body->kind == POLICY_BODY_GIT_PUSH)
		look_at_push(f, body->git);
}

size_t policy_request_facts(
        const struct policy_request *request, uint8_t out[REQUEST_FACTS_BYTES_MAX])
{
	const struct policy_body *body = request->body;
	struct facts f = {.request = request, .out = out};
	struct slice service, method;

	look_at_git(&f);
	if (condition_grpc_call(request, &service, &method)) {
		put(&f, REQUEST_FACT_GRPC_SERVICE, service);
		put(&f, REQUEST_FACT_GRPC_METHOD, method);
	}
	if (body && body->state == POLICY_BODY_READ && body->kind == POLICY_BODY_JSON)
		look_at_json(&f, body->json);
	return f.cut ? request_facts_flag(out, f.n, REQUEST_FACT_CUT) : f.n;
}
