/* SPDX-License-Identifier: Apache-2.0 */
/* Network Activity (4001): connections that are not HTTP, relayed datagram flows, packets the fence
 * dropped. */
#include <netinet/in.h>
#include <stdio.h>

#include "recorder/ocsf/parts.h"

enum {
	ACTIVITY_CLOSE = 2,
	ACTIVITY_RESET = 3,
	ACTIVITY_FAIL = 4,
	ACTIVITY_REFUSE = 5,
	ACTIVITY_TRAFFIC = 6
};

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd

static uint32_t connection_activity(const struct event *e)
{
	switch (e->cause) {
	case EVENT_CAUSE_RESOLVE:
	case EVENT_CAUSE_CONNECT:
	case EVENT_CAUSE_UPSTREAM_TLS:
		return ACTIVITY_FAIL;
	case EVENT_CAUSE_UPSTREAM:
	case EVENT_CAUSE_CLIENT:
	case EVENT_CAUSE_TIMEOUT:
	case EVENT_CAUSE_CLOSING:
	case EVENT_CAUSE_PAUSED:
	case EVENT_CAUSE_POLICY_CHANGED:
		return ACTIVITY_RESET;
	default:
		return e->decision == EVENT_DENIED || e->decision == EVENT_DROPPED ? ACTIVITY_REFUSE
		                                                                   : ACTIVITY_CLOSE;
	}
}

static uint32_t flow_activity(const struct event *e)
{
	uint32_t activity = connection_activity(e);

	return activity == ACTIVITY_CLOSE ? ACTIVITY_TRAFFIC : activity;
}

static uint32_t packet_activity(const struct event *e)
{
	(void)e;
	return ACTIVITY_REFUSE;
}

static void connection_body(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	ocsf_connection_info(line);
	ocsf_src_endpoint(line);
	ocsf_dst_endpoint(line);
	ocsf_proxy_endpoint(line);
	ocsf_traffic(line);
	ocsf_tls(line);
	if (e->passthrough || ocsf_failure_code(e).n) {
		line_object(j, "unmapped");
		if (e->passthrough)
			line_bool(j, "passthrough", true);
		line_some_text(j, "failure", ocsf_failure_code(e), OCSF_NAME_MAX);
		line_end_object(j);
	}
}

static void write_aggregate(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	int64_t last_ms = e->last_ms > e->time_ms ? e->last_ms : e->time_ms;

	if (e->count <= 1)
		return;
	line_uint(j, "count", ocsf_long(e->count));
	line_uint(j, "start_time", e->time_ms);
	line_uint(j, "end_time", last_ms);
	line_uint(j, "duration", last_ms - e->time_ms);
}

/* Writes the values of a packet for which OCSF has no attribute. */
static void write_packet_rest(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	bool icmp = e->protocol == IPPROTO_ICMP || e->protocol == IPPROTO_ICMPV6;
	bool frame =
	        e->ethertype && e->ethertype != ETHERTYPE_IPV4 && e->ethertype != ETHERTYPE_IPV6;
	char text[8];

	if (!icmp && !frame)
		return;
	line_object(j, "unmapped");
	if (frame) {
		snprintf(text, sizeof(text), "0x%04x", e->ethertype);
		line_plain(j, "ethertype", text);
	}
	if (icmp) {
		line_uint(j, "icmp_type", e->dst_port >> 8);
		line_uint(j, "icmp_code", e->dst_port & 255);
	}
	line_end_object(j);
}

static void packet_body(struct ocsf_line *line)
{
	write_aggregate(line);
	ocsf_connection_info(line);
	ocsf_src_endpoint(line);
	ocsf_dst_endpoint(line);
	ocsf_traffic(line);
	write_packet_rest(line);
}

#define HEAD OCSF_CONSTANT("\"class_uid\":4001,\"category_uid\":4")
#define PROXIED                                                                                   \
	OCSF_CONSTANT("\"profiles\":[\"host\",\"network_proxy\",\"record_integrity\",\"security_" \
	              "control\"]")
#define DROPPED OCSF_CONSTANT("\"profiles\":[\"host\",\"record_integrity\",\"security_control\"]")

const struct ocsf_class ocsf_connection = {
        4001, HEAD, PROXIED, connection_activity, connection_body};
const struct ocsf_class ocsf_flow = {4001, HEAD, PROXIED, flow_activity, connection_body};
const struct ocsf_class ocsf_inbound = {4001, HEAD, PROXIED, connection_activity, connection_body};
const struct ocsf_class ocsf_packet = {4001, HEAD, DROPPED, packet_activity, packet_body};
