/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between supervisor and keeper about the life of their CAs. */
#include "wire/message/message_codec.h"

static struct slice fingerprint(struct codec *c, struct slice s)
{
	return codec_bytes(c, s, MESSAGE_FINGERPRINT_BYTES, MESSAGE_FINGERPRINT_BYTES);
}

static void keeper_worker_fields(struct codec *c, struct message_keeper_worker *m)
{
	m->root = codec_bytes(c, m->root, 0, MESSAGE_FINGERPRINT_BYTES);
	if (m->root.n > 0 && m->root.n < MESSAGE_FINGERPRINT_BYTES)
		codec_fail(c, -EBADMSG);
	m->waits = codec_bool(c, m->waits);
}
CODEC_PAIR(keeper_worker)

static void keeper_ca_ask_fields(struct codec *c, struct message_keeper_ca_ask *m)
{
	m->what = (uint8_t)codec_upto(c, m->what, MESSAGE_CA_WHATS - 1);
	m->configured = (uint8_t)codec_upto(c, m->configured,
	        MESSAGE_CA_ROOT_FILE | MESSAGE_CA_CERTIFICATE_FILE | MESSAGE_CA_KEY_FILE |
	                MESSAGE_CA_TOKEN_KEY);
	if ((m->configured & MESSAGE_CA_KEY_FILE) && (m->configured & MESSAGE_CA_TOKEN_KEY))
		codec_fail(c, -EBADMSG);
	m->problem = codec_string(c, m->problem, 0, MESSAGE_WHAT_MAX);
	m->overlap_s = codec_upto(c, m->overlap_s, MESSAGE_CA_OVERLAP_MAX_S);
	m->name = codec_string(c, m->name, 0, MESSAGE_NAME_MAX);
	m->certificate = codec_string(c, m->certificate, 0, MESSAGE_PAPERS_MAX);
	m->root = codec_string(c, m->root, 0, MESSAGE_PAPERS_MAX);
}
CODEC_PAIR(keeper_ca_ask)

static void keeper_ca_fields(struct codec *c, struct message_keeper_ca *m)
{
	m->changed = codec_bool(c, m->changed);
	m->error = codec_string(c, m->error, 0, MESSAGE_WHAT_MAX);
	m->notes = codec_string(c, m->notes, 0, MESSAGE_WHAT_MAX);
	m->request = codec_string(c, m->request, 0, MESSAGE_PEM_MAX);
	m->trusted = codec_string(c, m->trusted, 0, MESSAGE_PEM_MAX);
	m->unusable = codec_bool(c, m->unusable);
	m->trying = codec_bool(c, m->trying);
	m->count = codec_upto(c, m->count, MESSAGE_CAS_MAX);
	for (size_t i = 0; i < m->count; i++) {
		m->cas[i].origin = (uint8_t)codec_upto(c, m->cas[i].origin, MESSAGE_CA_ORIGINS - 1);
		m->cas[i].fingerprint = fingerprint(c, m->cas[i].fingerprint);
		m->cas[i].root = fingerprint(c, m->cas[i].root);
		m->cas[i].subject = codec_string(c, m->cas[i].subject, 0, MESSAGE_SUBJECT_MAX);
		m->cas[i].root_subject =
		        codec_string(c, m->cas[i].root_subject, 0, MESSAGE_SUBJECT_MAX);
		m->cas[i].from_s = codec_u64(c, m->cas[i].from_s);
		m->cas[i].until_s = codec_u64(c, m->cas[i].until_s);
		m->cas[i].root_until_s = codec_u64(c, m->cas[i].root_until_s);
		m->cas[i].retires_s = codec_u64(c, m->cas[i].retires_s);
	}
}
CODEC_PAIR(keeper_ca)
