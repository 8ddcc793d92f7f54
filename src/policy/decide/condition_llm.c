/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on requests to APIs of language models: which model the request names, and how many
 * tokens the answer may have. The end of the path tells the API, and so where both stand: the bound
 * in the body, the model in the body or the path. A path of none of these APIs meets no allow rule.
 * - An allow rule holds if the request names one model, which is one of the rule's. If the rule has
 *   a bound for tokens, the request has to name one too, which times the number of answers asked
 * for is at most the rule's.
 * - A deny rule holds if a segment of the path, or a member that some reader takes for the model,
 *   names one of its models, and if the body is not JSON.
 */
#include "policy/decide/condition_asked.h"
#include "policy/decide/condition_body.h"
#include "policy/json/json_path.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/url.h"

/* One API, known by the end of its paths. */
struct api {
	struct slice before, after; /* around the model in the path; before empty: body has it */
	struct slice in;            /* member of the body with the bound; empty: body itself */
	struct slice bounds[2];     /* names of the bound; none: the answer has no tokens */
	struct slice answers;       /* member beside it: the number of answers; or empty */
};

#define S(text)                        \
	{                              \
		text, sizeof(text) - 1 \
	}
static const struct api apis[] = {
        {.after = S("/chat/completions"),
                .bounds = {S("max_completion_tokens"), S("max_tokens")},
                .answers = S("n")},
        {.after = S("/completions"), .bounds = {S("max_tokens")}, .answers = S("n")},
        {.after = S("/responses"), .bounds = {S("max_output_tokens")}},
        {.after = S("/messages"), .bounds = {S("max_tokens")}},
        {.after = S("/messages/count_tokens")},
        {.after = S("/embeddings")},
        {.before = S("/models/"),
                .after = S(":generateContent"),
                .in = S("generationConfig"),
                .bounds = {S("maxOutputTokens")},
                .answers = S("candidateCount")},
        {.before = S("/models/"),
                .after = S(":streamGenerateContent"),
                .in = S("generationConfig"),
                .bounds = {S("maxOutputTokens")},
                .answers = S("candidateCount")},
        {.before = S("/models/"), .after = S(":countTokens")},
        {.before = S("/models/"), .after = S(":embedContent")},
        {.before = S("/model/"),
                .after = S("/converse"),
                .in = S("inferenceConfig"),
                .bounds = {S("maxTokens")}},
        {.before = S("/model/"),
                .after = S("/converse-stream"),
                .in = S("inferenceConfig"),
                .bounds = {S("maxTokens")}},
        {.before = S("/model/"), .after = S("/invoke"), .bounds = {S("max_tokens")}},
        {.before = S("/model/"),
                .after = S("/invoke-with-response-stream"),
                .bounds = {S("max_tokens")}},
};

/* Names of a bound in any of these APIs: a request that is allowed has only one of them. */
static const struct slice bounds[] = {S("max_tokens"), S("max_completion_tokens"),
        S("max_output_tokens"), S("max_gen_len"), S("max_new_tokens"), S("maxTokenCount"),
        S("max_tokens_to_sample")};
/* Members that name further models, or settings that are not looked at: allow rules take none. */
static const struct slice further[] = {S("models"), S("fallbacks"), S("fallback_models"),
        S("best_of"), S("additionalModelRequestFields"), S("textGenerationConfig"), S("extra_body"),
        S("num_generations"), S("numResults")};
#undef S

struct asked {
	struct condition_asked of;
	const struct json_tree *tree;
	const struct json_value *body;
};

/* True if the condition names the model. A condition without models allows every model, and denies
 * (fold) none. */
static bool has_model(const struct asked *a, struct slice model, bool fold)
{
	return condition_has_value(&a->of, LLM_VALUE_MODEL, model, fold) ||
	       (!fold && !condition_has_type(&a->of, LLM_VALUE_MODEL));
}

