/* SPDX-License-Identifier: Apache-2.0 */
/* DNS Activity (4003): one query of the sandbox and vethguard's answer. */
#include <stdio.h>

#include "vethguard/wire/dns.h"

#include "recorder/ocsf/parts.h"

#define ACTIVITY_TRAFFIC 6 /* request and response in one record */
#define RCODE_OTHER 99

static uint32_t dns_activity(const struct event *event)
{
	(void)event;
	return ACTIVITY_TRAFFIC;
}

static const char *class_name(uint16_t class, char out[16])
{
	switch (class) {
	case 1:
		return "IN";
	case 3:
		return "CH";
	case 4:
		return "HS";
	case 255:
		return "ANY";
	default:
		snprintf(out, 16, "CLASS%u", class);
		return out;
	}
}

void ocsf_query(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	char text[16];

	line_object(j, "query");
	line_text(j, "hostname", e->host.n ? e->host : SLICE("."), OCSF_HOST_MAX);
	line_plain(j, "type", dns_type_name(e->dns_type, text));
	line_plain(j, "class", class_name(e->dns_class, text));
	line_end_object(j);
}

static void write_answers(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	if (!e->answer.family)
		return;
	json_array(j, "answers");
	json_object(j, NULL);
	line_plain(j, "type", e->answer.family == 4 ? "A" : "AAAA");
	ocsf_ip(j, "rdata", &e->answer);
	line_end_object(j);
	json_end_array(j);
}

static void write_rcode(struct ocsf_line *line)
{
	static const char *const captions[] = {
	        "NoError", "FormError", "ServError", "NXDomain", "NotImp", "Refused"};
	struct json *j = &line->json;
	unsigned rcode = line->event->dns_rcode;
	char text[16];

	if (rcode < sizeof(captions) / sizeof(captions[0])) {
		line_uint(j, "rcode_id", rcode);
		line_plain(j, "rcode", captions[rcode]);
		return;
	}
	snprintf(text, sizeof(text), "RCODE%u", rcode);
	line_uint(j, "rcode_id", RCODE_OTHER);
	line_plain(j, "rcode", text);
}

static void dns_body(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	ocsf_query(line);
	write_answers(line);
	write_rcode(line);
	line_uint(j, "transaction_id", e->dns_id);
	line_uint(j, "query_time", e->time_ms);
	line_uint(j, "response_time", e->time_ms + e->duration_us / 1000);
	ocsf_connection_info(line);
	ocsf_src_endpoint(line);
	ocsf_dst_endpoint(line);
}

const struct ocsf_class ocsf_dns = {
        .uid = 4003,
        .head = OCSF_CONSTANT("\"class_uid\":4003,\"category_uid\":4"),
        .profiles =
                OCSF_CONSTANT("\"profiles\":[\"host\",\"record_integrity\",\"security_control\"]"),
        .activity = dns_activity,
        .body = dns_body,
};
