/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on GraphQL requests: a JSON object in a POST, an array of them, or a document in the
 * query of a GET. A rule names operations, fields at their root, and documents that the server
 * keeps (by a hash or an id).
 * - An allow rule has to name each operation of the document, whichever one is to be executed, and
 *   each field at its root, those of fragments included. If the request names a document that the
 *   server keeps, the rule has to name it too, whether or not the request also brings a document. A
 *   GET has to be a query.
 * - A deny rule holds if it names one of these, and if the request cannot be read.
 */
#include "policy/decide/condition_asked.h"
#include "policy/decide/condition_body.h"
#include "policy/graphql/graphql.h"
#include "policy/json/json_path.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/url.h"

struct asked {
	struct condition_asked of;
	bool deny;
	bool refused; /* an allow rule does not hold */
	bool found;   /* a deny rule holds */
	bool any;     /* the request has a document, or the name of one */
};

/* Makes an allow rule not hold, and notes why. */
static void refuse(struct asked *a, enum refusal_weight weight, const char *what, struct slice name,
        const char *why)
{
	a->refused = true;
	if (!a->deny)
		condition_refuse(&a->of, weight, what, name, why);
}

/* --- documents --- */

static const struct slice words[GRAPHQL_OPERATION_COUNT] = {[GRAPHQL_QUERY] = {"query", 5},
        [GRAPHQL_MUTATION] = {"mutation", 8},
        [GRAPHQL_SUBSCRIPTION] = {"subscription", 12}};

static bool names_operation(const struct asked *a, enum graphql_operation operation)
{
	return !condition_has_type(&a->of, GRAPHQL_VALUE_OPERATION) ||
	       condition_has_value(&a->of, GRAPHQL_VALUE_OPERATION, words[operation], a->deny);
}

static void on_operation(void *context, enum graphql_operation operation)
{
	struct asked *a = context;
	bool named = names_operation(a, operation);

	/* A GET must not change anything (GraphQL over HTTP). */
	if (operation != GRAPHQL_QUERY && !a->of.request->body)
		a->refused = true;
	if (!named)
		refuse(a, REFUSAL_PLACE, "the operation", words[operation], "may not be used");
	if (named && !condition_has_type(&a->of, GRAPHQL_VALUE_FIELD) &&
	        condition_has_type(&a->of, GRAPHQL_VALUE_OPERATION))
		a->found = true;
}

static void on_field(void *context, enum graphql_operation operation, struct slice name)
{
	struct asked *a = context;
	bool named = condition_has_value(&a->of, GRAPHQL_VALUE_FIELD, name, a->deny);
	bool counts = condition_has_type(&a->of, GRAPHQL_VALUE_FIELD) && !named &&
	              !slice_equals(name, SLICE("__typename"));

	a->refused |= counts;
	if (counts && names_operation(a, operation)) /* if not, on_operation() notes */
		refuse(a, REFUSAL_NAME, "the field", name, "may not be used");
	if (named && names_operation(a, operation))
		a->found = true;
}

/* An allow rule that names only kept documents takes no document in the request, and such a deny
 * rule does not look at it. */
static void look_at_document(struct asked *a, struct slice text)
{
	const struct graphql_sink sink = {a, on_operation, on_field};

	a->any = true;
	if (!condition_has_type(&a->of, GRAPHQL_VALUE_OPERATION) &&
	        !condition_has_type(&a->of, GRAPHQL_VALUE_FIELD)) {
		a->refused = true;
		return;
	}
	if (!graphql_read(text, &sink)) {
		refuse(a, REFUSAL_KIND, "the document", SLICE(""),
		        "is not valid GraphQL, or servers could read it in different ways");
		a->found = true;
	}
}

