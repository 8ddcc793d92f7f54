/* SPDX-License-Identifier: Apache-2.0 */
/* WORKER_START: everything a worker is told before it serves. It is the only message with memory of
 * its own (static hosts). Also the other messages between supervisor and worker. */
#include "wire/message/message_codec.h"

#define HOST_BYTES_MIN 6 /* of one encoded static host: a name of one byte, no address */

struct config_server codec_server(struct codec *c, struct config_server v)
{
	v.address = codec_ip(c, v.address);
	v.port = codec_u16(c, v.port);
	return v;
}

static void host_field(struct codec *c, struct config_host *host)
{
	struct slice name =
	        slice_of(host->name, c->w ? strnlen(host->name, sizeof(host->name)) : 0);

	name = codec_string(c, name, 1, POLICY_HOST_MAX);
	if (!c->w && name.n)
		memcpy(host->name, name.p, name.n);
	host->address = codec_ip(c, host->address);
}

static void hosts_fields(struct codec *c, struct message_worker_start *m)
{
	m->host_count = codec_upto(c, m->host_count, CONFIG_HOSTS_MAX);
	if (!c->w) {
		if (m->host_count == 0 || !codec_plausible(c, m->host_count, HOST_BYTES_MIN))
			return;
		m->hosts = calloc(m->host_count, sizeof(*m->hosts));
		if (!m->hosts) {
			codec_fail(c, -ENOMEM);
			return;
		}
	}
	for (size_t i = 0; i < m->host_count; i++)
		host_field(c, &m->hosts[i]);
}

static void text_field(struct codec *c, char *text, size_t max)
{
	struct slice s = slice_of(text, c->w ? strnlen(text, max) : 0);

	s = codec_string(c, s, 0, max);
	if (!c->w && s.n)
		memcpy(text, s.p, s.n); /* text is zeroed before */
}

/* An address of that family, or none. */
static struct ip source_field(struct codec *c, struct ip v, uint8_t family)
{
	v = codec_ip(c, v);
	if (v.family != 0 && v.family != family)
		codec_fail(c, -EBADMSG);
	return v;
}

static void egress_fields(struct codec *c, struct message_worker_start *m)
{
	m->egress.proxy_port = codec_u16(c, m->egress.proxy_port);
	text_field(c, m->egress.proxy_host, POLICY_HOST_MAX);
	m->egress.proxy_address = codec_ip(c, m->egress.proxy_address);
	m->egress.resolve_local = codec_upto(c, m->egress.resolve_local, 1);
	text_field(c, m->egress.interface, CONFIG_INTERFACE_MAX);
	m->egress.address4 = source_field(c, m->egress.address4, 4);
	m->egress.address6 = source_field(c, m->egress.address6, 6);
	m->egress_pair = codec_string(c, m->egress_pair, 0, CONFIG_EGRESS_PAIR_MAX);
}

static void limits_fields(struct codec *c, struct config_limits *l)
{
	l->connections = codec_u32(c, l->connections);
	l->upstream_connections = codec_u32(c, l->upstream_connections);
	l->upstream_idle = codec_u32(c, l->upstream_idle);
	l->streams = codec_u32(c, l->streams);
	l->udp_flows = codec_u32(c, l->udp_flows);
	l->dns_names = codec_u32(c, l->dns_names);
	l->leaf_certificates = codec_u32(c, l->leaf_certificates);
	l->header_bytes = codec_u32(c, l->header_bytes);
	l->dns_queries_per_s = codec_u32(c, l->dns_queries_per_s);
	l->blocked_mints_per_min = codec_u32(c, l->blocked_mints_per_min);
	l->connections_per_s = codec_u32(c, l->connections_per_s);
	l->packet_copies_per_s = codec_u32(c, l->packet_copies_per_s);
	l->udp_datagrams_per_s = codec_u32(c, l->udp_datagrams_per_s);
	l->refusals_per_s = codec_u32(c, l->refusals_per_s);
}
_Static_assert(sizeof(struct config_limits) == 14 * 4, "a limit was added: encode it too");

