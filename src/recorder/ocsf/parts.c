/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that lines of several classes share.
 *
 * Endpoints: src_endpoint is the sandbox's socket: address and port, or the path of the Unix socket
 * that its connections come over. dst_endpoint is the real destination: its name, the address that
 * vethguard dialed, the port. proxy_endpoint is what the sandbox's packets went to and vethguard
 * answered: the synthetic address of the name (or the gate's own, for an explicit proxy). If a
 * destination has no name, the address that the sandbox dialed is the destination itself.
 *
 * For a connection to an exposed port (EVENT_INBOUND), src_endpoint is the visitor, dst_endpoint
 * the sandbox and its port, and proxy_endpoint the address where the host listened.
 */
#include <stdio.h>

#include "vethguard/wire/packet.h"

#include "recorder/ocsf/parts.h"

#define DIRECTION_INBOUND 1
#define DIRECTION_OUTBOUND 2

uint64_t ocsf_long(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : v;
}

const char *ocsf_ip_text(const struct ip *ip, char out[IP_TEXT_MAX])
{
	char *p = out + IP_TEXT_MAX - 1;

	if (ip->family != 4)
		return ip_format(ip, out);
	*p = '\0';
	for (int i = 3; i >= 0; i--) {
		p = line_digits(ip->bytes[i], p);
		if (i > 0)
			*--p = '.';
	}
	return p;
}

static bool has_ports(const struct event *e)
{
	/* An ICMP record has type and code in place of the port. */
	return e->kind != EVENT_PACKET ||
	       (e->protocol != IPPROTO_ICMP && e->protocol != IPPROTO_ICMPV6);
}

static void write_port(struct json *j, const struct event *e, uint16_t port)
{
	if (port && has_ports(e))
		line_uint(j, "port", port);
}

void ocsf_src_endpoint(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	line_object(j, "src_endpoint");
	if (e->src.family)
		ocsf_ip(j, "ip", &e->src);
	else if (e->kind == EVENT_INBOUND)
		line_text(j, "name", e->user, OCSF_NAME_MAX);
	else if (line->sandbox->socket[0])
		line_text(j, "name", slice_from_string(line->sandbox->socket), OCSF_NAME_MAX);
	else
		line_text(j, "name", slice_from_string(line->sandbox->name), OCSF_NAME_MAX);
	write_port(j, e, e->src_port);
	line_end_object(j);
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
	/* The gate's own address: that port is the explicit proxy's, not the destination's. */
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
	bool inbound = e->kind == EVENT_INBOUND;

	if (!named && !ip->family && !inbound)
		return;
	line_object(j, "dst_endpoint");
	if (inbound) { /* the sandbox; dst is where the host listens */
		line_text(j, "name", slice_from_string(line->sandbox->name), OCSF_NAME_MAX);
		ip = &e->upstream;
	}
	if (named)
		line_text(j, "hostname", e->host, OCSF_HOST_MAX);
	if (!named || e->upstream.family)
		ocsf_ip(j, "ip", ip);
	write_port(j, e, port);
	line_end_object(j);
}

void ocsf_proxy_endpoint(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	line_object(j, "proxy_endpoint");
	line_plain(j, "name", "vethguard");
	ocsf_ip(j, "ip", &e->dst);
	write_port(j, e, e->dst_port);
	line_end_object(j);
}

void ocsf_connection_info(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	char text[16];

	line_object(j, "connection_info");
	line_uint(j, "direction_id",
	        e->kind == EVENT_INBOUND ? DIRECTION_INBOUND : DIRECTION_OUTBOUND);
	if (e->protocol) {
		line_uint(j, "protocol_num", e->protocol);
		line_plain(j, "protocol_name", packet_protocol_name(e->protocol, text));
	}
	if (e->src.family)
		line_uint(j, "protocol_ver_id", e->src.family);
	line_end_object(j);
}

void ocsf_traffic(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	uint64_t sum = e->bytes_in + e->bytes_out;

	line_object(j, "traffic");
	line_uint(j, "bytes", ocsf_long(sum < e->bytes_in ? UINT64_MAX : sum));
	line_uint(j, "bytes_in", ocsf_long(e->bytes_in));
	line_uint(j, "bytes_out", ocsf_long(e->bytes_out));
	if (e->kind == EVENT_PACKET)
		line_uint(j, "packets", ocsf_long(e->count));
	if (e->kind == EVENT_CONNECTION || e->kind == EVENT_FLOW || e->kind == EVENT_INBOUND) {
		line_uint(j, "start_time", e->time_ms);
		line_uint(j, "end_time", e->time_ms + e->duration_us / 1000);
	}
	line_end_object(j);
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
	line_object(j, "tls");
	line_plain(j, "version", tls_version_text(e->tls_version, text));
	line_some_text(j, "sni", e->sni, OCSF_HOST_MAX);
	line_end_object(j);
}
