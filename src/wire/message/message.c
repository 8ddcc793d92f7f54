/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of every message, and the messages of keeper and recorder. Those of the worker and of a
 * run are in message_worker.c and message_run.c. message_codec.c writes and checks the fields.
 */
#include "wire/message/message_codec.h"

int message_open(const uint8_t *p, size_t n, struct message_head *head, struct reader *body)
{
	*head = (struct message_head){0};
	*body = reader_over(p, n);
	if (n > MESSAGE_BYTES_MAX)
		return -EBADMSG;
	uint16_t type = reader_u16(body);
	uint64_t id = reader_u64(body);
	if (body->failed || type == 0 || type >= MESSAGE_TYPE_COUNT)
		return -EBADMSG;
	head->type = (enum message_type)type;
	head->id = id;
	return 0;
}

size_t message_empty(uint8_t *out, size_t cap, enum message_type type, uint64_t id)
{
	struct writer w = writer_over(out, cap);
	struct codec c = codec_encode(&w, type, id);

	return codec_encoded(&c);
}

static void text_fields(struct codec *c, struct message_text *m)
{
	m->text = codec_bytes(c, m->text, 0, MESSAGE_TEXT_MAX);
}
CODEC_PAIR(text)

static void ca_fields(struct codec *c, struct message_ca *m)
{
	m->root = codec_bytes(c, m->root, 1, MESSAGE_CERTIFICATE_MAX);
	m->intermediate = codec_bytes(c, m->intermediate, 1, MESSAGE_CERTIFICATE_MAX);
	m->key = codec_bytes(c, m->key, 1, MESSAGE_KEY_MAX);
	m->above_count = codec_upto(c, m->above_count, MESSAGE_CHAIN_MAX);
	for (size_t i = 0; i < m->above_count; i++)
		m->above[i] = codec_bytes(c, m->above[i], 1, MESSAGE_CERTIFICATE_MAX);
}
CODEC_PAIR(ca)

static uint32_t credential_index(struct codec *c, uint32_t v)
{
	return codec_upto(c, v, POLICY_CREDENTIALS_MAX - 1);
}

static void credential_get_fields(struct codec *c, struct message_credential_get *m)
{
	m->credential = credential_index(c, m->credential);
	m->generation = codec_u64(c, m->generation);
	m->renew = codec_bool(c, m->renew);
}
CODEC_PAIR(credential_get)

/* Has either a value (if available) or an error, never both: an error text beside a value could
 * leak bytes of the value. The value of a sealed credential may be empty. */
static void credential_fields(struct codec *c, struct message_credential *m)
{
	m->credential = credential_index(c, m->credential);
	m->available = codec_bool(c, m->available);
	m->ttl_ms = codec_u32(c, m->ttl_ms);
	m->renew_ms = codec_u32(c, m->renew_ms);
	m->value = codec_bytes(c, m->value, 0, m->available ? MESSAGE_VALUE_MAX : 0);
	m->error =
	        codec_bytes(c, m->error, m->available ? 0 : 1, m->available ? 0 : MESSAGE_TEXT_MAX);
}
CODEC_PAIR(credential)

static void keeper_sandbox_fields(struct codec *c, struct message_keeper_sandbox *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->owner = codec_u64(c, m->owner);
	m->generation = codec_u64(c, m->generation);
	m->sandbox = codec_string(c, m->sandbox, 1, MESSAGE_NAME_MAX);
	m->names = codec_string(c, m->names, 0, MESSAGE_CA_NAMES_MAX);
	m->credential_count = codec_upto(c, m->credential_count, POLICY_CREDENTIALS_MAX);
	for (uint32_t i = 0; i < m->credential_count; i++) {
		m->credentials[i].name =
		        codec_string(c, m->credentials[i].name, 1, MESSAGE_NAME_MAX);
		m->credentials[i].ttl_s = codec_u32(c, m->credentials[i].ttl_s);
		m->credentials[i].timeout_ms = codec_u32(c, m->credentials[i].timeout_ms);
		m->credentials[i].revoked = codec_bool(c, m->credentials[i].revoked);
		m->credentials[i].sealed = codec_bool(c, m->credentials[i].sealed);
		m->credentials[i].key = codec_string(c, m->credentials[i].key, 0, PKCS11_URI_MAX);
	}
}
CODEC_PAIR(keeper_sandbox)

