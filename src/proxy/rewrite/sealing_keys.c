/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an answer of AWS's STS has an access key id, its secret and a session token.
 * The three are sealed as one token of the jar, "ID:SECRET:TOKEN" as sigv4 takes keys, and one text
 * stands in the place of each: whichever of them the sandbox shows later, the text leads to all
 * three. A client signs with the text as its secret; vethguard signs anew (signing/sign.c).
 */
#include <errno.h>

#include "proxy/exchange/exchange.h"
#include "proxy/rewrite/sealing.h"
#include "vethguard/wire/sts_xml.h"

static const char keys_text[] =
        "the upstream's response has keys that could not sign a request, so "
        "they cannot be sealed";

/* Writes the answer with the text in place of each key. */
static const char *rewrite(
        struct sealing *s, const struct sts_xml *xml, const struct jar_token *token)
{
	struct slice rest = secret_slice(&s->body);

	for (size_t done = 0; done < STS_KEY_COUNT; done++) {
		const struct slice *next = NULL;

		for (size_t i = 0; i < STS_KEY_COUNT; i++)
			if (xml->keys[i].p >= rest.p && (!next || xml->keys[i].p < next->p))
				next = &xml->keys[i];
		if (!next) /* two of them overlap */
			return keys_text;
		if (buf_append(&s->sent, rest.p, (size_t)(next->p - rest.p)) < 0 ||
		        jar_write_text(&s->sent, token) < 0)
			return sealing_too_large;
		rest = slice_of(next->p + next->n, rest.n - (size_t)(next->p - rest.p) - next->n);
	}
	return buf_append_slice(&s->sent, rest) < 0 ? sealing_too_large : NULL;
}

/* Masks secret and session token in the rest of the answer. */
static const char *mask_rest(struct sealing *s, const struct sts_xml *xml)
{
	struct mask *mask = mask_new(&xml->keys[STS_SECRET], STS_KEY_COUNT - STS_SECRET);

	if (!mask)
		return sealing_no_memory;
	sealing_mask(s, mask);
	mask_free(mask);
	return NULL;
}

static int join(const struct sts_xml *xml, struct secret *out)
{
	size_t n = STS_KEY_COUNT - 1;

	for (size_t i = 0; i < STS_KEY_COUNT; i++)
		n += xml->keys[i].n;
	if (secret_alloc(out, n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < STS_KEY_COUNT; i++) {
		memcpy(out->p + out->n, xml->keys[i].p, xml->keys[i].n);
		out->n += xml->keys[i].n;
		if (i + 1 < STS_KEY_COUNT)
			out->p[out->n++] = ':';
	}
	return 0;
}

/* True if aws_keys_new() splits the joined keys into the same ones, and the session token is long
 * enough for a mask. */
static bool can_sign(const struct sts_xml *xml, struct slice joined)
{
	const char *fault;
	struct aws_keys *keys = aws_keys_new(joined, &fault);
	bool can = keys && xml->keys[STS_TOKEN].n >= MASK_VALUE_MIN &&
	           slice_equals(keys->id, xml->keys[STS_ID]) &&
	           slice_equals(keys->token, xml->keys[STS_TOKEN]);

	aws_keys_free(keys);
	return can;
}

const char *sealing_read_keys(struct exchange *ex)
{
	struct sealing *s = ex->sealing;
	struct slice body = secret_slice(&s->body);
	struct jar_token token;
	char end[JAR_END_MAX];
	struct sts_xml xml;
	struct secret joined;
	const char *why = sts_xml_read(body, &xml);

	if (why)
		return why;
	if (!xml.found)
		return buf_append_slice(&s->sent, body) < 0 ? sealing_too_large : NULL;
	if (join(&xml, &joined) < 0)
		return sealing_no_memory;
	if (!can_sign(&xml, secret_slice(&joined)))
		why = keys_text;
	if (!why)
		why = sealing_keep_token(ex, secret_slice(&joined), &token, end);
	if (!why)
		why = rewrite(s, &xml, &token);
	if (!why)
		why = mask_rest(s, &xml);
	secret_free(&joined);
	return why;
}
