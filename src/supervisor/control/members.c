/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members are read by a table: name, type, target. An unknown name is refused, with a hint at the
 * name that was probably meant: with a mistyped "polcy", the attachment must not go on with less
 * than was wanted. The attachments module judges the values (lengths, which names are in use); here
 * only what is needed to make the call is checked.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/diag.h"
#include "supervisor/control/members.h"

#define MEMBERS_MAX 16

bool member_fault(char *fault, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault, CONTROL_FAULT_MAX, format, arguments);
	va_end(arguments);
	return false;
}

static bool has_type(const json_t *value, enum member_type type)
{
	switch (type) {
	case MEMBER_STRING:
		return json_is_string(value);
	case MEMBER_INTEGER:
		return json_is_integer(value);
	case MEMBER_BOOLEAN:
		return json_is_boolean(value);
	case MEMBER_OBJECT:
		return json_is_object(value);
	default:
		return json_is_array(value);
	}
}

static const char *const type_names[] = {
        [MEMBER_STRING] = "a string",
        [MEMBER_INTEGER] = "a whole number",
        [MEMBER_BOOLEAN] = "true or false",
        [MEMBER_OBJECT] = "an object",
        [MEMBER_ARRAY] = "an array",
};

static bool unknown(
        const struct member *members, size_t count, const char *where, const char *key, char *fault)
{
	const char *names[MEMBERS_MAX + 1];
	const struct diag_known known = {names, "known here", NULL, NULL};
	char word[MEMBER_WORD_MAX], hint[DIAG_HINT_MAX];

	for (size_t i = 0; i < count; i++)
		names[i] = members[i].name;
	names[count] = NULL;
	slice_escape(slice_from_string(key), word, sizeof(word));
	return member_fault(fault, "%s%s: there is no such member%s", where, word,
	        diag_hint(slice_from_string(key), &known, hint));
}

bool members_read(
        const json_t *body, struct member *members, size_t count, const char *where, char *fault)
{
	const char *key;
	json_t *value;

	/* jansson's iteration takes no const; nothing is changed. */
	for (void *at = json_object_iter((json_t *)(uintptr_t)body); at;
	        at = json_object_iter_next((json_t *)(uintptr_t)body, at)) {
		key = json_object_iter_key(at);
		value = json_object_iter_value(at);
		size_t i = 0;

		while (i < count && strcmp(members[i].name, key) != 0)
			i++;
		if (i == count)
			return unknown(members, count, where, key, fault);
		if (json_is_null(value))
			continue; /* null counts as missing */
		if (!has_type(value, members[i].type))
			return member_fault(fault, "%s%s: has to be %s", where, key,
			        type_names[members[i].type]);
		members[i].value = value;
	}
	return true;
}

const char *member_text(const struct member *member)
{
	return member->value ? json_string_value(member->value) : NULL;
}

bool member_number(
        const struct member *member, uint64_t min, uint64_t max, uint64_t *out, char *fault)
{
	json_int_t n;

	if (!member->value)
		return true;
	n = json_integer_value(member->value);
	if (n < 0 || (uint64_t)n < min || (uint64_t)n > max)
		return member_fault(fault, "%s: %lld is out of range (%llu to %llu)", member->name,
		        (long long)n, (unsigned long long)min, (unsigned long long)max);
	*out = (uint64_t)n;
	return true;
}

bool member_pairs(const struct member *member, struct attach_pair *pairs, size_t max,
        struct attach_pairs *out, char *fault)
{
	const char *key;
	char word[MEMBER_WORD_MAX];
	json_t *value;

	out->items = pairs;
	if (!member->value)
		return true;
	for (void *at = json_object_iter((json_t *)(uintptr_t)member->value); at;
	        at = json_object_iter_next((json_t *)(uintptr_t)member->value, at)) {
		key = json_object_iter_key(at);
		value = json_object_iter_value(at);
		slice_escape(slice_from_string(key), word, sizeof(word));
		if (!json_is_string(value))
			return member_fault(fault, "%s.%s: has to be a string", member->name, word);
		if (out->count == max)
			return member_fault(fault, "%s: more than %zu members", member->name, max);
		pairs[out->count++] = (struct attach_pair){key, json_string_value(value)};
	}
	return true;
}

bool member_is_policy(const char *path, char *fault)
{
	struct slice name, file;

	return config_bundle_split(slice_from_string(path), &name, &file) ||
	       member_is_absolute("policy", path, fault);
}

bool member_is_absolute(const char *member, const char *path, char *fault)
{
	char shown[MEMBER_WORD_MAX];

	if (path[0] == '/')
		return true;
	return member_fault(fault, "%s: \"%s\" is not an absolute path", member,
	        slice_escape(slice_from_string(path), shown, sizeof(shown)));
}