static struct slice fingerprint(struct codec *c, struct slice s)
{
	return codec_bytes(c, s, MESSAGE_FINGERPRINT_BYTES, MESSAGE_FINGERPRINT_BYTES);
}

static void keeper_root_fields(struct codec *c, struct message_keeper_root *m)
{
	m->root_pem = codec_string(c, m->root_pem, 1, MESSAGE_PEM_MAX);
	m->root = fingerprint(c, m->root);
	m->ca = fingerprint(c, m->ca);
}
CODEC_PAIR(keeper_root)

static void source_open_fields(struct codec *c, struct message_source_open *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->credential = credential_index(c, m->credential);
	m->generation = codec_u64(c, m->generation);
	m->renew = codec_bool(c, m->renew);
	m->discard = codec_bool(c, m->discard);
}
CODEC_PAIR(source_open)

static void source_fields(struct codec *c, struct message_source *m)
{
	m->opened = codec_bool(c, m->opened);
	m->same = codec_bool(c, m->same);
	if (m->opened && m->same)
		codec_fail(c, -EBADMSG);
	m->ttl_s = codec_u32(c, m->ttl_s);
	m->retry_s = codec_upto(c, m->retry_s, MESSAGE_RETRY_MAX_S);
	m->error = codec_bytes(c, m->error, 0, m->opened ? 0 : MESSAGE_TEXT_MAX);
}
CODEC_PAIR(source)

static void fetch_site_fields(struct codec *c, struct message_fetch_site *site)
{
	site->url = codec_string(c, site->url, 1, MESSAGE_FETCH_ARGUMENT_MAX);
	site->address_count = codec_upto(c, site->address_count, MESSAGE_FETCH_ADDRESSES_MAX);
	for (size_t i = 0; i < site->address_count; i++)
		site->addresses[i] = codec_ip(c, site->addresses[i]);
}

static void fetch_fields(struct codec *c, struct message_fetch *m)
{
	m->secret_count = codec_upto(c, m->secret_count, MESSAGE_FETCH_SECRETS_MAX);
	m->stores = codec_bool(c, m->stores);
	m->argument_count = codec_upto(c, m->argument_count, MESSAGE_FETCH_ARGUMENTS_MAX);
	if (m->argument_count == 0)
		codec_fail(c, -EBADMSG);
	for (size_t i = 0; i < m->argument_count; i++)
		m->arguments[i] = codec_string(c, m->arguments[i], 1, MESSAGE_FETCH_ARGUMENT_MAX);
	m->site_count = codec_upto(c, m->site_count, MESSAGE_FETCH_SITES_MAX);
	if (m->site_count == 0)
		codec_fail(c, -EBADMSG);
	for (size_t i = 0; i < m->site_count; i++)
		fetch_site_fields(c, &m->sites[i]);
	m->server_count = codec_upto(c, m->server_count, CONFIG_SERVERS_MAX);
	for (size_t i = 0; i < m->server_count; i++)
		m->servers[i] = codec_server(c, m->servers[i]);
}
CODEC_PAIR(fetch)

static void fetched_fields(struct codec *c, struct message_fetched *m)
{
	m->ttl_s = codec_u32(c, m->ttl_s);
	if (m->ttl_s > MESSAGE_FETCHED_TTL_MAX_S)
		codec_fail(c, -EBADMSG);
	m->same = codec_bool(c, m->same);
	m->renewable = codec_bool(c, m->renewable);
	m->stored = codec_bool(c, m->stored);
	m->lease = codec_string(c, m->lease, 0, MESSAGE_LEASE_MAX);
}
CODEC_PAIR(fetched)

static void fetch_failed_fields(struct codec *c, struct message_fetch_failed *m)
{
	m->retry_s = codec_upto(c, m->retry_s, MESSAGE_RETRY_MAX_S);
	m->stored = codec_bool(c, m->stored);
	m->text = codec_bytes(c, m->text, 1, MESSAGE_WHAT_MAX);
}
CODEC_PAIR(fetch_failed)

static void recorder_start_fields(struct codec *c, struct message_recorder_start *m)
{
	m->path = codec_string(c, m->path, 0, MESSAGE_PATH_MAX);
	m->log_level = codec_u8(c, m->log_level);
}
CODEC_PAIR(recorder_start)