/* The content of a kept document is unknown, so a deny rule with operations or fields holds. */
static void look_at_name(struct asked *a, struct slice name)
{
	bool named = condition_has_value(&a->of, GRAPHQL_VALUE_PERSISTED, name, a->deny);

	a->any = true;
	if (!named)
		refuse(a, REFUSAL_NAME, "the kept document", name, "may not be used");
	a->found |= named || condition_has_type(&a->of, GRAPHQL_VALUE_OPERATION) ||
	            condition_has_type(&a->of, GRAPHQL_VALUE_FIELD);
}

static void doubt(struct asked *a)
{
	a->refused = a->found = true;
}

/* --- bodies --- */

/* Members by which a request names a document that the server keeps. */
static const struct slice names[] = {{"documentId", 10}, {"docId", 5}, {"queryId", 7}, {"id", 2},
        {"hash", 4}, {"sha256Hash", 10}};

static void look_at_extensions(
        struct asked *a, const struct json_tree *tree, const struct json_value *extensions)
{
	const struct json_value *persisted, *hash;

	if (extensions->kind == JSON_IS_NULL)
		return;
	if (extensions->kind != JSON_IS_OBJECT ||
	        !json_path_member(tree, extensions, SLICE("persistedQuery"), &persisted)) {
		doubt(a);
		return;
	}
	if (!persisted)
		return;
	if (persisted->kind != JSON_IS_OBJECT ||
	        !json_path_member(tree, persisted, SLICE("sha256Hash"), &hash) || !hash ||
	        hash->kind != JSON_IS_STRING)
		doubt(a);
	else
		look_at_name(a, json_text(tree, hash));
}

/* Looks at a member that names a kept document. */
static void look_at_kept(
        struct asked *a, const struct json_tree *tree, const struct json_value *value)
{
	if (value->kind == JSON_IS_STRING)
		look_at_name(a, json_text(tree, value));
	else
		doubt(a);
}

static void look_at_text(
        struct asked *a, const struct json_tree *tree, const struct json_value *value)
{
	if (value->kind == JSON_IS_STRING)
		look_at_document(a, json_text(tree, value));
	else if (value->kind != JSON_IS_NULL)
		doubt(a);
}

/* Calls look for the member `name`, if there is one. The request is in doubt if some reader could
 * take another member for it. */
static void look_at_member(struct asked *a, const struct json_tree *tree,
        const struct json_value *object, struct slice name,
        void (*look)(struct asked *, const struct json_tree *, const struct json_value *))
{
	const struct json_value *value;

	if (!json_path_member(tree, object, name, &value))
		doubt(a);
	else if (value)
		look(a, tree, value);
}

