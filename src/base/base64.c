/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one routine reads six bits at any bit offset. Whole encodings and the inner
 * characters of a shifted one differ only in the first offset and the end.
 */
#include "vethguard/base/base64.h"

#include <errno.h>

const char base64_standard[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const char base64_url[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The six bits at bit offset `at`; bits past the end are zero. */
static unsigned sextet(const uint8_t *p, size_t n, size_t at)
{
	size_t byte = at / 8;
	unsigned pair = (unsigned)p[byte] << 8;

	if (byte + 1 < n)
		pair |= p[byte + 1];
	return pair >> (10 - at % 8) & 63;
}

size_t base64_encode(const void *p, size_t n, const char alphabet[64], void *out)
{
	char *to = out;
	size_t len = 0;

	for (size_t at = 0; at < 8 * n; at += 6)
		to[len++] = alphabet[sextet(p, n, at)];
	while (alphabet == base64_standard && len % 4)
		to[len++] = '=';
	return len;
}

int base64_append(struct buf *out, struct slice bytes)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < bytes.n; i += 3) {
		char group[4];
		size_t left = bytes.n - i;

		base64_encode(bytes.p + i, left < 3 ? left : 3, base64_standard, group);
		rc = buf_append(out, group, sizeof(group));
	}
	return rc;
}

size_t base64_inner(const void *p, size_t n, unsigned lead, const char alphabet[64], void *out)
{
	char *to = out;
	size_t len = 0;

	for (size_t at = (6 - 8 * lead % 6) % 6; at + 6 <= 8 * n; at += 6)
		to[len++] = alphabet[sextet(p, n, at)];
	return len;
}

/* The six bits of a character, or -1. */
static int bits_of(char c, bool either)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || (either && c == '-'))
		return 62;
	return c == '/' || (either && c == '_') ? 63 : -1;
}

static bool is_space(char c)
{
	return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

ssize_t base64_decode(struct slice text, unsigned accept, void *out, size_t cap)
{
	size_t n = 0, characters = 0, padding = 0;
	unsigned held = 0, bits = 0;
	uint8_t *to = out;

	for (size_t i = 0; i < text.n; i++) {
		int six = bits_of(text.p[i], accept & BASE64_EITHER);

		if ((accept & BASE64_LINES) && is_space(text.p[i]))
			continue;
		characters++;
		if (text.p[i] == '=' && padding++ < 2)
			continue;
		if (six < 0 || padding)
			return -EBADMSG;
		held = held << 6 | (unsigned)six;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (n == cap)
			return -ENOBUFS;
		to[n++] = (uint8_t)(held >> bits);
		held &= (1u << bits) - 1;
	}
	if (accept & BASE64_LENIENT)
		return (ssize_t)n;
	if ((padding || (accept & BASE64_LINES)) && characters % 4)
		return -EBADMSG;
	return bits < 6 && !held ? (ssize_t)n : -EBADMSG;
}