static void recorder_sandbox_fields(struct codec *c, struct message_recorder_sandbox *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->sandbox = codec_string(c, m->sandbox, 1, MESSAGE_NAME_MAX);
	m->policy = codec_string(c, m->policy, 0, MESSAGE_NAME_MAX);
	m->fingerprint = codec_string(c, m->fingerprint, 0, MESSAGE_NAME_MAX);
	m->gate4 = codec_ip(c, m->gate4);
	m->gate6 = codec_ip(c, m->gate6);
	m->socket = codec_string(c, m->socket, 0, MESSAGE_SOCKET_PATH_MAX);
	m->has_packets = codec_bool(c, m->has_packets);
	m->dropped = codec_u64(c, m->dropped);
}
CODEC_PAIR(recorder_sandbox)

static void recorder_ring_fields(struct codec *c, struct message_recorder_ring *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->ring = codec_u64(c, m->ring);
}
CODEC_PAIR(recorder_ring)

/* The event has no length field: it is the rest of the message, and event_decode() checks it
 * strictly. */
static void recorder_event_fields(struct codec *c, struct message_recorder_event *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	if (c->error)
		return;
	if (c->w)
		writer_bytes(c->w, m->event.p, m->event.n);
	else
		m->event = reader_bytes(c->r, c->r->left);
	if ((c->w && c->w->failed) || m->event.n == 0 || m->event.n > EVENT_BYTES_MAX)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(recorder_event)

static void sandbox_fields(struct codec *c, struct message_sandbox *m)
{
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->dropped = codec_u64(c, m->dropped);
}
CODEC_PAIR(sandbox)

static void summary_fields(struct codec *c, struct message_summary *m)
{
	m->allowed = codec_u64(c, m->allowed);
	m->denied = codec_u64(c, m->denied);
	m->failed = codec_u64(c, m->failed);
	m->dropped = codec_u64(c, m->dropped);
	m->findings = codec_u64(c, m->findings);
	m->observed = codec_u64(c, m->observed);
	m->lines = codec_u64(c, m->lines);
	m->unusual_count = codec_upto(c, m->unusual_count, MESSAGE_UNUSUAL_MAX);
	for (size_t i = 0; i < m->unusual_count; i++) {
		m->unusual[i].what = codec_bytes(c, m->unusual[i].what, 0, MESSAGE_WHAT_MAX);
		m->unusual[i].count = codec_u64(c, m->unusual[i].count);
	}
}
CODEC_PAIR(summary)

static const char *const type_names[] = {
        [MESSAGE_STOP] = "STOP",
        [MESSAGE_STOPPED] = "STOPPED",
        [MESSAGE_FAILED] = "FAILED",
        [MESSAGE_WORKER_START] = "WORKER_START",
        [MESSAGE_WORKER_READY] = "WORKER_READY",
        [MESSAGE_WORKER_PAUSE] = "WORKER_PAUSE",
        [MESSAGE_WORKER_HOLD] = "WORKER_HOLD",
        [MESSAGE_WORKER_RESUME] = "WORKER_RESUME",
        [MESSAGE_WORKER_RETIRE] = "WORKER_RETIRE",
        [MESSAGE_WORKER_RETIRED] = "WORKER_RETIRED",
        [MESSAGE_WORKER_KEEPER] = "WORKER_KEEPER",
        [MESSAGE_WORKER_STATS_GET] = "WORKER_STATS_GET",
        [MESSAGE_WORKER_STATS] = "WORKER_STATS",
        [MESSAGE_CA_GET] = "CA_GET",
        [MESSAGE_CA] = "CA",
        [MESSAGE_CREDENTIAL_GET] = "CREDENTIAL_GET",
        [MESSAGE_CREDENTIAL] = "CREDENTIAL",
        [MESSAGE_KEEPER_START] = "KEEPER_START",
        [MESSAGE_KEEPER_READY] = "KEEPER_READY",
        [MESSAGE_KEEPER_SANDBOX] = "KEEPER_SANDBOX",
        [MESSAGE_KEEPER_ROOT] = "KEEPER_ROOT",
        [MESSAGE_SOURCE_OPEN] = "SOURCE_OPEN",
        [MESSAGE_SOURCE] = "SOURCE",
        [MESSAGE_RECORDER_START] = "RECORDER_START",
        [MESSAGE_RECORDER_READY] = "RECORDER_READY",
        [MESSAGE_RECORDER_SANDBOX] = "RECORDER_SANDBOX",
        [MESSAGE_RECORDER_RING] = "RECORDER_RING",
        [MESSAGE_RECORDER_RING_END] = "RECORDER_RING_END",
        [MESSAGE_RECORDER_RING_DRAINED] = "RECORDER_RING_DRAINED",
        [MESSAGE_RECORDER_REOPEN] = "RECORDER_REOPEN",
        [MESSAGE_RECORDER_REOPENED] = "RECORDER_REOPENED",
        [MESSAGE_RECORDER_EVENT] = "RECORDER_EVENT",
        [MESSAGE_RECORDER_TAKEN] = "RECORDER_TAKEN",
        [MESSAGE_RECORDER_STALLED] = "RECORDER_STALLED",
        [MESSAGE_RECORDER_FLOWING] = "RECORDER_FLOWING",
        [MESSAGE_RECORDER_END] = "RECORDER_END",
        [MESSAGE_RECORDER_SUMMARY] = "RECORDER_SUMMARY",
        [MESSAGE_RUN_START] = "RUN_START",
        [MESSAGE_RUN_ENV_GET] = "RUN_ENV_GET",
        [MESSAGE_RUN_ENV] = "RUN_ENV",
        [MESSAGE_RUN_READY] = "RUN_READY",
        [MESSAGE_RUN_END] = "RUN_END",
        [MESSAGE_RUN_SUMMARY] = "RUN_SUMMARY",
        [MESSAGE_DESCRIBE] = "DESCRIBE",
        [MESSAGE_DESCRIPTION] = "DESCRIPTION",
        [MESSAGE_RUN_ROLES] = "RUN_ROLES",
        [MESSAGE_RUN_ROLE] = "RUN_ROLE",
        [MESSAGE_UPGRADE] = "UPGRADE",
        [MESSAGE_RECORDER_COUNT_GET] = "RECORDER_COUNT_GET",
        [MESSAGE_RECORDER_COUNT] = "RECORDER_COUNT",
        [MESSAGE_RECORDER_ENDED] = "RECORDER_ENDED",
        [MESSAGE_RECORDER_REFUSED] = "RECORDER_REFUSED",
        [MESSAGE_KEEPER_WORKER] = "KEEPER_WORKER",
        [MESSAGE_KEEPER_CHECK] = "KEEPER_CHECK",
        [MESSAGE_KEEPER_HERE] = "KEEPER_HERE",
        [MESSAGE_RECORDER_HEAD_GET] = "RECORDER_HEAD_GET",
        [MESSAGE_RECORDER_HEAD] = "RECORDER_HEAD",
        [MESSAGE_KEEPER_CA_ASK] = "KEEPER_CA_ASK",
        [MESSAGE_KEEPER_CA] = "KEEPER_CA",
        [MESSAGE_KEEPER_CA_KEPT] = "KEEPER_CA_KEPT",
        [MESSAGE_FETCH] = "FETCH",
        [MESSAGE_FETCHED] = "FETCHED",
        [MESSAGE_WORKER_LISTEN] = "WORKER_LISTEN",
        [MESSAGE_WORKER_REACH] = "WORKER_REACH",
        [MESSAGE_WORKER_REACHED] = "WORKER_REACHED",
        [MESSAGE_WORKER_CALL] = "WORKER_CALL",
        [MESSAGE_WORKER_CALLED] = "WORKER_CALLED",
        [MESSAGE_WORKER_VISIT] = "WORKER_VISIT",
        [MESSAGE_WORKER_CREDENTIAL] = "WORKER_CREDENTIAL",
        [MESSAGE_WORKER_CREDENTIALS] = "WORKER_CREDENTIALS",
        [MESSAGE_KEEPER_CREDENTIAL] = "KEEPER_CREDENTIAL",
        [MESSAGE_KEEPER_CREDENTIALS] = "KEEPER_CREDENTIALS",
        [MESSAGE_FETCH_FAILED] = "FETCH_FAILED",
        [MESSAGE_TOKEN_START] = "TOKEN_START",
        [MESSAGE_TOKEN_LOGIN] = "TOKEN_LOGIN",
        [MESSAGE_TOKEN_READY] = "TOKEN_READY",
        [MESSAGE_TOKEN_KEEPER] = "TOKEN_KEEPER",
        [MESSAGE_TOKEN_SIGN] = "TOKEN_SIGN",
        [MESSAGE_TOKEN_SIGNATURE] = "TOKEN_SIGNATURE",
        [MESSAGE_KEEPER_TOKEN] = "KEEPER_TOKEN",
        [MESSAGE_KEEPER_TOKEN_SAYS] = "KEEPER_TOKEN_SAYS",
        [MESSAGE_GATEWAY_START] = "GATEWAY_START",
        [MESSAGE_GATEWAY_READY] = "GATEWAY_READY",
        [MESSAGE_GATEWAY_CERTIFICATE] = "GATEWAY_CERTIFICATE",
        [MESSAGE_GATEWAY_SESSION] = "GATEWAY_SESSION",
        [MESSAGE_GATEWAY_SESSION_END] = "GATEWAY_SESSION_END",
        [MESSAGE_GATEWAY_ENTER] = "GATEWAY_ENTER",
        [MESSAGE_GATEWAY_ENTERED] = "GATEWAY_ENTERED",
        [MESSAGE_GATEWAY_GUESSES] = "GATEWAY_GUESSES",
        [MESSAGE_GATEWAY_HOLD] = "GATEWAY_HOLD",
        [MESSAGE_GATEWAY_RESUME] = "GATEWAY_RESUME",
        [MESSAGE_WORKER_ENTER] = "WORKER_ENTER",
        [MESSAGE_CREDENTIAL_SEAL] = "CREDENTIAL_SEAL",
        [MESSAGE_RUN_RELOAD] = "RUN_RELOAD",
        [MESSAGE_RUN_KEPT] = "RUN_KEPT",
        [MESSAGE_GATEWAY_SIGNER] = "GATEWAY_SIGNER",
        [MESSAGE_GATEWAY_TOKEN] = "GATEWAY_TOKEN",
        [MESSAGE_GATEWAY_VERDICT] = "GATEWAY_VERDICT",
        [MESSAGE_WORKER_LIMITS] = "WORKER_LIMITS",
        [MESSAGE_WORKER_ASK] = "WORKER_ASK",
        [MESSAGE_WORKER_ASK_END] = "WORKER_ASK_END",
        [MESSAGE_WORKER_ANSWER] = "WORKER_ANSWER",
        [MESSAGE_WORKER_GRANT] = "WORKER_GRANT",
        [MESSAGE_WORKER_ASSOCIATE] = "WORKER_ASSOCIATE",
        [MESSAGE_WORKER_ASSOCIATED] = "WORKER_ASSOCIATED",
        [MESSAGE_WORKER_ASSOCIATE_END] = "WORKER_ASSOCIATE_END",
        [MESSAGE_WORKER_PROPOSAL] = "WORKER_PROPOSAL",
        [MESSAGE_WORKER_PROPOSED] = "WORKER_PROPOSED",
        [MESSAGE_CREDENTIAL_SIGN] = "CREDENTIAL_SIGN",
        [MESSAGE_CREDENTIAL_SIGNED] = "CREDENTIAL_SIGNED",
        [MESSAGE_TOKEN_KEY_SIGN] = "TOKEN_KEY_SIGN",
        [MESSAGE_KEEPER_KEY_TOKEN] = "KEEPER_KEY_TOKEN",
        [MESSAGE_KEEPER_KEY_TOKEN_LATE] = "KEEPER_KEY_TOKEN_LATE",
        [MESSAGE_GATEWAY_HELD] = "GATEWAY_HELD",
        [MESSAGE_WORKER_CUT] = "WORKER_CUT",
        [MESSAGE_WORKER_TEAM] = "WORKER_TEAM",
        [MESSAGE_WORKER_TOOLS] = "WORKER_TOOLS",
        [MESSAGE_QUOTA_START] = "QUOTA_START",
        [MESSAGE_QUOTA_BUDGETS] = "QUOTA_BUDGETS",
        [MESSAGE_QUOTA_END] = "QUOTA_END",
        [MESSAGE_QUOTA_SAYS] = "QUOTA_SAYS",
};
_Static_assert(
        sizeof(type_names) / sizeof(type_names[0]) == MESSAGE_TYPE_COUNT, "a name per message");

const char *message_type_name(enum message_type type)
{
	return type > 0 && type < MESSAGE_TYPE_COUNT ? type_names[type] : "?";
}
