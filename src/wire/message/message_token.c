/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the process that speaks to a PKCS #11 module. */
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

size_t message_scheme_digest_bytes(uint16_t scheme)
{
	switch (scheme) {
	case MESSAGE_SCHEME_ANY:
	case MESSAGE_SCHEME_RSA_SHA256:
	case MESSAGE_SCHEME_ECDSA_SHA256:
	case MESSAGE_SCHEME_PSS_SHA256:
		return 32;
	case MESSAGE_SCHEME_RSA_SHA384:
	case MESSAGE_SCHEME_ECDSA_SHA384:
	case MESSAGE_SCHEME_PSS_SHA384:
		return 48;
	case MESSAGE_SCHEME_RSA_SHA512:
	case MESSAGE_SCHEME_ECDSA_SHA512:
	case MESSAGE_SCHEME_PSS_SHA512:
		return 64;
	default:
		return 0;
	}
}

static void token_key_sign_fields(struct codec *c, struct message_token_key_sign *m)
{
	m->uri = codec_string(c, m->uri, 1, PKCS11_URI_MAX);
	m->scheme = codec_u16(c, m->scheme);
	m->digest = codec_bytes(c, m->digest, 1, MESSAGE_SCHEME_DIGEST_MAX);
	if (m->digest.n != message_scheme_digest_bytes(m->scheme))
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(token_key_sign)

static void key_token_fields(struct codec *c, struct message_key_token *m)
{
	m->label = codec_string(c, m->label, 1, MESSAGE_LABEL_MAX);
	m->why = codec_string(c, m->why, 0, MESSAGE_WHAT_MAX);
}
CODEC_PAIR(key_token)

static void token_signature_fields(struct codec *c, struct message_token_signature *m)
{
	m->kind = (uint8_t)codec_upto(c, m->kind, MESSAGE_TOKEN_KEYS - 1);
	m->signature = codec_bytes(c, m->signature, 0, MESSAGE_SIGNATURE_MAX);
	m->error = codec_string(c, m->error, 0, MESSAGE_WHAT_MAX);
	if (!m->signature.n == !m->error.n || (m->signature.n && !m->kind))
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(token_signature)
