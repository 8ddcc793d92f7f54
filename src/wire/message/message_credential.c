/* SPDX-License-Identifier: Apache-2.0 */
/* The messages by which an operator looks at credentials and changes them, of which none holds a
 * value; and the one that takes what a login gave to the keeper. */
#include "wire/message/message_codec.h"

static void credential_ask_fields(struct codec *c, struct message_credential_ask *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->generation = codec_u64(c, m->generation);
	m->what = codec_u8(c, m->what);
	if (m->what >= MESSAGE_CREDENTIAL_WHATS)
		codec_fail(c, -EBADMSG);
	m->credential = codec_upto(c, m->credential, POLICY_CREDENTIALS_MAX - 1);
}
CODEC_PAIR(credential_ask)

static void credential_seal_fields(struct codec *c, struct message_credential_seal *m)
{
	m->name = codec_string(c, m->name, 1, MESSAGE_NAME_MAX);
	m->jwt = codec_bool(c, m->jwt);
	m->end = codec_bytes(c, m->end, 1, MESSAGE_SEALED_END_MAX);
	m->value = codec_bytes(c, m->value, 1, MESSAGE_SEALED_MAX);
}
CODEC_PAIR(credential_seal)

static void worker_credentials_fields(struct codec *c, struct message_worker_credentials *m)
{
	m->ended = codec_u64(c, m->ended);
	m->count = codec_upto(c, m->count, POLICY_CREDENTIALS_MAX);
	for (uint32_t i = 0; i < m->count; i++) {
		m->credentials[i].uses = codec_u64(c, m->credentials[i].uses);
		m->credentials[i].last_used_ms = codec_u64(c, m->credentials[i].last_used_ms);
	}
}
CODEC_PAIR(worker_credentials)

/* A mark has its full length or is empty. */
static struct slice mark(struct codec *c, struct slice v)
{
	v = codec_bytes(c, v, 0, MESSAGE_CREDENTIAL_MARK_BYTES);
	if (v.n > 0 && v.n != MESSAGE_CREDENTIAL_MARK_BYTES)
		codec_fail(c, -EBADMSG);
	return v;
}

static void keeper_credentials_fields(struct codec *c, struct message_keeper_credentials *m)
{
	m->error = codec_string(c, m->error, 0, MESSAGE_WHAT_MAX);
	m->mark = mark(c, m->mark);
	m->ttl_s = codec_u32(c, m->ttl_s);
	m->count = codec_upto(c, m->count, POLICY_CREDENTIALS_MAX);
	for (uint32_t i = 0; i < m->count; i++) {
		m->credentials[i].held = codec_bool(c, m->credentials[i].held);
		m->credentials[i].fetching = codec_bool(c, m->credentials[i].fetching);
		m->credentials[i].revoked = codec_bool(c, m->credentials[i].revoked);
		m->credentials[i].fetches = codec_u32(c, m->credentials[i].fetches);
		m->credentials[i].failures = codec_u32(c, m->credentials[i].failures);
		m->credentials[i].fetched_ms = codec_u64(c, m->credentials[i].fetched_ms);
		m->credentials[i].ends_ms = codec_u64(c, m->credentials[i].ends_ms);
		m->credentials[i].failed_ms = codec_u64(c, m->credentials[i].failed_ms);
		m->credentials[i].error =
		        codec_string(c, m->credentials[i].error, 0, MESSAGE_CREDENTIAL_ERROR_MAX);
		m->credentials[i].mark = mark(c, m->credentials[i].mark);
	}
}
CODEC_PAIR(keeper_credentials)
