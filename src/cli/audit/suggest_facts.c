/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns what an event says of its request (unmapped.request) into the condition of a rule. The
 * texts are the sandbox's: only those of a short alphabet, in which nothing has a meaning for YAML,
 * for patterns or for variables, become a part of a rule.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/audit/audit.h"
#include "cli/audit/suggest.h"

/* A list in the log, and the key of the condition that it becomes. */
struct list {
	const char *logged, *key;
};

static const struct {
	const char *key;
	const char *mark; /* the list that an event of this kind has */
	struct list lists[3];
	bool has_path; /* its rules name the path, and POST */
} kinds[] = {
        [SUGGEST_PLAIN] = {NULL, NULL, {{0}}, false},
        [SUGGEST_MCP] = {"mcp", "mcp_methods", {{"mcp_tools", "tools"}, {"mcp_methods", "methods"}},
                true},
        [SUGGEST_JSONRPC] = {"jsonrpc", "jsonrpc_methods", {{"jsonrpc_methods", "methods"}}, true},
        [SUGGEST_GRAPHQL] = {"graphql", "graphql_operations",
                {{"graphql_operations", "operations"}, {"graphql_fields", "fields"},
                        {"graphql_persisted", "persisted"}},
                true},
        [SUGGEST_GRPC] = {"grpc", "grpc_services",
                {{"grpc_services", "services"}, {"grpc_methods", "methods"}}, false},
        [SUGGEST_GIT] = {"git", "git_repositories",
                {{"git_repositories", "repositories"}, {"git_pushes", "push"}}, false},
        [SUGGEST_LLM] = {"llm", "llm_models", {{"llm_models", "models"}}, true},
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == SUGGEST_KIND_COUNT, "a row per kind");

const char *suggest_kind_key(enum suggest_kind kind)
{
	return kinds[kind].key;
}

static bool is_there(const json_t *request, const char *list)
{
	return json_array_size(json_object_get(request, list)) > 0;
}

static enum suggest_kind kind_of(const json_t *request)
{
	for (size_t i = SUGGEST_PLAIN + 1; i < SUGGEST_KIND_COUNT; i++)
		if (is_there(request, kinds[i].mark))
			return (enum suggest_kind)i;
	return is_there(request, "graphql_persisted") ? SUGGEST_GRAPHQL : SUGGEST_PLAIN;
}

static bool is_plain(struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		        (!c || !strchr("._-/:@+~", c)))
			return false;
	}
	return text.n > 0;
}

/* True for a method that each rule with mcp takes: it need not be named. */
static bool is_implied(enum suggest_kind kind, const char *key, struct slice text)
{
	static const struct slice implied[] = {{"initialize", 10}, {"ping", 4},
	        {"server/discover", 15}, {"subscriptions/listen", 20}, {"tools/list", 10},
	        {"tools/call", 10}};

	if (kind != SUGGEST_MCP || strcmp(key, "methods") != 0)
		return false;
	for (size_t i = 0; i < sizeof(implied) / sizeof(*implied); i++)
		if (slice_equals(text, implied[i]))
			return true;
	return slice_starts_with(text, SLICE("notifications/"));
}

/* Copies a list of the log into the condition. Returns why no rule can be made, or FINE. */
static enum suggest_exclusion read_list(
        enum suggest_kind kind, const struct list *list, const json_t *request, json_t *values)
{
	const json_t *texts = json_object_get(request, list->logged);
	json_t *out;

	if (json_array_size(texts) > SUGGEST_VALUES_MAX) /* vethguard writes fewer */
		return SUGGEST_MANY;
	out = json_array();
	for (size_t i = 0; i < json_array_size(texts); i++) {
		const json_t *one = json_array_get(texts, i);
		struct slice text = slice_of(json_string_value(one), json_string_length(one));

		if (!is_plain(text) || text.n > SUGGEST_VALUE_MAX) {
			json_decref(out);
			return is_plain(text) ? SUGGEST_LONG : SUGGEST_STRANGE;
		}
		if (!is_implied(kind, list->key, text))
			json_array_append_new(out, json_stringn(text.p, text.n));
	}
	if (json_array_size(out))
		json_object_set_new(values, list->key, out);
	else
		json_decref(out);
	return SUGGEST_FINE;
}

static const char *first_of(const json_t *values, const char *key)
{
	return json_string_value(json_array_get(json_object_get(values, key), 0));
}

/* Requests with the same place may share a rule without it allowing more than they ask for. */
static int set_place(struct suggest_ask *ask)
{
	const char *operation = first_of(ask->values, "operations");
	int n;

	if (ask->kind == SUGGEST_GRPC || ask->kind == SUGGEST_GIT)
		n = asprintf(&ask->place, "%s",
		        first_of(ask->values,
		                ask->kind == SUGGEST_GRPC ? "services" : "repositories"));
	else if (ask->kind == SUGGEST_GRAPHQL)
		n = asprintf(&ask->place, "%s %s%s", ask->path,
		        json_object_get(ask->values, "persisted") ? "kept " : "",
		        operation ? operation : "");
	else
		n = asprintf(&ask->place, "%s", ask->path);
	if (n < 0)
		ask->place = NULL;
	return ask->place ? 0 : -ENOMEM;
}

static bool is_push(const json_t *request)
{
	const json_t *service = json_array_get(json_object_get(request, "git_services"), 0);

	return json_is_string(service) && strcmp(json_string_value(service), "push") == 0;
}

/* Returns why no rule can be made of a request with this condition, or FINE. */
static enum suggest_exclusion doubt(const struct suggest_ask *ask, const json_t *request)
{
	if (kinds[ask->kind].has_path && strcmp(ask->method, "POST") != 0)
		return SUGGEST_STRANGE;
	if (json_array_size(json_object_get(ask->values, "operations")) > 1 ||
	        json_array_size(json_object_get(ask->values, "services")) > 1 ||
	        json_array_size(json_object_get(ask->values, "repositories")) > 1)
		return SUGGEST_MANY;
	if (ask->kind != SUGGEST_GIT)
		return SUGGEST_FINE;
	if (is_there(request, "git_forced") || is_there(request, "git_deleted"))
		return SUGGEST_FORCE;
	return json_object_get(ask->values, "push") || !is_push(request) ? SUGGEST_FINE
	                                                                 : SUGGEST_REFS;
}

int suggest_facts_read(struct suggest_ask *ask, const json_t *event)
{
	const json_t *request = audit_member(event, "unmapped.request");
	enum suggest_kind kind = kind_of(request);
	enum suggest_exclusion why = SUGGEST_FINE;

	if (kind == SUGGEST_PLAIN ||
	        (ask->exclusion != SUGGEST_FINE && ask->exclusion != SUGGEST_CONDITION))
		return 0;
	/* Some allow rule takes these names and refused an argument: a rule without that bound
	 * would open all arguments. */
	if (json_is_true(json_object_get(request, "value_refused")))
		return 0;
	ask->values = json_object();
	if (!ask->values)
		return -ENOMEM;
	if (json_is_true(json_object_get(request, "cut")))
		why = SUGGEST_MANY;
	for (size_t i = 0; why == SUGGEST_FINE && i < 3 && kinds[kind].lists[i].logged; i++)
		why = read_list(kind, &kinds[kind].lists[i], request, ask->values);
	if (why == SUGGEST_FINE) {
		ask->kind = kind;
		why = doubt(ask, request);
	}
	ask->exclusion = why;
	if (why == SUGGEST_FINE || why == SUGGEST_REFS)
		return set_place(ask);
	ask->kind = SUGGEST_PLAIN;
	return 0;
}
