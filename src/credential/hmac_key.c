/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the key of an hmac credential from the text that a source gives. */
#include <errno.h>

#include "credential/base64.h"
#include "vethguard/credential/inject.h"
#include "vethguard/credential/mask.h"

/* Returns the six bits of a character of either alphabet, or -1. */
static int bits_of(char c)
{
	for (int i = 0; i < 64; i++)
		if (c == base64_standard[i] || c == base64_url[i])
			return i;
	return -1;
}

/* Decodes base64 or base64url (RFC 4648 sections 4 and 5), with or without padding. */
static bool decode_base64(struct slice text, struct secret *out)
{
	unsigned held = 0, bits = 0;

	for (int i = 0; i < 2 && text.n && (text.n + (size_t)i) % 4 == 0; i++)
		text.n -= text.p[text.n - 1] == '=';
	for (size_t i = 0; i < text.n; i++) {
		int six = bits_of(text.p[i]);

		if (six < 0)
			return false;
		held = held << 6 | (unsigned)six;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		out->p[out->n++] = (uint8_t)(held >> bits);
		held &= (1u << bits) - 1;
	}
	return text.n % 4 != 1 && !held;
}

static bool decode_hex(struct slice text, struct secret *out)
{
	for (size_t i = 0; i + 1 < text.n; i += 2) {
		int high = slice_hex_digit(text.p[i]), low = slice_hex_digit(text.p[i + 1]);

		if (high < 0 || low < 0)
			return false;
		out->p[out->n++] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
	}
	return text.n % 2 == 0;
}

int inject_hmac_key(
        const struct policy_credential *credential, struct slice value, struct secret *out)
{
	struct policy_hmac hmac;
	bool good;
	int rc;

	*out = (struct secret){0};
	policy_hmac(credential, &hmac);
	if (value.n < MASK_VALUE_MIN)
		return -EINVAL;
	if (hmac.secret == POLICY_SECRET_TEXT)
		return secret_copy(out, value.p, value.n);
	rc = secret_alloc(out, value.n);
	if (rc < 0)
		return rc;
	good = hmac.secret == POLICY_SECRET_BASE64 ? decode_base64(value, out)
	                                           : decode_hex(value, out);
	if (good && out->n)
		return 0;
	secret_free(out);
	return -EINVAL;
}
