/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token in a jar: one byte (1: a JWT), the length of the end of its text (one byte), its own
 * length (two bytes, the higher one first), that end, the token.
 */
#include "vethguard/credential/jar.h"

#include <errno.h>

#include "vethguard/base/base64.h"
#include "vethguard/base/hash.h"
#include "vethguard/credential/mask.h"

#define HEAD 4 /* bytes before the end of the text */
#define DIGITS 16

_Static_assert(JAR_TOKENS_MAX <= MASK_VALUES_MAX, "one mask for a whole jar");
_Static_assert(BASE64_SIZE(PLACEHOLDER_MAX + 1 + DIGITS + 2) <= JAR_END_MAX, "an end has room");
_Static_assert(HEAD + JAR_END_MAX + JAR_TOKEN_MAX <= JAR_MAX, "a jar has room for any token");

bool jar_can_hold(struct slice value)
{
	if (value.n < MASK_VALUE_MIN || value.n > JAR_TOKEN_MAX)
		return false;
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] <= ' ' || value.p[i] > '~')
			return false;
	return true;
}

/* --- the bytes --- */

bool jar_next(struct slice *rest, struct jar_token *out)
{
	const uint8_t *p = (const uint8_t *)rest->p;
	size_t end_n, n;

	if (rest->n < HEAD || p[0] > 1)
		return false;
	end_n = p[1];
	n = (size_t)p[2] << 8 | p[3];
	if (end_n == 0 || end_n > JAR_END_MAX || end_n + n > rest->n - HEAD)
		return false;
	out->jwt = p[0] == 1;
	out->end = slice_of(p + HEAD, end_n);
	out->value = slice_of(p + HEAD + end_n, n);
	if (!jar_can_hold(out->value))
		return false;
	*rest = slice_of(p + HEAD + end_n + n, rest->n - HEAD - end_n - n);
	return true;
}

bool jar_is_sound(struct slice jar)
{
	struct jar_token token;
	size_t count = 0;

	if (jar.n > JAR_MAX)
		return false;
	while (jar_next(&jar, &token))
		count++;
	return jar.n == 0 && count <= JAR_TOKENS_MAX;
}

static size_t size_of(const struct jar_token *token)
{
	return HEAD + token->end.n + token->value.n;
}

static void put(struct secret *jar, const struct jar_token *token)
{
	uint8_t *p = jar->p + jar->n;

	p[0] = token->jwt;
	p[1] = (uint8_t)token->end.n;
	p[2] = (uint8_t)(token->value.n >> 8);
	p[3] = (uint8_t)token->value.n;
	memcpy(p + HEAD, token->end.p, token->end.n);
	memcpy(p + HEAD + token->end.n, token->value.p, token->value.n);
	jar->n += size_of(token);
}

/* The tokens that stay: all but that one, without so many of the oldest that it has room. */
static struct slice staying(struct slice jar, const struct jar_token *next)
{
	struct jar_token token;
	struct slice rest = jar;
	size_t count = 0;

	while (jar_next(&rest, &token))
		count++;
	while (jar.n && (jar.n + size_of(next) > JAR_MAX || count >= JAR_TOKENS_MAX)) {
		if (!jar_next(&jar, &token))
			return SLICE("");
		count--;
	}
	return jar;
}

int jar_add(struct secret *jar, const struct jar_token *next)
{
	struct slice rest = staying(secret_slice(jar), next);
	struct jar_token token;
	struct secret made;
	int rc;

	if (!jar_can_hold(next->value) || next->end.n == 0 || next->end.n > JAR_END_MAX)
		return -EINVAL;
	rc = secret_alloc(&made, rest.n + size_of(next));
	if (rc < 0)
		return rc;
	while (jar_next(&rest, &token))
		if (!slice_equals(token.value, next->value))
			put(&made, &token);
	put(&made, next);
	secret_free(jar);
	*jar = made;
	return 0;
}