/* Returns the rule's bound for tokens, or UINT64_MAX if it has none. */
static uint64_t bound_of(const struct asked *a)
{
	const struct image_text *values = image_section(a->of.policy, SECTION_VALUES);
	uint64_t bound = UINT64_MAX;

	for (uint32_t i = 0; i < a->of.condition->value_count; i++) {
		struct slice value =
		        image_slice(a->of.policy, values[a->of.condition->first_value + i]);

		if (value.p[0] == LLM_VALUE_TOKENS)
			slice_to_u64(slice_of(value.p + 1, value.n - 1), UINT64_MAX, &bound);
	}
	return bound;
}

/* --- paths --- */

/* Finds the model in a path: the text of one segment between api->before and api->after. */
static bool find_model(struct slice path, const struct api *api, struct slice *model)
{
	size_t end, begin;

	if (!slice_ends_with(path, api->after))
		return false;
	end = begin = path.n - api->after.n;
	while (begin > 0 && path.p[begin - 1] != '/')
		begin--;
	*model = slice_of(path.p + begin, end - begin);
	return model->n > 0 && begin >= api->before.n &&
	       slice_ends_with(slice_of(path.p, begin), api->before);
}

static const struct api *find_api(struct slice path, struct slice *model)
{
	for (size_t i = 0; i < sizeof(apis) / sizeof(*apis); i++) {
		*model = SLICE("");
		if (apis[i].before.n ? find_model(path, &apis[i], model)
		                     : slice_ends_with(path, apis[i].after))
			return &apis[i];
	}
	return NULL;
}

/* Decodes the model's escapes (Bedrock's names have ":"). Returns false if the model is too long,
 * has a '+', or still has a '%' when decoded. */
static bool decode(struct slice *model, char out[POLICY_PATH_MAX])
{
	if (model->n > POLICY_PATH_MAX || slice_find_byte(*model, '+') >= 0)
		return false;
	*model = url_parameter_decode(*model, out);
	return slice_find_byte(*model, '%') < 0;
}

/* --- allow rules --- */

static bool is_in(struct slice name, const struct slice *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (json_path_key_resembles(name, list[i]))
			return true;
	return false;
}

/* Counts the members of an object that some reader takes for one of the names. */
static size_t count_members(const struct asked *a, const struct json_value *object,
        const struct slice *list, size_t count)
{
	uint32_t i = (uint32_t)(object - a->tree->values) + 1;
	size_t n = 0;

	for (; i < object->next; i = json_at(a->tree, i + 1)->next)
		n += is_in(json_text(a->tree, json_at(a->tree, i)), list, count);
	return n;
}

/* Reads a whole number from 1 to INT32_MAX. Returns false if it is none. */
static bool read_count(const struct asked *a, const struct json_value *v, uint64_t *out)
{
	return v->kind == JSON_IS_NUMBER && slice_to_u64(json_text(a->tree, v), INT32_MAX, out) &&
	       *out > 0;
}

static bool allows_tokens(const struct asked *a, const struct api *api)
{
	const struct json_value *in = a->body, *bound = NULL, *one, *answers = NULL;
	size_t known = sizeof(bounds) / sizeof(*bounds);
	uint64_t tokens, times = 1, most = bound_of(a);

	if (most == UINT64_MAX || !api->bounds[0].n)
		return true;
	if (api->in.n && (!json_path_member(a->tree, a->body, api->in, &in) || !in ||
	                         in->kind != JSON_IS_OBJECT))
		return false;
	for (size_t i = 0; i < 2 && api->bounds[i].n; i++) {
		if (!json_path_member(a->tree, in, api->bounds[i], &one) || (one && bound))
			return false;
		bound = one ? one : bound;
	}
	if (!bound || count_members(a, in, bounds, known) > 1 ||
	        (in != a->body && count_members(a, a->body, bounds, known) > 0))
		return false;
	if (api->answers.n && !json_path_member(a->tree, in, api->answers, &answers))
		return false;
	return read_count(a, bound, &tokens) && (!answers || read_count(a, answers, &times)) &&
	       tokens <= most / times;
}

static bool allows_model(const struct asked *a, const struct api *api, struct slice model)
{
	char decoded[POLICY_PATH_MAX];
	const struct json_value *named;

	if (!json_path_member(a->tree, a->body, SLICE("model"), &named) ||
	        (api->before.n ? named || !decode(&model, decoded)
	                       : !named || named->kind != JSON_IS_STRING))
		return condition_refuse(&a->of, REFUSAL_PLACE, "the request", SLICE(""),
		        "does not name exactly one model where this API expects it");
	if (!api->before.n)
		model = json_text(a->tree, named);
	return has_model(a, model, false) ||
	       condition_refuse(&a->of, REFUSAL_NAME, "the model", model, "may not be used");
}

