/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the gateway, and the message to a worker that follows from them. */
#include "wire/message/message_codec.h"

static uint32_t above_zero(struct codec *c, uint32_t v)
{
	v = codec_u32(c, v);
	if (v == 0)
		codec_fail(c, -EBADMSG);
	return v;
}

static void gateway_start_fields(struct codec *c, struct message_gateway_start *m)
{
	m->log_level = codec_u8(c, m->log_level);
	m->has_certificate = codec_bool(c, m->has_certificate);
	m->client_certificates = codec_bool(c, m->client_certificates);
	m->unauthenticated = above_zero(c, m->unauthenticated);
	m->unauthenticated_per_address = above_zero(c, m->unauthenticated_per_address);
	m->handshake_ms = above_zero(c, m->handshake_ms);
	m->listener_count = codec_upto(c, m->listener_count, CONFIG_GATEWAY_LISTENERS_MAX);
	for (size_t i = 0; i < m->listener_count; i++) {
		m->listener_kind[i] = (enum config_gateway_kind)codec_upto(
		        c, m->listener_kind[i], CONFIG_GATEWAY_KIND_COUNT - 1);
		if (config_gateway_kind_has_tls(m->listener_kind[i]) && !m->has_certificate)
			codec_fail(c, -EBADMSG);
	}
	m->base_count = codec_upto(c, m->base_count, CONFIG_GATEWAY_BASES_MAX);
	for (size_t i = 0; i < m->base_count; i++) {
		m->bases[i].name = codec_string(c, m->bases[i].name, 1, POLICY_HOST_MAX);
		m->bases[i].https = codec_bool(c, m->bases[i].https);
		m->bases[i].authority =
		        codec_string(c, m->bases[i].authority, 1, CONFIG_GATEWAY_AUTHORITY_MAX);
	}
	m->balancer_count = codec_upto(c, m->balancer_count, CONFIG_BALANCERS_MAX);
	for (size_t i = 0; i < m->balancer_count; i++)
		m->balancers[i] = codec_prefix(c, m->balancers[i]);
}
CODEC_PAIR(gateway_start)

static void gateway_session_fields(struct codec *c, struct message_gateway_session *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->token_hash = codec_bytes(c, m->token_hash, 0, MESSAGE_TOKEN_HASH_BYTES);
	if (m->token_hash.n && m->token_hash.n != MESSAGE_TOKEN_HASH_BYTES)
		codec_fail(c, -EBADMSG);
	m->from_count = codec_upto(c, m->from_count, MESSAGE_FROM_MAX);
	for (size_t i = 0; i < m->from_count; i++)
		m->from[i] = codec_prefix(c, m->from[i]);
	m->by_address = codec_bool(c, m->by_address);
	if (m->by_address && (m->token_hash.n || !m->from_count))
		codec_fail(c, -EBADMSG);
	m->callback = codec_bool(c, m->callback);
	if (m->callback && !m->token_hash.n)
		codec_fail(c, -EBADMSG);
	m->admission = codec_u64(c, m->admission);
}
CODEC_PAIR(gateway_session)

static void gateway_session_end_fields(struct codec *c, struct message_gateway_session_end *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
}
CODEC_PAIR(gateway_session_end)

/* An address that must not be missing. */
static struct ip client_field(struct codec *c, struct ip v)
{
	v = codec_ip(c, v);
	if (v.family == 0)
		codec_fail(c, -EBADMSG);
	return v;
}

static enum message_form form_field(struct codec *c, enum message_form v)
{
	return (enum message_form)codec_upto(c, v, MESSAGE_FORM_COUNT - 1);
}

static struct message_handover handover_field(struct codec *c, struct message_handover v)
{
	v.handed = (enum message_handed)codec_upto(c, v.handed, MESSAGE_HANDED_COUNT - 1);
	if (v.handed == MESSAGE_HANDED_NOT)
		return (struct message_handover){0};
	v.first = codec_bytes(c, v.first, 0, MESSAGE_FIRST_MAX);
	v.reading = codec_bytes(c, v.reading, 0, MESSAGE_TRAFFIC_SECRET_MAX);
	v.writing = codec_bytes(c, v.writing, 0, MESSAGE_TRAFFIC_SECRET_MAX);
	if (v.reading.n != v.writing.n)
		codec_fail(c, -EBADMSG);
	v.suite = codec_u8(c, v.suite);
	v.reading_next = codec_u64(c, v.reading_next);
	v.writing_next = codec_u64(c, v.writing_next);
	return v;
}

