/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rules with conditions: the requests of one destination, kind and place give one rule, whose
 * condition has the names of all of them. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/audit/suggest.h"

static bool has(const json_t *list, const json_t *text)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_equal(json_array_get(list, i), text))
			return true;
	return false;
}

/* Counts the texts of more that list does not have. */
static size_t count_new(const json_t *list, const json_t *more)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(more); i++)
		n += !has(list, json_array_get(more, i));
	return n;
}

static bool fits(const json_t *values, json_t *more)
{
	const char *key;
	json_t *list;

	json_object_foreach(more, key, list)
	{
		const json_t *known = json_object_get(values, key);

		if (json_array_size(known) + count_new(known, list) > SUGGEST_VALUES_MAX)
			return false;
	}
	return true;
}

/* Adds the text in alphabetical order. */
static int insert(json_t *list, json_t *text)
{
	size_t at = 0;

	while (at < json_array_size(list) &&
	        strcmp(json_string_value(json_array_get(list, at)), json_string_value(text)) < 0)
		at++;
	return json_array_insert(list, at, text) == 0 ? 0 : -ENOMEM;
}

static int merge(json_t *values, json_t *more)
{
	const char *key;
	json_t *list;
	int rc = 0;

	json_object_foreach(more, key, list)
	{
		json_t *known = json_object_get(values, key);

		if (!known && json_object_set_new(values, key, known = json_array()) != 0)
			return -ENOMEM;
		for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
			if (!has(known, json_array_get(list, i)))
				rc = insert(known, json_array_get(list, i));
	}
	return rc;
}

static bool shares(const struct suggest_ask *a, const struct suggest_ask *b)
{
	return b->exclusion == SUGGEST_FINE && a->kind == b->kind &&
	       suggest_same_destination(a, b) && strcmp(a->place, b->place) == 0;
}

/* A rule with mcp has to name a tool or a method. With any of them it also allows what each session
 * needs, such as ping. */
static int name_something(struct suggest_rule *rule)
{
	if (rule->ask->kind != SUGGEST_MCP || json_object_size(rule->values) > 0)
		return 0;
	return json_object_set_new(rule->values, "methods", json_pack("[s]", "ping")) == 0
	               ? 0
	               : -ENOMEM;
}

int suggest_condition_make(
        const struct suggest_ask *asks, size_t n, struct suggest_rule *rule, size_t *taken)
{
	int rc = 0;

	*taken = 0;
	rule->ask = asks;
	rule->values = json_object();
	if (!rule->values)
		return -ENOMEM;
	for (; rc == 0 && *taken < n && shares(asks, &asks[*taken]) &&
	        fits(rule->values, asks[*taken].values);
	        ++*taken) {
		suggest_rule_count(rule, &asks[*taken]);
		rc = merge(rule->values, asks[*taken].values);
	}
	rc = rc ? rc : name_something(rule);
	if (rc != 0 || asks->kind == SUGGEST_GRPC || asks->kind == SUGGEST_GIT)
		return rc;
	rule->methods[rule->method_count++] = asks->method;
	rule->paths[0] = strdup(asks->path);
	rule->path_count = rule->paths[0] != NULL;
	return rule->paths[0] ? 0 : -ENOMEM;
}

void suggest_condition_settle(struct suggest *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct suggest_ask *ask = &s->asks[i];

		for (size_t k = 0; ask->exclusion == SUGGEST_REFS && k < s->count; k++)
			if (shares(ask, &s->asks[k]) && json_object_get(s->asks[k].values, "push"))
				ask->exclusion = SUGGEST_FINE;
	}
}
