/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that lines of several classes share.
 *
 * Endpoints: src_endpoint is the sandbox's socket. dst_endpoint is the real destination: its name,
 * the address that vethguard dialled, the port. proxy_endpoint is what the sandbox's packets went
 * to: the synthetic address of the name (or the gate's own, for an explicit proxy), where vethguard
 * answered. Where a destination has no name, the address that the sandbox dialled is the
 * destination itself.
 */
#include <stdio.h>

#include "vethguard/wire/packet.h"

#include "recorder/ocsf_parts.h"

#define DIRECTION_OUTBOUND 2

void ocsf_raw(struct json *j, struct slice members)
{
	if (j->comma && buf_append(j->out, ",", 1) != 0)
		j->failed = true;
	if (buf_append_slice(j->out, members) != 0)
		j->failed = true;
	j->comma = true;
}

void ocsf_ip(struct json *j, const char *key, const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	if (ip->family)
		json_literal(j, key, ip_format(ip, text));
}

void ocsf_count(struct json *j, const char *key, uint64_t v)
{
	json_int(j, key, v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

void ocsf_text(struct json *j, const char *key, struct slice text, size_t max)
{
	if (text.n)
		json_string(j, key, text, max);
}

static bool has_ports(const struct event *e)
{
	/* An ICMP record carries type and code where others carry the port. */
	return e->kind != EVENT_PACKET ||
	       (e->protocol != IPPROTO_ICMP && e->protocol != IPPROTO_ICMPV6);
}

static void write_port(struct json *j, const struct event *e, uint16_t port)
{
	if (port && has_ports(e))
		json_uint(j, "port", port);
}

void ocsf_src_endpoint(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	json_object(j, "src_endpoint");
	if (e->src.family)
		ocsf_ip(j, "ip", &e->src);
	else
		json_string(j, "name", slice_from_string(line->sandbox->name), OCSF_NAME_MAX);
	write_port(j, e, e->src_port);
	json_end_object(j);
}

static bool is_gate(const struct ocsf_sandbox *sandbox, const struct ip *ip)
{
	return ip->family && (ip_equals(ip, &sandbox->gate4) || ip_equals(ip, &sandbox->gate6));
}

uint16_t ocsf_destination_port(const struct ocsf_line *line)
{
	const struct event *e = line->event;

	if (e->upstream_port)
		return e->upstream_port;
	/* To the gate's own address: that is the explicit proxy's port, not the destination's. */
	if (e->kind != EVENT_DNS && e->kind != EVENT_PACKET && is_gate(line->sandbox, &e->dst))
		return 0;
	return e->dst_port;
}

void ocsf_dst_endpoint(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	bool named = e->host.n != 0 && e->kind != EVENT_DNS;
	const struct ip *ip = e->upstream.family ? &e->upstream : &e->dst;
	uint16_t port = ocsf_destination_port(line);

	if (!named && !ip->family)
		return;
	json_object(j, "dst_endpoint");
	if (named)
		json_string(j, "hostname", e->host, OCSF_HOST_MAX);
	if (!named || e->upstream.family)
		ocsf_ip(j, "ip", ip);
	write_port(j, e, port);
	json_end_object(j);
}

void ocsf_proxy_endpoint(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	json_object(j, "proxy_endpoint");
	json_literal(j, "name", "vethguard");
	ocsf_ip(j, "ip", &e->dst);
	write_port(j, e, e->dst_port);
	json_end_object(j);
}

void ocsf_connection_info(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	char text[16];

	json_object(j, "connection_info");
	json_int(j, "direction_id", DIRECTION_OUTBOUND);
	if (e->protocol) {
		json_uint(j, "protocol_num", e->protocol);
		json_literal(j, "protocol_name", packet_protocol_name(e->protocol, text));
	}
	if (e->src.family)
		json_uint(j, "protocol_ver_id", e->src.family);
	json_end_object(j);
}

void ocsf_traffic(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	uint64_t sum = e->bytes_in + e->bytes_out;

	json_object(j, "traffic");
	ocsf_count(j, "bytes", sum < e->bytes_in ? UINT64_MAX : sum);
	ocsf_count(j, "bytes_in", e->bytes_in);
	ocsf_count(j, "bytes_out", e->bytes_out);
	if (e->kind == EVENT_PACKET)
		ocsf_count(j, "packets", e->count);
	if (e->kind == EVENT_CONNECTION || e->kind == EVENT_FLOW) {
		json_int(j, "start_time", e->time_ms);
		json_int(j, "end_time", e->time_ms + e->duration_us / 1000);
	}
	json_end_object(j);
}

static const char *tls_version_text(uint16_t version, char out[8])
{
	switch (version) {
	case 0:
		return "unknown";
	case 0x0301:
		return "1.0";
	case 0x0302:
		return "1.1";
	case 0x0303:
		return "1.2";
	case 0x0304:
		return "1.3";
	default:
		snprintf(out, 8, "0x%04x", version);
		return out;
	}
}

void ocsf_tls(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	char text[8];

	if (!e->tls_version && !e->sni.n)
		return;
	json_object(j, "tls");
	json_literal(j, "version", tls_version_text(e->tls_version, text));
	ocsf_text(j, "sni", e->sni, OCSF_HOST_MAX);
	json_end_object(j);
}