static void look_at_object(
        struct asked *a, const struct json_tree *tree, const struct json_value *object)
{
	a->any = false;
	if (object->kind != JSON_IS_OBJECT) {
		doubt(a);
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		look_at_member(a, tree, object, names[i], look_at_kept);
	look_at_member(a, tree, object, SLICE("extensions"), look_at_extensions);
	look_at_member(a, tree, object, SLICE("query"), look_at_text);
	if (!a->any)
		doubt(a);
}

static void look_at_body(struct asked *a)
{
	const struct json_tree *tree = a->of.request->body->json;
	const struct json_value *top = json_at(tree, 0);

	a->refused |= !slice_equals(a->of.request->method, SLICE("POST"));
	if (top->kind != JSON_IS_ARRAY) {
		look_at_object(a, tree, top);
		return;
	}
	a->refused |= top->next == 1; /* an empty batch */
	for (uint32_t i = 1; i < top->next; i = json_at(tree, i)->next)
		look_at_object(a, tree, json_at(tree, i));
}

/* --- URLs --- */

static bool skip(struct slice *text, struct slice begin)
{
	while (text->n && (text->p[0] == ' ' || text->p[0] == '\n' || text->p[0] == '\t'))
		*text = slice_of(text->p + 1, text->n - 1);
	if (!slice_starts_with(*text, begin))
		return false;
	*text = slice_of(text->p + begin.n, text->n - begin.n);
	return true;
}

static bool skip_string(struct slice *text, struct slice *out)
{
	ptrdiff_t n;

	if (!skip(text, SLICE("\"")) || (n = slice_find_byte(*text, '"')) < 0)
		return false;
	*out = slice_of(text->p, (size_t)n);
	*text = slice_of(text->p + n + 1, text->n - (size_t)n - 1);
	return slice_find_byte(*out, '\\') < 0;
}

/* Reads {"persistedQuery":{"version":1,"sha256Hash":"..."}}, the two inner members in any order.
 * The JSON reader cannot be used, because nothing may be allocated here. */
static bool read_extensions(struct slice text, struct slice *hash)
{
	bool version = false;

	*hash = SLICE("");
	if (!skip(&text, SLICE("{")) || !skip(&text, SLICE("\"persistedQuery\"")) ||
	        !skip(&text, SLICE(":")) || !skip(&text, SLICE("{")))
		return false;
	for (int i = 0; i < 2; i++) {
		if (i && !skip(&text, SLICE(",")))
			return false;
		if (!version && skip(&text, SLICE("\"version\""))) {
			version = true;
			if (!skip(&text, SLICE(":")) || !skip(&text, SLICE("1")))
				return false;
		} else if (!skip(&text, SLICE("\"sha256Hash\"")) || !skip(&text, SLICE(":")) ||
		           !skip_string(&text, hash)) {
			return false;
		}
	}
	return version && hash->n && skip(&text, SLICE("}")) && skip(&text, SLICE("}")) &&
	       skip(&text, SLICE("")) && text.n == 0;
}

/* Looks at a parameter whose name counts() knows. document: the name is "query". */
static void look_at_parameter(struct asked *a, struct slice pair, bool document)
{
	char decoded[POLICY_QUERY_MAX];
	struct slice value = url_parameter_decode(url_parameter_value(pair), decoded), hash;

	if (document)
		look_at_document(a, value);
	else if (!url_parameter_is(pair, SLICE("extensions")))
		look_at_name(a, value);
	else if (read_extensions(value, &hash))
		look_at_name(a, hash);
	else
		doubt(a);
}

/* Returns the known name that a server could read in the parameter, or an empty slice. */
static struct slice counts(struct slice pair)
{
	static const struct slice others[] = {{"query", 5}, {"extensions", 10}};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (url_parameter_resembles(pair, others[i]))
			return others[i];
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (url_parameter_resembles(pair, names[i]))
			return names[i];
	return SLICE("");
}

/* Looks at the URL's parameters. Some servers read them beside the body of a POST, so an allow rule
 * takes none there. */
static void look_at_query(struct asked *a)
{
	struct slice rest = a->of.request->query, pair;
	unsigned documents = 0;

	if (rest.n > POLICY_QUERY_MAX || !url_escapes_are_sound(rest) ||
	        slice_find_byte(rest, ';') >= 0) {
		doubt(a);
		return;
	}
	while (url_parameter_next(&rest, &pair)) {
		struct slice name = counts(pair);
		bool document = slice_equals(name, SLICE("query"));

		if (name.n == 0)
			continue;
		a->refused |= a->of.request->body || !url_parameter_is(pair, name) ||
		              (document && documents++ > 0);
		look_at_parameter(a, pair, document);
	}
}

bool condition_graphql(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition)
{
	const struct policy_body *body = request->body;
	struct asked a = {
	        .of = {policy, request, rule, condition}, .deny = (rule->flags & RULE_DENY) != 0};

	look_at_query(&a);
	if (body && body->kind == POLICY_BODY_JSON)
		look_at_body(&a);
	else if (body)
		doubt(&a);
	else
		a.refused |= !a.any || !slice_equals(request->method, SLICE("GET"));
	if (a.refused)
		refuse(&a, REFUSAL_KIND, "the request", SLICE(""),
		        "is not one of GraphQL, or servers could read it in different ways");
	return a.deny ? a.found : !a.refused;
}
