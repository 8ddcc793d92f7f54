/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that lines of several classes share, and each class's writer. */
#ifndef VETHGUARD_SRC_RECORDER_OCSF_PARTS_H
#define VETHGUARD_SRC_RECORDER_OCSF_PARTS_H

#include "recorder/ocsf/line.h"
#include "recorder/ocsf/ocsf.h"

/* A slice in a static table: SLICE() is no constant expression. */
#define OCSF_CONSTANT(literal)                 \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}

/* A line being written. */
struct ocsf_line {
	struct json json;
	const struct ocsf_sandbox *sandbox;
	const struct event *event;
};

/* A class, for the envelope. */
struct ocsf_class {
	uint32_t uid;
	struct slice head;     /* class_uid and category_uid, as JSON members */
	struct slice profiles; /* the metadata's profiles, as a JSON member */
	uint32_t (*activity)(const struct event *event);
	void (*body)(struct ocsf_line *line);
};

extern const struct ocsf_class ocsf_http, ocsf_dns, ocsf_connection, ocsf_flow, ocsf_packet,
        ocsf_lifecycle, ocsf_finding, ocsf_api, ocsf_inbound;

/* The endpoints: the client, the destination, and vethguard where it was in between. */
void ocsf_src_endpoint(struct ocsf_line *line);
void ocsf_dst_endpoint(struct ocsf_line *line);
void ocsf_proxy_endpoint(struct ocsf_line *line);
/* Returns the port of the real destination, 0 if unknown. */
uint16_t ocsf_destination_port(const struct ocsf_line *line);
void ocsf_connection_info(struct ocsf_line *line);
void ocsf_traffic(struct ocsf_line *line);
void ocsf_tls(struct ocsf_line *line);
/* Returns a 64-bit count as OCSF's signed long: saturated. */
uint64_t ocsf_long(uint64_t v);

/* ip_format(), faster for an IPv4 address. */
const char *ocsf_ip_text(const struct ip *ip, char out[IP_TEXT_MAX]);

static inline void ocsf_ip(struct json *j, const char *key, const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	if (ip->family)
		line_plain(j, key, ocsf_ip_text(ip, text));
}

void ocsf_query(struct ocsf_line *line);
void ocsf_http_request(struct ocsf_line *line);
/* Writes the request of a control API call: its host is a socket. */
void ocsf_control_request(struct ocsf_line *line);

/* reason.c: the reason as a code ("default", "resolve", ...). An event that mode observe allowed
 * has the policy's reason; how it then failed is a code of its own (empty: it did not). */
struct slice ocsf_reason_code(const struct event *event);
struct slice ocsf_failure_code(const struct event *event);
/* The reason as a sentence. Borrows from the event, or is in out. */
struct slice ocsf_reason_text(const struct event *event, char *out, size_t out_size);
/* Returns true if the event succeeded as asked, with nothing to explain. */
bool ocsf_is_plain(const struct event *event);

/* message.c: writes "POST https://host/path denied: why" to out; returns what was written. */
struct slice ocsf_message(const struct ocsf_line *line, char *out, size_t out_size);

#endif
