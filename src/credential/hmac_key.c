/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the key of an hmac credential from the text that a source gives. */
#include <errno.h>

#include "vethguard/base/base64.h"
#include "vethguard/credential/inject.h"
#include "vethguard/credential/mask.h"

/* Decodes base64 or base64url (RFC 4648 sections 4 and 5), with or without padding. */
static bool decode_base64(struct slice text, struct secret *out)
{
	ssize_t n = base64_decode(text, BASE64_EITHER, out->p, text.n);

	out->n = n > 0 ? (size_t)n : 0;
	return n >= 0;
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