static void timeouts_fields(struct codec *c, struct config_timeouts *t)
{
	t->hello_ms = codec_u32(c, t->hello_ms);
	t->header_ms = codec_u32(c, t->header_ms);
	t->idle_ms = codec_u32(c, t->idle_ms);
	t->connect_ms = codec_u32(c, t->connect_ms);
	t->response_ms = codec_u32(c, t->response_ms);
	t->request_ms = codec_u32(c, t->request_ms);
	t->resolve_ms = codec_u32(c, t->resolve_ms);
	t->udp_idle_ms = codec_u32(c, t->udp_idle_ms);
}
_Static_assert(sizeof(struct config_timeouts) == 8 * 4, "a timeout was added: encode it too");

static void placeholders_fields(struct codec *c, struct message_worker_start *m)
{
	m->placeholder_count = codec_upto(c, m->placeholder_count, MESSAGE_ENV_MAX);
	for (size_t i = 0; i < m->placeholder_count; i++) {
		m->placeholders[i].credential =
		        codec_upto(c, m->placeholders[i].credential, POLICY_CREDENTIALS_MAX - 1);
		m->placeholders[i].text =
		        codec_string(c, m->placeholders[i].text, 1, MESSAGE_VARIABLE_MAX);
	}
}

static void listeners_fields(struct codec *c, struct message_worker_start *m)
{
	m->listener_count = codec_upto(c, m->listener_count, MESSAGE_LISTENERS_MAX);
	for (size_t i = 0; i < m->listener_count; i++) {
		m->listeners[i].kind = (enum message_listener)codec_upto(
		        c, m->listeners[i].kind, MESSAGE_LISTENER_KINDS - 1);
		m->listeners[i].port = codec_u16(c, m->listeners[i].port);
		m->listeners[i].cid = codec_u32(c, m->listeners[i].cid);
	}
}

static void worker_start_fields(struct codec *c, struct message_worker_start *m)
{
	m->sandbox = codec_string(c, m->sandbox, 1, MESSAGE_NAME_MAX);
	m->sandbox_id = codec_u64(c, m->sandbox_id);
	m->generation = codec_u64(c, m->generation);
	m->gate4 = codec_ip(c, m->gate4);
	m->gate6 = codec_ip(c, m->gate6);
	m->pool4 = codec_prefix(c, m->pool4);
	m->pool6 = codec_prefix(c, m->pool6);
	m->proxy_port = codec_u16(c, m->proxy_port);
	m->server_count = codec_upto(c, m->server_count, CONFIG_SERVERS_MAX);
	for (size_t i = 0; i < m->server_count; i++)
		m->servers[i] = codec_server(c, m->servers[i]);
	hosts_fields(c, m);
	m->permit_count = codec_upto(c, m->permit_count, CONFIG_PREFIXES_MAX);
	for (size_t i = 0; i < m->permit_count; i++)
		m->permit[i] = codec_prefix(c, m->permit[i]);
	egress_fields(c, m);
	limits_fields(c, &m->limits);
	timeouts_fields(c, &m->timeouts);
	m->log_level = codec_u8(c, m->log_level);
	placeholders_fields(c, m);
	listeners_fields(c, m);
}

size_t message_worker_start_encode(uint8_t *out, size_t cap, enum message_type type, uint64_t id,
        const struct message_worker_start *m)
{
	struct message_worker_start copy = *m;
	struct writer w = writer_over(out, cap);
	struct codec c = codec_encode(&w, type, id);

	worker_start_fields(&c, &copy);
	return codec_encoded(&c);
}

int message_worker_start_decode(struct reader *body, struct message_worker_start *m)
{
	struct codec c = codec_decode(body);

	memset(m, 0, sizeof(*m));
	worker_start_fields(&c, m);
	int rc = codec_decoded(&c);
	if (rc)
		message_worker_start_fini(m);
	return rc;
}

