/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a value in place, checks it as a whole, and then copies it once, into locked memory.
 */
#include "vethguard/credential/aws_keys.h"

#include <errno.h>
#include <stdlib.h>

#include "credential/aws_json.h"

_Static_assert(AWS_KEY_ID_MAX + SIGV4_SECRET_MAX + AWS_TOKEN_MAX + HMAC_BYTES <= SECRET_MAX,
        "one secret holds everything");

static bool is_key_id(struct slice id)
{
	for (size_t i = 0; i < id.n; i++) {
		char c = id.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            c == '_' || c == '-' || c == '.'))
			return false;
	}
	return id.n > 0 && id.n <= AWS_KEY_ID_MAX;
}

static bool is_visible(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 0x7f)
			return false;
	return true;
}

/* Splits ID:SECRET or ID:SECRET:TOKEN. */
static void split(struct slice value, struct aws_json *out)
{
	ptrdiff_t colon = slice_find_byte(value, ':');
	struct slice rest;

	*out = (struct aws_json){0};
	if (colon < 0)
		return;
	out->id = slice_of(value.p, (size_t)colon);
	rest = slice_of(value.p + colon + 1, value.n - (size_t)colon - 1);
	colon = slice_find_byte(rest, ':');
	out->secret = slice_of(rest.p, colon < 0 ? rest.n : (size_t)colon);
	if (colon >= 0)
		out->token = slice_of(rest.p + colon + 1, rest.n - (size_t)colon - 1);
}

static const char *check(const struct aws_json *parts)
{
	if (!parts->id.n || !parts->secret.n)
		return "The credential's value has no access key id and secret: sigv4 needs "
		       "\"ID:SECRET\", \"ID:SECRET:TOKEN\", or JSON with AccessKeyId and "
		       "SecretAccessKey.";
	if (!is_key_id(parts->id))
		return "The credential's access key id is too long, or holds something else than "
		       "letters, digits, '_', '-' and '.'.";
	if (parts->secret.n < AWS_SECRET_MIN || parts->secret.n > SIGV4_SECRET_MAX ||
	        !is_visible(parts->secret))
		return "The credential's secret access key is too short, too long, or holds a "
		       "blank or another character that no key has.";
	if (parts->token.n > AWS_TOKEN_MAX || !is_visible(parts->token))
		return "The credential's session token is too long, or holds a character that no "
		       "token has.";
	return NULL;
}

/* Appends s to memory, without the backslashes of "\/". Any other escape stays as it is, and then
 * the text is not a valid key. */
static struct slice keep(struct secret *memory, struct slice s, bool json)
{
	uint8_t *at = memory->p + memory->n;
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (json && s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == '/')
			continue;
		at[n++] = (uint8_t)s.p[i];
	}
	memory->n += n;
	return slice_of(at, n);
}

struct aws_keys *aws_keys_new(struct slice value, const char **error)
{
	struct aws_keys *keys = calloc(1, sizeof(*keys));
	bool json = value.n && value.p[0] == '{';
	struct aws_json parts;

	*error = "There is no memory for the credential.";
	if (!keys)
		return NULL;
	if (json) {
		*error = aws_json_read(value, &parts);
	} else {
		split(value, &parts);
		*error = NULL;
	}
	if (!*error)
		*error = check(&parts);
	if (!*error && secret_alloc(&keys->memory,
	                       HMAC_BYTES + parts.id.n + parts.secret.n + parts.token.n) < 0)
		*error = "There is no locked memory for the credential.";
	if (*error) {
		free(keys);
		return NULL;
	}
	keys->day = keys->memory.p;
	keys->memory.n = HMAC_BYTES;
	keys->id = keep(&keys->memory, parts.id, json);
	keys->secret = keep(&keys->memory, parts.secret, json);
	keys->token = keep(&keys->memory, parts.token, json);
	return keys;
}

void aws_keys_free(struct aws_keys *keys)
{
	if (!keys)
		return;
	secret_free(&keys->memory);
	free(keys);
}

const uint8_t *aws_keys_for(
        struct aws_keys *keys, struct hmac *hmac, const struct sigv4_scope *scope)
{
	char text[SIGV4_SCOPE_MAX];
	struct slice wanted = sigv4_scope_text(scope, text);

	if (slice_equals(wanted, slice_from_string(keys->day_scope)))
		return keys->day;
	keys->day_scope[0] = '\0';
	if (sigv4_key(hmac, keys->secret, scope, keys->day) < 0)
		return NULL;
	memcpy(keys->day_scope, text, wanted.n + 1);
	return keys->day;
}
