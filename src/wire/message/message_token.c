/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the process that speaks to a PKCS #11 module. */
#include "vethguard/wire/pkcs11_uri.h"
#include "wire/message/message_codec.h"

static size_t texts(struct codec *c, size_t count, struct slice *out)
{
	count = codec_upto(c, count, MESSAGE_TOKEN_PAIRS_MAX);
	for (size_t i = 0; i < count; i++)
		out[i] = codec_string(c, out[i], 1, MESSAGE_PATH_MAX);
	return count;
}

static void token_start_fields(struct codec *c, struct message_token_start *m)
{
	m->uri = codec_string(c, m->uri, 1, PKCS11_URI_MAX);
	m->module = codec_string(c, m->module, 1, MESSAGE_PATH_MAX);
	m->user = codec_string(c, m->user, 0, MESSAGE_NAME_MAX);
	m->variable_count = texts(c, m->variable_count, m->variables);
	m->writable_count = texts(c, m->writable_count, m->writable);
}
CODEC_PAIR(token_start)

static void token_sign_fields(struct codec *c, struct message_token_sign *m)
{
	m->digest = codec_bytes(c, m->digest, MESSAGE_DIGEST_BYTES, MESSAGE_DIGEST_BYTES);
}
CODEC_PAIR(token_sign)

static void token_signature_fields(struct codec *c, struct message_token_signature *m)
{
	m->kind = (uint8_t)codec_upto(c, m->kind, MESSAGE_TOKEN_KEYS - 1);
	m->signature = codec_bytes(c, m->signature, 0, MESSAGE_SIGNATURE_MAX);
	m->error = codec_string(c, m->error, 0, MESSAGE_WHAT_MAX);
	if (!m->signature.n == !m->error.n || (m->signature.n && !m->kind))
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(token_signature)