static void gateway_enter_fields(struct codec *c, struct message_gateway_enter *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->source = client_field(c, m->source);
	m->source_port = codec_u16(c, m->source_port);
	m->reached = codec_ip(c, m->reached);
	m->form = form_field(c, m->form);
	m->admission = codec_u64(c, m->admission);
	m->handover = handover_field(c, m->handover);
	if (m->handover.handed != MESSAGE_HANDED_NOT && m->form != MESSAGE_FORM_PROXY)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(gateway_enter)

static void gateway_entered_fields(struct codec *c, struct message_gateway_entered *m)
{
	m->entered = codec_bool(c, m->entered);
}
CODEC_PAIR(gateway_entered)

static void gateway_guesses_fields(struct codec *c, struct message_gateway_guesses *m)
{
	m->source = client_field(c, m->source);
	m->count = codec_u64(c, m->count);
}
CODEC_PAIR(gateway_guesses)

static struct message_public_key public_key_field(struct codec *c, struct message_public_key k)
{
	k.algorithm = (enum config_algorithm)codec_upto(c, k.algorithm, CONFIG_ALGORITHM_COUNT - 1);
	k.id = codec_bytes(c, k.id, 0, MESSAGE_KEY_ID_MAX);
	k.bytes = codec_bytes(c, k.bytes, 1, MESSAGE_PUBLIC_KEY_MAX);
	k.exponent = codec_u32(c, k.exponent);
	return k;
}

static void gateway_signer_fields(struct codec *c, struct message_gateway_signer *m)
{
	m->count = codec_upto(c, m->count, CONFIG_SIGNERS_MAX);
	if (!m->count)
		return;
	m->index = codec_upto(c, m->index, m->count - 1);
	m->issuer = codec_string(c, m->issuer, 1, CONFIG_CLAIM_VALUE_MAX);
	m->audience_count = codec_upto(c, m->audience_count, CONFIG_AUDIENCES_MAX);
	for (size_t i = 0; i < m->audience_count; i++)
		m->audiences[i] = codec_string(c, m->audiences[i], 1, CONFIG_CLAIM_VALUE_MAX);
	m->algorithms = codec_u8(c, m->algorithms);
	m->lifetime_s = above_zero(c, m->lifetime_s);
	m->callbacks = codec_bool(c, m->callbacks);
	m->key_count = codec_upto(c, m->key_count, MESSAGE_KEY_SET_MAX);
	for (size_t i = 0; i < m->key_count; i++)
		m->keys[i] = public_key_field(c, m->keys[i]);
}
CODEC_PAIR(gateway_signer)

static void gateway_token_fields(struct codec *c, struct message_gateway_token *m)
{
	m->source = client_field(c, m->source);
	m->text = codec_bytes(c, m->text, 1, MESSAGE_SIGNED_TOKEN_MAX);
}
CODEC_PAIR(gateway_token)

static void gateway_verdict_fields(struct codec *c, struct message_gateway_verdict *m)
{
	m->verdict = (enum message_verdict)codec_upto(c, m->verdict, MESSAGE_VERDICTS - 1);
	if (m->verdict != MESSAGE_TOKEN_ACCEPTED)
		return;
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->expires_s = codec_u64(c, m->expires_s);
}
CODEC_PAIR(gateway_verdict)

static void worker_enter_fields(struct codec *c, struct message_worker_enter *m)
{
	m->source = client_field(c, m->source);
	m->source_port = codec_u16(c, m->source_port);
	m->reached = codec_ip(c, m->reached);
	m->form = form_field(c, m->form);
	m->handover = handover_field(c, m->handover);
}
CODEC_PAIR(worker_enter)

static void worker_associate_fields(struct codec *c, struct message_worker_associate *m)
{
	m->at = client_field(c, m->at);
}
CODEC_PAIR(worker_associate)

static void worker_associated_fields(struct codec *c, struct message_worker_associated *m)
{
	m->port = codec_u16(c, m->port);
	if (m->port)
		m->address = client_field(c, m->address);
}
CODEC_PAIR(worker_associated)