bool condition_llm_model(const struct policy_request *request, const struct json_tree *tree,
        char decoded[POLICY_PATH_MAX], struct slice *model)
{
	const struct api *api = find_api(request->path, model);
	const struct json_value *named;

	if (!api || !slice_equals(request->method, SLICE("POST")) ||
	        !json_path_member(tree, json_at(tree, 0), SLICE("model"), &named))
		return false;
	if (api->before.n)
		return !named && decode(model, decoded);
	if (!named || named->kind != JSON_IS_STRING)
		return false;
	*model = json_text(tree, named);
	return true;
}

static bool allows(const struct asked *a)
{
	const struct api *api;
	struct slice model;

	api = find_api(a->of.request->path, &model);
	if (!api || a->body->kind != JSON_IS_OBJECT ||
	        !slice_equals(a->of.request->method, SLICE("POST")))
		return condition_refuse(&a->of, REFUSAL_KIND, "the request", SLICE(""),
		        "does not go to an API of models that vethguard knows");
	if (!allows_model(a, api, model))
		return false;
	if (count_members(a, a->body, further, sizeof(further) / sizeof(*further)) > 0)
		return condition_refuse(&a->of, REFUSAL_VALUE, "the request", SLICE(""),
		        "names further models or settings, which the rule does not judge");
	return allows_tokens(a, api) ||
	       condition_refuse(&a->of, REFUSAL_VALUE, "the request", SLICE(""),
	               "asks for more tokens than the rule allows, or sets no limit for them");
}

/* --- deny rules --- */

static bool denies_value(const struct asked *a, const struct json_value *v)
{
	uint32_t i = (uint32_t)(v - a->tree->values);

	if (v->kind == JSON_IS_STRING)
		return has_model(a, slice_trim(json_text(a->tree, v)), true);
	for (uint32_t k = i + 1; v->kind == JSON_IS_ARRAY && k < v->next; k++)
		if (json_at(a->tree, k)->kind == JSON_IS_STRING &&
		        has_model(a, slice_trim(json_text(a->tree, json_at(a->tree, k))), true))
			return true;
	return false;
}

/* Looks at members at any depth, because a list of fallbacks may have objects. */
static bool denies_body(const struct asked *a)
{
	static const struct slice names[] = {
	        {"model", 5}, {"models", 6}, {"fallbacks", 9}, {"fallback_models", 15}};

	for (uint32_t i = 0; i + 1 < a->tree->count; i++)
		if (json_at(a->tree, i)->kind == JSON_IS_KEY &&
		        is_in(json_text(a->tree, json_at(a->tree, i)), names, 4) &&
		        denies_value(a, json_at(a->tree, i + 1)))
			return true;
	return false;
}

static bool denies_path(const struct asked *a, struct slice path)
{
	char decoded[POLICY_PATH_MAX];

	for (size_t at = 0; at < path.n;) {
		size_t end = at;
		struct slice segment;
		ptrdiff_t colon;

		while (end < path.n && path.p[end] != '/')
			end++;
		segment = slice_of(path.p + at, end - at);
		at = end + 1;
		if (!segment.n)
			continue;
		segment = url_parameter_decode(segment, decoded);
		colon = slice_find_byte(segment, ':');
		if (has_model(a, segment, true) ||
		        (colon > 0 && has_model(a, slice_of(segment.p, (size_t)colon), true)))
			return true;
	}
	return false;
}

bool condition_llm(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition)
{
	const struct policy_body *body = request->body;
	bool deny = (rule->flags & RULE_DENY) != 0, json = body && body->kind == POLICY_BODY_JSON;
	const struct asked a = {{policy, request, rule, condition}, json ? body->json : NULL,
	        json ? json_at(body->json, 0) : NULL};

	if (!deny)
		return json && allows(&a);
	return denies_path(&a, request->path) || (json ? denies_body(&a) : body != NULL);
}
