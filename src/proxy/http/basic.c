/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/http/basic.h"

#include <errno.h>

struct slice basic_credentials(struct slice value)
{
	struct slice scheme = SLICE("basic ");

	if (value.n <= scheme.n || !slice_equals_ignoring_case(slice_of(value.p, scheme.n), scheme))
		return SLICE("");
	return slice_trim(slice_of(value.p + scheme.n, value.n - scheme.n));
}

static int bits_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int basic_decode(struct buf *out, struct slice base64)
{
	unsigned held = 0, bits = 0;
	int rc = 0;

	for (int i = 0; i < 2 && base64.n && base64.p[base64.n - 1] == '='; i++)
		base64.n--;
	for (size_t i = 0; rc == 0 && i < base64.n; i++) {
		int six = bits_of(base64.p[i]);
		uint8_t byte;

		if (six < 0)
			return -EBADMSG;
		held = (held << 6 | (unsigned)six) & 0xffff;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		byte = (uint8_t)(held >> bits);
		rc = buf_append(out, &byte, 1);
	}
	return rc;
}

int basic_encode(struct buf *out, struct slice bytes)
{
	static const char letters[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < bytes.n; i += 3) {
		const uint8_t *p = (const uint8_t *)bytes.p + i;
		size_t left = bytes.n - i;
		unsigned v = (unsigned)p[0] << 16;
		char four[4];

		v |= left > 1 ? (unsigned)p[1] << 8 : 0;
		v |= left > 2 ? (unsigned)p[2] : 0;
		four[0] = letters[v >> 18];
		four[1] = letters[v >> 12 & 63];
		four[2] = left > 1 ? letters[v >> 6 & 63] : '=';
		four[3] = left > 2 ? letters[v & 63] : '=';
		rc = buf_append(out, four, sizeof(four));
	}
	return rc;
}
