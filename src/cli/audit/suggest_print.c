/* SPDX-License-Identifier: Apache-2.0 */
/* Prints suggested rules as a policy file that can be checked, included or copied from, or as
 * JSON. */
#include <errno.h>
#include <jansson.h>
#include <time.h>

#include "cli/audit/suggest.h"

#define SHOWN_MAX 1024       /* bytes of a request in a comment: a host and the start of a path */
#define REFUSED_SHOWN_MAX 40 /* requests without a suggested rule; the others are only counted */
#define TIME_MAX 32

static const char *time_of(int64_t ms, char out[TIME_MAX])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || strftime(out, TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
	return out;
}

static const char *opens(const struct suggest_rule *rule)
{
	static const char *const conditions[SUGGEST_KIND_COUNT] = {
	        [SUGGEST_MCP] = "these tools and methods with any arguments (mcp.arguments bounds "
	                        "them), and what each MCP session needs; no credential is sent",
	        [SUGGEST_JSONRPC] =
	                "these methods with any params (jsonrpc.params bounds them); no "
	                "credential is sent",
	        [SUGGEST_GRAPHQL] = "these operations and fields with any arguments; no credential "
	                            "is sent",
	        [SUGGEST_GRPC] = "these calls with any messages; no credential is sent",
	        [SUGGEST_GIT] = "reading that repository; no credential is sent",
	        [SUGGEST_LLM] = "these models with any number of tokens (llm.max_output_tokens and "
	                        "limits bound them); no credential is sent",
	};

	if (rule->values && json_object_get(rule->values, "push"))
		return "reading that repository, and pushes to these refs that lose no commits; no "
		       "credential is sent";
	if (rule->values)
		return conditions[rule->ask->kind];
	if (!rule->method_count)
		return "everything to and from there, unread";
	if (rule->folded)
		return "everything below that path, more than was asked for; no credential is sent";
	return rule->path_count == 1 ? "that path with any query and body; no credential is sent"
	                             : "those paths with any query and body; no credential is sent";
}

/* Prints what the log does not tell about the rule. */
static void print_unknown(const struct suggest_rule *rule, FILE *out)
{
	struct ip ip;

	if (rule->failed && rule->failed == rule->count)
		fputs("  # not known: what would have come next, because it failed each time\n",
		        out);
	else if (rule->failed)
		fprintf(out, "  # %lu of them failed\n", rule->failed);
	if (ip_parse(slice_from_string(rule->ask->host), &ip))
		fputs("  # not known: whose address this is, because no name was asked for\n", out);
}

static void print_list(const char *name, const json_t *texts, FILE *out)
{
	fprintf(out, "      %s: [", name);
	for (size_t i = 0; i < json_array_size(texts); i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "",
		        json_string_value(json_array_get(texts, i)));
	fputs("]\n", out);
}

/* Prints the condition; its texts have no character that YAML or a policy would read. */
static void print_condition(const struct suggest_rule *rule, FILE *out)
{
	const char *name;
	json_t *texts;

	if (!rule->values)
		return;
	fprintf(out, "    %s:\n", suggest_kind_key(rule->ask->kind));
	json_object_foreach(rule->values, name, texts) print_list(name, texts, out);
}

static void print_methods(const struct suggest_rule *rule, FILE *out)
{
	if (!rule->method_count)
		return;
	fputs("    methods: [", out);
	for (size_t i = 0; i < rule->method_count; i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "", rule->methods[i]);
	fputs("]\n    paths:\n", out);
	for (size_t i = 0; i < rule->path_count; i++)
		fprintf(out, "      - \"%s\"\n", rule->paths[i]);
}

static void print_rule(const struct suggest_rule *rule, FILE *out)
{
	char to[SUGGEST_DESTINATION_MAX], when[TIME_MAX], policy[SHOWN_MAX];

	fprintf(out, "  # %lu x, last %s, event %s", rule->count, time_of(rule->last_ms, when),
	        rule->event);
	fprintf(out, "\n  # policy %s\n",
	        slice_escape(slice_from_string(rule->ask->policy), policy, sizeof(policy)));
	fprintf(out, "  # opens: %s\n", opens(rule));
	print_unknown(rule, out);
	fprintf(out, "  - to: \"%s\"\n", suggest_destination_of(rule->ask, to));
	print_methods(rule, out);
	print_condition(rule, out);
	if (rule->credential && !rule->several)
		fprintf(out,
		        "    # Its placeholder came with the request; without this line no key is "
		        "sent:\n"
		        "    # credential: %s\n",
		        rule->credential);
}

