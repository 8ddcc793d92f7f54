/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that lines of several classes share, and the classes' own writers. */
#ifndef VETHGUARD_SRC_RECORDER_OCSF_PARTS_H
#define VETHGUARD_SRC_RECORDER_OCSF_PARTS_H

#include "recorder/ocsf/line.h"
#include "recorder/ocsf/ocsf.h"

/* A slice in a static table: SLICE() is no constant expression. */
#define OCSF_CONSTANT(literal)                 \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}

/* One line being written. */
struct ocsf_line {
	struct json json;
	const struct ocsf_sandbox *sandbox;
	const struct event *event;
};

/* A class as the envelope needs it. */
struct ocsf_class {
	uint32_t uid;
	struct slice head;     /* class_uid and category_uid, as JSON members */
	struct slice profiles; /* the metadata's profiles, as a JSON member */
	uint32_t (*activity)(const struct event *event);
	void (*body)(struct ocsf_line *line);
};

extern const struct ocsf_class ocsf_http, ocsf_dns, ocsf_connection, ocsf_flow, ocsf_packet,
        ocsf_lifecycle, ocsf_finding, ocsf_api;

/* The endpoints: who asked, where it was to go, and vethguard in between where it was in between.
 */
void ocsf_src_endpoint(struct ocsf_line *line);
void ocsf_dst_endpoint(struct ocsf_line *line);
void ocsf_proxy_endpoint(struct ocsf_line *line);
/* Port of the real destination, 0 where it is not known. */
uint16_t ocsf_destination_port(const struct ocsf_line *line);
void ocsf_connection_info(struct ocsf_line *line);
void ocsf_traffic(struct ocsf_line *line);
void ocsf_tls(struct ocsf_line *line);
/* A count of 64 bits as OCSF's signed long: saturated. */
uint64_t ocsf_long(uint64_t v);

/* As ip_format, faster where the address is one of IPv4. */
const char *ocsf_ip_text(const struct ip *ip, char out[IP_TEXT_MAX]);

static inline void ocsf_ip(struct json *j, const char *key, const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	if (ip->family)
		line_plain(j, key, ocsf_ip_text(ip, text));
}

void ocsf_query(struct ocsf_line *line);
void ocsf_http_request(struct ocsf_line *line);
/* The request of a call of the control API: its host is a socket's. */
void ocsf_control_request(struct ocsf_line *line);

/* ocsf/reason.c: why, as a code ("default", "resolve", ...) and as a sentence. What mode observe
 * let pass has the policy's reason, and how it then ended as a code of its own (empty: as asked).
 */
struct slice ocsf_reason_code(const struct event *event);
struct slice ocsf_failure_code(const struct event *event);
/* Borrows from the event or is in out. */
struct slice ocsf_reason_text(const struct event *event, char *out, size_t out_size);
/* True where the event came out as asked, with nothing to explain. */
bool ocsf_is_plain(const struct event *event);

/* ocsf/message.c: "POST https://host/path denied: why" into out; returns what was written. */
struct slice ocsf_message(const struct ocsf_line *line, char *out, size_t out_size);

#endif
