/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns requests into rules. The requests of one destination and method give a list of paths or, if
 * there are too many, one pattern over their common folder. Methods with the same paths share a
 * rule.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/audit/suggest.h"

static void lay_findings_beside(struct suggest *s)
{
	for (size_t i = 0; i < s->denial_count; i++)
		if (json_object_get(s->findings, s->denials[i].event))
			s->asks[s->denials[i].ask].exclusion = SUGGEST_FINDING;
	for (size_t i = 0; i < s->count; i++)
		if (s->asks[i].exclusion == SUGGEST_FINE &&
		        json_object_get(s->findings, s->asks[i].host))
			s->asks[i].exclusion = SUGGEST_FINDING;
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Sorts the asks with SUGGEST_FINE first, so that those of one rule are neighbors. */
static int compare(const void *left, const void *right)
{
	const struct suggest_ask *a = left, *b = right;
	int c = (a->exclusion > b->exclusion) - (a->exclusion < b->exclusion);

	if (c == 0)
		c = suggest_compare_destinations(a, b);
	if (c == 0)
		c = (a->kind > b->kind) - (a->kind < b->kind);
	if (c == 0)
		c = compare_texts(a->place, b->place);
	if (c == 0)
		c = compare_texts(a->method, b->method);
	return c ? c : compare_texts(a->path, b->path);
}

static bool is_no_request(const struct suggest_ask *ask)
{
	return ask->exclusion == SUGGEST_NAME_ONLY || ask->exclusion == SUGGEST_UNSEEN;
}

/* A name is not listed if a request for it was seen. */
static void forget_names(struct suggest *s)
{
	json_t *hosts = json_object();

	for (size_t i = 0; i < s->count; i++)
		if (!is_no_request(&s->asks[i]))
			json_object_set_new(hosts, s->asks[i].host, json_true());
	for (size_t i = 0; i < s->count; i++)
		if (is_no_request(&s->asks[i]) && json_object_get(hosts, s->asks[i].host))
			s->asks[i].count = 0;
	json_decref(hosts);
}

/* Turns "/a/b" and "/a/c/d" into "/a/ **" (without the blank). */
static char *common_folder(const struct suggest_ask *asks, size_t n)
{
	size_t same = strlen(asks[0].path);
	char *pattern;

	for (size_t i = 1; i < n; i++) {
		size_t k = 0;

		while (k < same && asks[i].path[k] == asks[0].path[k])
			k++;
		same = k;
	}
	while (same > 0 && asks[0].path[same - 1] != '/')
		same--;
	pattern = malloc(same + sizeof("/**"));
	if (pattern) {
		memcpy(pattern, asks[0].path, same);
		memcpy(pattern + same, same ? "**" : "/**", sizeof("/**") - (same ? 1 : 0));
		if (same)
			pattern[same + 2] = '\0';
	}
	return pattern;
}

static void free_paths(struct suggest_rule *rule)
{
	for (size_t i = 0; i < rule->path_count; i++)
		free(rule->paths[i]);
	rule->path_count = 0;
}

/* Makes one rule from n asks of one destination and method. */
static int make_one(const struct suggest_ask *asks, size_t n, struct suggest_rule *rule)
{
	rule->ask = asks;
	for (size_t i = 0; i < n; i++)
		suggest_rule_count(rule, &asks[i]);
	if (!asks->method)
		return 0;
	rule->methods[rule->method_count++] = asks->method;
	rule->folded = n > SUGGEST_PATHS_MAX;
	for (size_t i = 0; i < (rule->folded ? 1 : n); i++) {
		rule->paths[i] = rule->folded ? common_folder(asks, n) : strdup(asks[i].path);
		if (!rule->paths[i])
			return -ENOMEM;
		rule->path_count++;
	}
	return 0;
}

static bool same_paths(const struct suggest_rule *a, const struct suggest_rule *b)
{
	if (a->path_count != b->path_count || a->folded != b->folded)
		return false;
	for (size_t i = 0; i < a->path_count; i++)
		if (strcmp(a->paths[i], b->paths[i]) != 0)
			return false;
	return true;
}

/* Adds the rule's method to an earlier rule of the destination with the same paths. */
static bool join(struct suggest_rules *rules, struct suggest_rule *rule)
{
	for (size_t i = rules->count; i-- > 0;) {
		struct suggest_rule *r = &rules->rules[i];

		if (suggest_compare_destinations(r->ask, rule->ask) != 0 || r->values ||
		        rule->values)
			return false;
		if (!same_paths(r, rule) || r->method_count == SUGGEST_METHODS_MAX)
			continue;
		r->methods[r->method_count++] = rule->methods[0];
		r->count += rule->count;
		r->several |= rule->several;
		suggest_note_credential(r, rule->credential);
		r->failed += rule->failed;
		if (rule->last_ms > r->last_ms) {
			r->last_ms = rule->last_ms;
			r->event = rule->event;
		}
		free_paths(rule);
		return true;
	}
	return false;
}

/* Counts the asks, of n, that one rule with methods and paths is made of. */
static size_t count_alike(const struct suggest_ask *asks, size_t n)
{
	size_t alike = 1;

	while (alike < n && asks[alike].exclusion == SUGGEST_FINE &&
	        asks[alike].kind == SUGGEST_PLAIN &&
	        suggest_compare_destinations(asks, &asks[alike]) == 0 &&
	        compare_texts(asks->method, asks[alike].method) == 0)
		alike++;
	return alike;
}

static void free_rule(struct suggest_rule *rule)
{
	free_paths(rule);
	json_decref(rule->values);
}

int suggest_make(struct suggest *s, const struct policy *policy, struct suggest_rules *out)
{
	size_t n;

	memset(out, 0, sizeof(*out));
	if (s->count == 0)
		return 0;
	lay_findings_beside(s);
	if (policy)
		suggest_decide(s, policy);
	suggest_condition_settle(s);
	forget_names(s);
	qsort(s->asks, s->count, sizeof(*s->asks), compare);
	out->rules = calloc(s->count, sizeof(*out->rules));
	if (!out->rules)
		return -ENOMEM;
	for (size_t i = 0; i < s->count && s->asks[i].exclusion == SUGGEST_FINE; i += n) {
		struct suggest_rule *rule = &out->rules[out->count];
		int rc;

		if (s->asks[i].kind == SUGGEST_PLAIN) {
			n = count_alike(&s->asks[i], s->count - i);
			rc = make_one(&s->asks[i], n, rule);
		} else {
			rc = suggest_condition_make(&s->asks[i], s->count - i, rule, &n);
		}
		if (rc != 0) {
			free_rule(rule);
			return rc;
		}
		if (!join(out, rule))
			out->count++;
	}
	return 0;
}

void suggest_rules_free(struct suggest_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free_rule(&rules->rules[i]);
	free(rules->rules);
	memset(rules, 0, sizeof(*rules));
}