static enum message_pause pause_field(struct codec *c, enum message_pause why)
{
	return (enum message_pause)codec_upto(c, why, MESSAGE_PAUSE_OPERATOR);
}

static void worker_pause_fields(struct codec *c, struct message_worker_pause *m)
{
	m->why = pause_field(c, m->why);
	m->text = codec_bytes(c, m->text, 0, MESSAGE_TEXT_MAX);
}
CODEC_PAIR(worker_pause)

static void worker_resume_fields(struct codec *c, struct message_worker_resume *m)
{
	m->why = pause_field(c, m->why);
}
CODEC_PAIR(worker_resume)

static void worker_retire_fields(struct codec *c, struct message_worker_retire *m)
{
	m->generation = codec_u64(c, m->generation);
}
CODEC_PAIR(worker_retire)

static void worker_retired_fields(struct codec *c, struct message_worker_retired *m)
{
	m->generation = codec_u64(c, m->generation);
	m->closed = codec_u64(c, m->closed);
	m->left = codec_u64(c, m->left);
}
CODEC_PAIR(worker_retired)

static void worker_limits_fields(struct codec *c, struct message_worker_limits *m)
{
	m->count = codec_upto(c, m->count, MESSAGE_LIMITS_MAX);
	for (size_t i = 0; i < m->count; i++) {
		m->shared[i] = codec_string(c, m->shared[i], 0, POLICY_NAME_MAX);
		m->has_quotas[i] = codec_bool(c, m->has_quotas[i]);
	}
	if (m->count == 0)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(worker_limits)

static void worker_team_fields(struct codec *c, struct message_worker_team *m)
{
	m->seat = codec_upto(c, m->seat, MESSAGE_SEATS_MAX - 1);
	m->further = (uint8_t)codec_upto(c, m->further, 1);
}
CODEC_PAIR(worker_team)

static void worker_ask_fields(struct codec *c, struct message_worker_ask *m)
{
	m->rule = codec_bytes(c, m->rule, 1, POLICY_NAME_MAX + 256);
	m->method = codec_bytes(c, m->method, 1, POLICY_METHOD_MAX);
	m->host = codec_string(c, m->host, 1, POLICY_HOST_MAX);
	m->path = codec_bytes(c, m->path, 0, POLICY_PATH_MAX);
	m->query = codec_bytes(c, m->query, 0, MESSAGE_ASK_QUERY_MAX);
	m->scheme = (uint8_t)codec_upto(c, m->scheme, POLICY_HTTP);
	m->port = codec_u16(c, m->port);
	m->bytes = codec_u64(c, m->bytes);
	m->wait_s = codec_upto(c, m->wait_s, POLICY_ASK_WAIT_MAX_S);
}
CODEC_PAIR(worker_ask)

static void worker_answer_fields(struct codec *c, struct message_worker_answer *m)
{
	m->approved = (uint8_t)codec_upto(c, m->approved, 1);
	m->text = codec_bytes(c, m->text, 0, MESSAGE_ASK_TEXT_MAX);
}
CODEC_PAIR(worker_answer)

static void worker_grant_fields(struct codec *c, struct message_worker_grant *m)
{
	m->ends = (uint8_t)codec_upto(c, m->ends, 1);
	m->whole = (uint8_t)codec_upto(c, m->whole, 1);
	m->until_ms = codec_u64(c, m->until_ms);
	if (m->until_ms > INT64_MAX)
		codec_fail(c, -EBADMSG);
	if (!m->ends)
		worker_ask_fields(c, &m->ask);
	m->text = codec_bytes(c, m->text, 0, MESSAGE_ASK_TEXT_MAX);
}
CODEC_PAIR(worker_grant)

static void worker_proposal_fields(struct codec *c, struct message_worker_proposal *m)
{
	m->to = codec_string(c, m->to, 1, PROPOSAL_TO_MAX);
	m->methods = codec_string(c, m->methods, 1, PROPOSAL_METHODS_TEXT_MAX - 1);
	m->paths = codec_string(c, m->paths, 1, PROPOSAL_PATHS_TEXT_MAX - 1);
	m->reason = codec_string(c, m->reason, 1, PROPOSAL_REASON_MAX);
}
CODEC_PAIR(worker_proposal)

static void worker_proposed_fields(struct codec *c, struct message_worker_proposed *m)
{
	m->outcome = (uint8_t)codec_upto(c, m->outcome, MESSAGE_PROPOSAL_KINDS - 1);
	m->to = codec_string(c, m->to, 1, PROPOSAL_TO_MAX);
	m->text = codec_bytes(c, m->text, 0, MESSAGE_ASK_TEXT_MAX);
}
CODEC_PAIR(worker_proposed)

static void listen_fields(struct codec *c, struct message_listen *m)
{
	m->port = codec_u16(c, m->port);
	if (m->port == 0)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(listen)

static void reach_fields(struct codec *c, struct message_reach *m)
{
	m->port = codec_u16(c, m->port);
	m->count = codec_upto(c, m->count, MESSAGE_REACH_MAX);
	if (m->port == 0 || m->count == 0)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(reach)

static void reached_fields(struct codec *c, struct message_reached *m)
{
	m->port = codec_u16(c, m->port);
	m->address = codec_ip(c, m->address);
	m->error = codec_bytes(c, m->error, 0, MESSAGE_TEXT_MAX);
	if (m->port == 0)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(reached)

static void call_fields(struct codec *c, struct message_call *m)
{
	m->sandbox = codec_string(c, m->sandbox, 1, POLICY_HOST_MAX);
	m->port = codec_u16(c, m->port);
	if (m->port == 0)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(call)

static void visit_fields(struct codec *c, struct message_visit *m)
{
	m->port = codec_u16(c, m->port);
	m->sandbox = codec_string(c, m->sandbox, 1, MESSAGE_NAME_MAX);
	m->labels = codec_string(c, m->labels, 0, MESSAGE_LABELS_MAX);
	if (m->port == 0)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(visit)

static void worker_stats_fields(struct codec *c, struct message_worker_stats *m)
{
	m->generation = codec_u64(c, m->generation);
	for (size_t i = 0; i < MESSAGE_STATS_KINDS; i++) {
		m->kinds[i].allowed = codec_u64(c, m->kinds[i].allowed);
		m->kinds[i].denied = codec_u64(c, m->kinds[i].denied);
		m->kinds[i].failed = codec_u64(c, m->kinds[i].failed);
	}
	m->findings = codec_u64(c, m->findings);
	m->bytes_out = codec_u64(c, m->bytes_out);
	m->bytes_in = codec_u64(c, m->bytes_in);
	m->connections = codec_u64(c, m->connections);
	m->connections_open = codec_u64(c, m->connections_open);
	m->streams_open = codec_u64(c, m->streams_open);
	m->exchanges_open = codec_u64(c, m->exchanges_open);
	m->flows_open = codec_u64(c, m->flows_open);
	m->visits_open = codec_u64(c, m->visits_open);
	m->upstreams_open = codec_u64(c, m->upstreams_open);
	m->upstreams_idle = codec_u64(c, m->upstreams_idle);
	m->names_kept = codec_u64(c, m->names_kept);
	m->backlog_bytes = codec_u64(c, m->backlog_bytes);
	m->heap_bytes = codec_u64(c, m->heap_bytes);
	m->queries_refused = codec_u64(c, m->queries_refused);
	m->refusals_delayed = codec_u64(c, m->refusals_delayed);
	m->limits_met = codec_u64(c, m->limits_met);
}
CODEC_PAIR(worker_stats)
_Static_assert(sizeof(struct message_worker_stats) == 30 * 8, "a figure was added: encode it too");

void message_worker_start_fini(struct message_worker_start *m)
{
	free(m->hosts);
	memset(m, 0, sizeof(*m));
}