static void print_refused(const struct suggest *s, FILE *out)
{
	enum suggest_exclusion last = SUGGEST_FINE;
	unsigned long shown = 0, hidden = 0;
	char what[SHOWN_MAX];

	for (size_t i = 0; i < s->count; i++) {
		const struct suggest_ask *ask = &s->asks[i];

		if (ask->exclusion == SUGGEST_FINE || ask->count == 0)
			continue;
		if (++shown > REFUSED_SHOWN_MAX) {
			hidden++;
			continue;
		}
		if (ask->exclusion != last)
			fprintf(out, "\n# Not suggested: %s.\n",
			        suggest_exclusion_text(ask->exclusion));
		last = ask->exclusion;
		/* Its parts are escaped already: only cut it here. */
		fprintf(out, "#   %5lu x  %s\n", ask->count,
		        slice_escape_controls(slice_from_string(ask->what), what, sizeof(what)));
	}
	if (hidden)
		fprintf(out, "# And %lu more: --json has them all.\n", hidden);
}

void suggest_print(const struct suggest *s, const struct suggest_rules *rules, FILE *out)
{
	if (rules->count) {
		fputs("# What would allow the denials of this log. Read it, then copy or include "
		      "what "
		      "is meant:\n"
		      "# 'vethguard policy diff OLD NEW' tells what a changed policy opens.\n"
		      "vethguard: 1\n"
		      "allow:\n",
		        out);
		for (size_t i = 0; i < rules->count; i++)
			print_rule(&rules->rules[i], out);
	} else {
		fputs("# Nothing to suggest.\n", out);
	}
	if (s->allowed)
		fprintf(out, "# Left out: %lu that the policy allows by now.\n", s->allowed);
	suggest_excepts_print(s, out);
	print_refused(s, out);
}

static json_t *array_of(const char *const *texts, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_string(texts[i]));
	return array;
}

static json_t *rule_json(const struct suggest_rule *rule)
{
	char to[SUGGEST_DESTINATION_MAX], when[TIME_MAX];
	json_t *inner = json_pack("{s:s}", "to", suggest_destination_of(rule->ask, to));

	if (rule->method_count) {
		json_object_set_new(inner, "methods", array_of(rule->methods, rule->method_count));
		json_object_set_new(inner, "paths",
		        array_of((const char *const *)rule->paths, rule->path_count));
	}
	if (rule->values)
		json_object_set(inner, suggest_kind_key(rule->ask->kind), rule->values);
	return json_pack("{s:o, s:s, s:I, s:I, s:s, s:s, s:s, s:b, s:s*}", "rule", inner, "policy",
	        rule->ask->policy, "count", (json_int_t)rule->count, "failed",
	        (json_int_t)rule->failed, "last", time_of(rule->last_ms, when), "event",
	        rule->event, "opens", opens(rule), "wider", rule->folded, "credential",
	        rule->several ? NULL : rule->credential);
}

int suggest_print_json(const struct suggest *s, const struct suggest_rules *rules, FILE *out)
{
	json_t *suggested = json_array(), *refused = json_array(), *all;
	int rc;

	for (size_t i = 0; i < rules->count; i++)
		json_array_append_new(suggested, rule_json(&rules->rules[i]));
	for (size_t i = 0; i < s->count; i++)
		if (s->asks[i].exclusion != SUGGEST_FINE && s->asks[i].count > 0)
			json_array_append_new(refused,
			        json_pack("{s:s, s:s, s:I, s:s}", "what", s->asks[i].what, "why",
			                suggest_exclusion_text(s->asks[i].exclusion), "count",
			                (json_int_t)s->asks[i].count, "event", s->asks[i].event));
	all = json_pack("{s:o, s:o, s:o, s:I}", "suggested", suggested, "excepts",
	        suggest_excepts_json(s), "refused", refused, "allowed", (json_int_t)s->allowed);
	rc = all ? json_dumpf(all, out, JSON_COMPACT | JSON_ENSURE_ASCII) : -1;
	fputc('\n', out);
	json_decref(all);
	return rc == 0 ? 0 : -ENOMEM;
}
