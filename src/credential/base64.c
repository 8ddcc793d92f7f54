/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one routine reads six bits at any bit offset. Whole encodings and the inner
 * characters of a shifted one differ only in the first offset and the end.
 */
#include "credential/base64.h"

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

size_t base64_encode(const uint8_t *p, size_t n, uint8_t *out)
{
	size_t len = 0;

	for (size_t at = 0; at < 8 * n; at += 6)
		out[len++] = (uint8_t)base64_standard[sextet(p, n, at)];
	while (len % 4)
		out[len++] = '=';
	return len;
}

size_t base64_inner(
        const uint8_t *p, size_t n, unsigned lead, const char alphabet[64], uint8_t *out)
{
	size_t len = 0;

	for (size_t at = (6 - 8 * lead % 6) % 6; at + 6 <= 8 * n; at += 6)
		out[len++] = (uint8_t)alphabet[sextet(p, n, at)];
	return len;
}
