/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and variables of an attachment, and which are valid. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/attach/record.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* extra: what a key may hold besides letters and digits, but not at its beginning. */
static bool key_is_plain(const char *key, const char *extra, bool digit_first, size_t max)
{
	size_t n = strlen(key);

	if (n == 0 || n > max || !(is_letter(key[0]) || (digit_first && is_digit(key[0]))))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!is_letter(key[i]) && !is_digit(key[i]) && !strchr(extra, key[i]))
			return false;
	return true;
}

static bool value_is_text(const char *value, size_t max)
{
	size_t n = strlen(value);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return false;
	return n <= max;
}

/* Returns the first pair with the key of an earlier one, or NULL. */
static const struct attach_pair *find_twice(const struct attach_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(pairs->items[i].key, pairs->items[k].key) == 0)
				return &pairs->items[i];
	return NULL;
}

#define TEXT_OF(number) TEXT_OF_2(number)
#define TEXT_OF_2(number) #number

const char *attach_labels_objection(
        const struct attach_pairs *labels, const struct attach_pair **culprit)
{
	*culprit = NULL;
	if (labels->count > ATTACH_LABELS_MAX)
		return "there are more than " TEXT_OF(ATTACH_LABELS_MAX) " labels";
	for (size_t i = 0; i < labels->count; i++) {
		*culprit = &labels->items[i];
		if (!key_is_plain(labels->items[i].key, "._-/", true, ATTACH_LABEL_KEY_MAX))
			return "a label's key is up to " TEXT_OF(
			        ATTACH_LABEL_KEY_MAX) " letters, digits, '.', '_', '-' and '/', "
			                              "beginning with a letter or digit";
		if (!value_is_text(labels->items[i].value, ATTACH_LABEL_VALUE_MAX))
			return "a label's value is up to " TEXT_OF(
			        ATTACH_LABEL_VALUE_MAX) " bytes without control characters";
	}
	*culprit = find_twice(labels);
	return *culprit ? "a label is given twice" : NULL;
}

const char *attach_vars_objection(
        const struct attach_pairs *vars, const struct attach_pair **culprit)
{
	*culprit = NULL;
	if (vars->count > ATTACH_VARS_MAX)
		return "there are more than " TEXT_OF(ATTACH_VARS_MAX) " variables";
	for (size_t i = 0; i < vars->count; i++) {
		*culprit = &vars->items[i];
		if (!key_is_plain(vars->items[i].key, "_", false, ATTACH_VAR_KEY_MAX))
			return "a variable's name is up to " TEXT_OF(
			        ATTACH_VAR_KEY_MAX) " letters, digits and '_', beginning with a "
			                            "letter";
		if (!value_is_text(vars->items[i].value, ATTACH_VAR_VALUE_MAX))
			return "a variable's value is up to " TEXT_OF(
			        ATTACH_VAR_VALUE_MAX) " bytes without control characters";
	}
	*culprit = find_twice(vars);
	return *culprit ? "a variable is given twice" : NULL;
}

/* These texts are shown on terminals. */
const char *attach_container_objection(const struct attach_container *c)
{
	bool plain = value_is_text(c->engine, ATTACH_ENGINE_MAX) &&
	             value_is_text(c->id, ATTACH_CONTAINER_MAX) &&
	             value_is_text(c->name, ATTACH_CONTAINER_MAX);

	return plain ? NULL : "engine, id and name of a container must not hold control characters";
}

void attach_pairs_free(struct attach_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		free((char *)(uintptr_t)pairs->items[i].key);
		free((char *)(uintptr_t)pairs->items[i].value);
	}
	free((struct attach_pair *)(uintptr_t)pairs->items);
	*pairs = (struct attach_pairs){0, NULL};
}

char *attach_labels_lines(const struct attach_pairs *labels)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = labels->count ? open_memstream(&text, &n) : NULL;

	if (!f)
		return NULL;
	for (size_t i = 0; i < labels->count; i++)
		fprintf(f, "%s=%s\n", labels->items[i].key, labels->items[i].value);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int attach_pairs_copy(struct attach_pairs *out, const struct attach_pairs *pairs)
{
	struct attach_pair *items = calloc(pairs->count + 1, sizeof(*items));
	bool ok = true;

	*out = (struct attach_pairs){0, items};
	if (!items)
		return -ENOMEM;
	out->count = pairs->count;
	for (size_t i = 0; i < out->count; i++) {
		items[i].key = strdup(pairs->items[i].key);
		items[i].value = strdup(pairs->items[i].value);
		ok = ok && items[i].key && items[i].value;
	}
	if (ok)
		return 0;
	attach_pairs_free(out);
	return -ENOMEM;
}

struct identity attach_record_identity(const struct attach_record *r)
{
	return (struct identity){.uid = r->uid,
	        .gid = r->gid,
	        .asked = r->asked,
	        .group_count = r->group_count,
	        .groups = r->groups};
}

int attach_record_set_identity(struct attach_record *r, const struct identity *id)
{
	struct identity own;
	int rc = identity_copy(&own, id);

	free(r->groups);
	r->uid = own.uid;
	r->gid = own.gid;
	r->asked = own.asked;
	r->group_count = own.group_count;
	r->groups = (gid_t *)(uintptr_t)own.groups;
	return rc;
}

void attach_record_fini(struct attach_record *r)
{
	free(r->groups);
	free(r->netns);
	free(r->policy);
	attach_pairs_free(&r->labels);
	attach_pairs_free(&r->vars);
	attach_pairs_free(&r->revoked);
	memset(r, 0, sizeof(*r));
}

static const char *const kind_names[] = {[ATTACH_INTERFACE] = "interface",
        [ATTACH_NETNS] = "netns",
        [ATTACH_PID] = "pid",
        [ATTACH_LISTEN] = "listen",
        [ATTACH_SESSION] = "session"};
_Static_assert(sizeof(kind_names) / sizeof(kind_names[0]) == ATTACH_KIND_COUNT, "a name per kind");

const char *attach_kind_name(enum attach_kind kind)
{
	return kind_names[kind];
}
