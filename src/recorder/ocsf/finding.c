/* SPDX-License-Identifier: Apache-2.0 */
/* Detection Finding (2004): what should not happen. */
#include <inttypes.h>
#include <stdio.h>

#include "recorder/ocsf/parts.h"

#define ACTIVITY_CREATE 1
#define ANALYTIC_RULE 1

static const char *const finding_codes[] = {
        [EVENT_FINDING_NONE] = "none",
        [EVENT_FINDING_BINDING_MISMATCH] = "binding-mismatch",
        [EVENT_FINDING_PLACEHOLDER_LEAK] = "placeholder-leak",
        [EVENT_FINDING_CREDENTIAL_ECHO] = "credential-echo",
        [EVENT_FINDING_DNS_TUNNEL] = "dns-tunnel",
        [EVENT_FINDING_SMUGGLING] = "ambiguous-http",
        [EVENT_FINDING_PRIVATE_ADDRESS] = "private-address",
        [EVENT_FINDING_FENCE_CHANGED] = "fence-changed",
        [EVENT_FINDING_ROLE_DIED] = "process-died",
        [EVENT_FINDING_BROKEN_STREAM] = "broken-event-stream",
        [EVENT_FINDING_PACKETS_LOST] = "packet-copies-lost",
        [EVENT_FINDING_FLOOD] = "http2-flood",
        [EVENT_FINDING_CREDENTIAL_SENT] = "credential-sent",
        [EVENT_FINDING_LOG_OUTAGE] = "log-outage",
        [EVENT_FINDING_CUT_OFF] = "sandbox-cut-off",
        [EVENT_FINDING_FOREIGN_CREDENTIAL] = "foreign-credential",
        [EVENT_FINDING_FOREIGN_PEER] = "foreign-peer",
        [EVENT_FINDING_GUESSED_TOKENS] = "guessed-tokens",
        [EVENT_FINDING_SECRET] = "secret",
        [EVENT_FINDING_BUNDLE_REFUSED] = "bundle-refused",
        [EVENT_FINDING_TOOL_CHANGED] = "tool-changed",
        [EVENT_FINDING_TOOL_INSTRUCTS] = "tool-instructs",
};
_Static_assert(sizeof(finding_codes) / sizeof(finding_codes[0]) == EVENT_FINDING_COUNT,
        "one code per finding");

static uint32_t finding_activity(const struct event *event)
{
	(void)event;
	return ACTIVITY_CREATE;
}

static void write_related(struct ocsf_line *line)
{
	struct json *j = &line->json;
	char uid[SEAL_UID_DIGITS + 1];

	if (!line->event->about)
		return;
	snprintf(uid, sizeof(uid), "%016" PRIx64, line->event->about);
	json_array(j, "related_events");
	json_object(j, NULL);
	line_plain(j, "uid", uid);
	line_end_object(j);
	json_end_array(j);
}

static void put_finding_info(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	const char *code = finding_codes[e->finding];
	char uid[SEAL_UID_DIGITS + 1];

	snprintf(uid, sizeof(uid), "%016" PRIx64, e->id);
	line_object(j, "finding_info");
	line_plain(j, "uid", uid);
	line_plain(j, "title", event_finding_title(e->finding));
	line_some_text(j, "desc", e->detail, OCSF_TEXT_MAX);
	json_array(j, "types");
	json_literal(j, NULL, code);
	json_end_array(j);
	line_object(j, "analytic");
	line_plain(j, "name", code);
	line_uint(j, "type_id", ANALYTIC_RULE);
	line_end_object(j);
	write_related(line);
	line_end_object(j);
}

static void write_evidence(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	if (!e->src.family && !e->dst.family && !e->upstream.family && !e->host.n)
		return;
	json_array(j, "evidences");
	json_object(j, NULL);
	ocsf_src_endpoint(line);
	ocsf_dst_endpoint(line);
	if (e->dns_type)
		ocsf_query(line);
	if (e->method.n)
		ocsf_http_request(line);
	ocsf_tls(line);
	line_end_object(j);
	json_end_array(j);
}

static void finding_body(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	put_finding_info(line);
	line_bool(j, "is_alert", true);
	write_evidence(line);
	if (e->credential.n) {
		line_object(j, "unmapped");
		line_text(j, "credential", e->credential, OCSF_NAME_MAX);
		line_end_object(j);
	}
}

#define PROFILES OCSF_CONSTANT("\"profiles\":[\"host\",\"record_integrity\",\"security_control\"]")

const struct ocsf_class ocsf_finding = {
        .uid = 2004,
        .head = OCSF_CONSTANT("\"class_uid\":2004,\"category_uid\":2"),
        .profiles = PROFILES,
        .activity = finding_activity,
        .body = finding_body,
};
