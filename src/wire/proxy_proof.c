/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens in values of Proxy-Authorization and of the fields that may stand for it. */
#include "vethguard/wire/proxy_head.h"

static bool is_visible(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] <= 0x20 || (uint8_t)s.p[i] >= 0x7f)
			return false;
	return s.n > 0;
}

static int sextet(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64 (RFC 4648 section 4), with or without its padding, into at most cap bytes. Bits
 * that stand for nothing have to be zero. */
static bool decode_base64(struct slice s, char *out, size_t cap, size_t *n)
{
	uint32_t bits = 0;
	unsigned have = 0;

	*n = 0;
	if (s.n % 4 == 0)
		for (unsigned pad = 0; pad < 2 && s.n && s.p[s.n - 1] == '='; pad++)
			s.n--;
	for (size_t i = 0; i < s.n; i++) {
		int v = sextet(s.p[i]);

		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		if (*n == cap)
			return false;
		out[(*n)++] = (char)(bits >> have);
		bits &= (1u << have) - 1;
	}
	return have < 6 && bits == 0;
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
	ptrdiff_t colon;
	bool good;
	size_t n;

	good = decode_base64(text, pair, sizeof(pair), &n);
	colon = good ? slice_find_byte(slice_of(pair, n), ':') : -1;
	good = colon >= 0 && proxy_proof_of_pair(slice_of(pair, (size_t)colon),
	                             slice_of(pair + colon + 1, n - (size_t)colon - 1), out);
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