bool jar_has(struct slice jar, struct slice value, struct jar_token *out)
{
	while (jar_next(&jar, out))
		if (slice_equals(out->value, value))
			return true;
	return false;
}

/* --- the texts --- */

static bool is_base64url(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i], lower = (char)(c | 0x20);

		if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') && c != '-' &&
		        c != '_')
			return false;
	}
	return s.n > 0;
}

/* Bytes of a JWT before its signature; 0: it is none, or has no signature worth the name. */
static size_t before_signature(struct slice value)
{
	ptrdiff_t first = slice_find_byte(value, '.'), second;
	struct slice rest;

	if (first < 0 || !slice_starts_with(value, SLICE("eyJ")))
		return 0;
	rest = slice_of(value.p + first + 1, value.n - (size_t)first - 1);
	second = slice_find_byte(rest, '.');
	if (second < 0 || !is_base64url(slice_of(value.p, (size_t)first)) ||
	        !is_base64url(slice_of(rest.p, (size_t)second)))
		return 0;
	first += second + 2;
	rest = slice_of(value.p + first, value.n - (size_t)first);
	return is_base64url(rest) && rest.n >= MASK_VALUE_MIN ? (size_t)first : 0;
}

static struct slice begins(const struct jar_token *token)
{
	return slice_of(token->value.p, token->jwt ? before_signature(token->value) : 0);
}

void jar_seal(
        struct jar_token *out, struct slice value, struct slice placeholder, char end[JAR_END_MAX])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t random[DIGITS + 2];
	char text[PLACEHOLDER_MAX + 1 + sizeof(random)];
	size_t n = placeholder.n < PLACEHOLDER_MAX ? placeholder.n : PLACEHOLDER_MAX;
	size_t least = n + 1 + DIGITS;

	random_bytes(random, sizeof(random));
	memcpy(text, placeholder.p, n);
	text[n++] = '-';
	/* Up to a multiple of three bytes, so that its base64 has no padding. */
	for (size_t i = 0; i < sizeof(random) && (n < least || n % 3); i++)
		text[n++] = digits[random[i] & 15];
	out->value = value;
	out->jwt = before_signature(value) > 0;
	if (out->jwt)
		n = base64_inner(text, n, 0, base64_url, end);
	else
		memcpy(end, text, n);
	out->end = slice_of(end, n);
}

int jar_write_text(struct buf *out, const struct jar_token *token)
{
	int rc = buf_append_slice(out, begins(token));

	return rc ? rc : buf_append_slice(out, token->end);
}

/* Where the token's text is in p, or -1. */
static ptrdiff_t place_of(const struct jar_token *token, struct slice p)
{
	struct slice first = begins(token), rest = p;

	while (rest.n >= token->end.n) {
		const char *end = memmem(rest.p, rest.n, token->end.p, token->end.n);

		if (!end)
			return -1;
		if ((size_t)(end - p.p) >= first.n && memcmp(end - first.n, first.p, first.n) == 0)
			return end - first.n - p.p;
		rest = slice_of(end + 1, p.n - (size_t)(end + 1 - p.p));
	}
	return -1;
}

bool jar_find(struct slice jar, struct slice p, size_t *at, size_t *n, struct jar_token *out)
{
	struct jar_token token;
	bool found = false;

	while (p.n && jar_next(&jar, &token)) {
		ptrdiff_t place = place_of(&token, p);

		if (place < 0 || (found && (size_t)place >= *at))
			continue;
		found = true;
		*out = token;
		*at = (size_t)place;
		*n = begins(&token).n + token.end.n;
	}
	return found;
}

size_t jar_secrets(struct slice jar, struct slice out[JAR_TOKENS_MAX])
{
	struct jar_token token;
	size_t n = 0;

	while (n < JAR_TOKENS_MAX && jar_next(&jar, &token)) {
		size_t first = begins(&token).n;

		out[n++] = slice_of(token.value.p + first, token.value.n - first);
	}
	return n;
}
