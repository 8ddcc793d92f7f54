/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of keys, and which keys readers take for each other: protobuf's JSON knows "max_tokens" and
 * "maxTokens", Go's knows letters of any case. */
#include "policy/json/json_path.h"

bool json_path_next(struct slice *path, struct slice *key)
{
	size_t n = 1;

	if (path->n == 0)
		return false;
	while (n < path->n && path->p[n] != '/')
		n++;
	*key = slice_of(path->p + 1, n - 1);
	*path = slice_of(path->p + n, path->n - n);
	return true;
}

bool json_path_is_sound(struct slice path)
{
	unsigned keys = 0;
	struct slice key;

	if (path.n == 0 || path.p[0] != '/')
		return false;
	while (json_path_next(&path, &key)) {
		if (key.n == 0 || ++keys > JSON_PATH_KEYS_MAX)
			return false;
		for (size_t i = 0; i < key.n; i++)
			if (key.p[i] == '~' &&
			        (i + 1 == key.n || (key.p[i + 1] != '0' && key.p[i + 1] != '1')))
				return false;
	}
	return true;
}

/* Takes one byte off a key of a path. */
static char next_byte(struct slice key, size_t *at)
{
	char c = key.p[(*at)++];

	if (c != '~' || *at == key.n)
		return c;
	return key.p[(*at)++] == '1' ? '/' : '~';
}

bool json_path_key_is(struct slice name, struct slice key)
{
	size_t at = 0, i = 0;

	while (at < key.n)
		if (i == name.n || next_byte(key, &at) != name.p[i++])
			return false;
	return i == name.n;
}

static bool is_skipped(char c)
{
	return c == '_' || c == '-' || c == '.' || c == ' ';
}

/* Takes the next letter off a name, folded. Returns 0 at the end. U+017F folds to s, U+212A to k.
 */
static char next_letter(struct slice name, size_t *at)
{
	while (*at < name.n && is_skipped(name.p[*at]))
		++*at;
	if (*at == name.n)
		return 0;
	if (slice_starts_with(slice_of(name.p + *at, name.n - *at), SLICE("\xc5\xbf"))) {
		*at += 2;
		return 's';
	}
	if (slice_starts_with(slice_of(name.p + *at, name.n - *at), SLICE("\xe2\x84\xaa"))) {
		*at += 3;
		return 'k';
	}
	if (name.p[*at] >= 'A' && name.p[*at] <= 'Z')
		return (char)(name.p[(*at)++] | 0x20);
	return name.p[(*at)++];
}

/* The same of a key of a path, in which '~' begins an escape. */
static char next_key_letter(struct slice key, size_t *at)
{
	while (*at < key.n && is_skipped(key.p[*at]))
		++*at;
	if (*at < key.n && key.p[*at] == '~')
		return next_byte(key, at);
	return next_letter(key, at);
}

bool json_path_key_resembles(struct slice name, struct slice key)
{
	size_t i = 0, k = 0;
	char c;

	if (json_path_key_is(name, key))
		return true;
	do {
		c = next_letter(name, &i);
		if (c != next_key_letter(key, &k))
			return false;
	} while (c);
	return true;
}

bool json_path_keys_resemble(struct slice a, struct slice b)
{
	size_t i = 0, k = 0;
	char c;

	do {
		c = next_key_letter(a, &i);
		if (c != next_key_letter(b, &k))
			return false;
	} while (c);
	return true;
}

bool json_path_member(const struct json_tree *tree, const struct json_value *object,
        struct slice key, const struct json_value **out)
{
	uint32_t i = (uint32_t)(object - tree->values) + 1;

	*out = NULL;
	for (; i < object->next; i = json_at(tree, i + 1)->next) {
		struct slice name = json_text(tree, json_at(tree, i));

		if (!json_path_key_resembles(name, key))
			continue;
		if (*out || !json_path_key_is(name, key))
			return false;
		*out = json_at(tree, i + 1);
	}
	return true;
}

bool json_looks_numeric(struct slice text)
{
	bool digit = false;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		digit |= c >= '0' && c <= '9';
		if (!(c >= '0' && c <= '9') && c != '-' && c != '+' && c != '.' && c != 'e' &&
		        c != 'E')
			return false;
	}
	return digit;
}

bool json_value_is_sound(struct slice value)
{
	struct slice rest;

	if (value.n == 0)
		return false;
	rest = slice_of(value.p + 1, value.n - 1);
	switch (value.p[0]) {
	case JSON_VALUE_TEXT:
		return true;
	case JSON_VALUE_PATH:
		return rest.n > 0 && rest.p[0] == '/';
	case JSON_VALUE_ANY:
		return rest.n == 0;
	case JSON_VALUE_WORD:
		return slice_equals(rest, SLICE("true")) || slice_equals(rest, SLICE("false"));
	case JSON_VALUE_NUMBER:
		return value.n == JSON_VALUE_NUMBER_BYTES;
	default:
		return false;
	}
}
