/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens in values of Proxy-Authorization and of the fields that may stand for it. */
#include "vethguard/base/base64.h"
#include "vethguard/wire/proxy_head.h"

static bool is_visible(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] <= 0x20 || (uint8_t)s.p[i] >= 0x7f)
			return false;
	return s.n > 0;
}

static bool take_token(struct slice token, struct proxy_proof *out)
{
	if (token.n > sizeof(out->text) || !is_visible(token))
		return false;
	memcpy(out->text, token.p, token.n);
	out->n = token.n;
	return true;
}

bool proxy_proof_of_pair(struct slice user, struct slice password, struct proxy_proof *out)
{
	out->n = 0;
	return take_token(password.n ? password : user, out);
}

static bool read_basic(struct slice text, struct proxy_proof *out)
{
	char pair[PROXY_PROOF_MAX + 256];
	ssize_t n = base64_decode(text, BASE64_STRICT, pair, sizeof(pair));
	ptrdiff_t colon;
	bool good;

	colon = n > 0 ? slice_find_byte(slice_of(pair, (size_t)n), ':') : -1;
	good = colon >= 0 && proxy_proof_of_pair(slice_of(pair, (size_t)colon),
	                             slice_of(pair + colon + 1, (size_t)(n - colon - 1)), out);
	explicit_bzero(pair, sizeof(pair));
	return good;
}

bool proxy_proof_read(struct slice authorization, struct proxy_proof *out)
{
	ptrdiff_t space = slice_find_byte(authorization, ' ');
	struct slice scheme =
	        slice_of(authorization.p, space < 0 ? authorization.n : (size_t)space);

	out->n = 0;
	authorization =
	        slice_trim(slice_of(authorization.p + scheme.n, authorization.n - scheme.n));
	if (slice_equals_ignoring_case(scheme, SLICE("basic")))
		return read_basic(authorization, out);
	return slice_equals_ignoring_case(scheme, SLICE("bearer")) &&
	       take_token(authorization, out);
}

bool proxy_proof_take(struct slice token, struct proxy_proof *out)
{
	out->n = 0;
	return take_token(token, out);
}
