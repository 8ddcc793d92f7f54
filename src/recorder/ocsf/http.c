/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP Activity (4002): one request and its result. */
#include "recorder/ocsf/parts.h"
#include "vethguard/policy/request_facts.h"

#define ACTIVITY_OTHER 99

/* The methods that OCSF knows, with their activities. */
static const struct method {
	struct slice name;
	uint32_t activity;
} methods[] = {
        {OCSF_CONSTANT("GET"), 3},
        {OCSF_CONSTANT("POST"), 6},
        {OCSF_CONSTANT("HEAD"), 4},
        {OCSF_CONSTANT("PUT"), 7},
        {OCSF_CONSTANT("DELETE"), 2},
        {OCSF_CONSTANT("PATCH"), 9},
        {OCSF_CONSTANT("OPTIONS"), 5},
        {OCSF_CONSTANT("CONNECT"), 1},
        {OCSF_CONSTANT("TRACE"), 8},
        {OCSF_CONSTANT("ACL"), 10},
        {OCSF_CONSTANT("BASELINE-CONTROL"), 11},
        {OCSF_CONSTANT("BIND"), 12},
        {OCSF_CONSTANT("CHECKIN"), 13},
        {OCSF_CONSTANT("CHECKOUT"), 14},
        {OCSF_CONSTANT("COPY"), 15},
        {OCSF_CONSTANT("LABEL"), 16},
        {OCSF_CONSTANT("LINK"), 17},
        {OCSF_CONSTANT("LOCK"), 18},
        {OCSF_CONSTANT("MERGE"), 19},
        {OCSF_CONSTANT("MKACTIVITY"), 20},
        {OCSF_CONSTANT("MKCALENDAR"), 21},
        {OCSF_CONSTANT("MKCOL"), 22},
        {OCSF_CONSTANT("MKREDIRECTREF"), 23},
        {OCSF_CONSTANT("MKWORKSPACE"), 24},
        {OCSF_CONSTANT("MOVE"), 25},
        {OCSF_CONSTANT("ORDERPATCH"), 26},
        {OCSF_CONSTANT("PRI"), 27},
        {OCSF_CONSTANT("PROPFIND"), 28},
        {OCSF_CONSTANT("PROPPATCH"), 29},
        {OCSF_CONSTANT("QUERY"), 30},
        {OCSF_CONSTANT("REBIND"), 31},
        {OCSF_CONSTANT("REPORT"), 32},
        {OCSF_CONSTANT("SEARCH"), 33},
        {OCSF_CONSTANT("UNBIND"), 34},
        {OCSF_CONSTANT("UNCHECKOUT"), 35},
        {OCSF_CONSTANT("UNLINK"), 36},
        {OCSF_CONSTANT("UNLOCK"), 37},
        {OCSF_CONSTANT("UPDATE"), 38},
        {OCSF_CONSTANT("UPDATEREDIRECTREF"), 39},
        {OCSF_CONSTANT("VERSION-CONTROL"), 40},
};

static uint32_t http_activity(const struct event *event)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (slice_equals(methods[i].name, event->method))
			return methods[i].activity;
	return ACTIVITY_OTHER;
}

static void write_url(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	ptrdiff_t mark = slice_find_byte(e->target, '?');
	size_t path_n = mark < 0 ? e->target.n : (size_t)mark;
	uint16_t port = ocsf_destination_port(line);

	line_object(j, "url");
	line_some_text(j, "scheme", e->scheme, OCSF_METHOD_MAX);
	line_some_text(j, "hostname", e->host, OCSF_HOST_MAX);
	if (port)
		line_uint(j, "port", port);
	line_text(j, "path", slice_of(e->target.p, path_n), OCSF_PATH_MAX);
	if (mark >= 0)
		line_some_text(j, "query_string",
		        slice_of(e->target.p + path_n + 1, e->target.n - path_n - 1),
		        OCSF_QUERY_MAX);
	line_end_object(j);
}

void ocsf_http_request(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	line_object(j, "http_request");
	if (http_activity(e) != ACTIVITY_OTHER)
		line_text(j, "http_method", e->method, OCSF_METHOD_MAX);
	write_url(line);
	line_some_text(j, "user_agent", e->user_agent, OCSF_AGENT_MAX);
	if (e->http_version)
		line_plain(j, "version",
		        e->http_version == 20   ? "2"
		        : e->http_version == 11 ? "1.1"
		                                : "1.0");
	line_end_object(j);
}

void ocsf_control_request(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	line_object(j, "http_request");
	if (http_activity(e) != ACTIVITY_OTHER)
		line_text(j, "http_method", e->method, OCSF_METHOD_MAX);
	line_object(j, "url");
	line_text(j, "path", e->target, OCSF_PATH_MAX);
	line_end_object(j);
	line_some_text(j, "user_agent", e->user_agent, OCSF_AGENT_MAX);
	line_end_object(j);
}

static void write_response(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	if (!e->status)
		return;
	line_object(j, "http_response");
	line_uint(j, "code", e->status);
	line_uint(j, "latency", e->duration_us / 1000);
	line_end_object(j);
}

/* Writes the texts of one kind of facts as an array, if there are any. */
static void write_facts_of(struct ocsf_line *line, unsigned wanted)
{
	struct json *j = &line->json;
	struct slice rest = line->event->facts, text;
	unsigned fact, count = 0;

	while (request_fact_next(&rest, &fact, &text)) {
		if (fact != wanted)
			continue;
		if (request_fact_is_flag(fact)) {
			line_bool(j, request_fact_name(fact), true);
			return;
		}
		if (count++ == 0) {
			line_name(j, request_fact_name(fact));
			line_put(j, "[", 1);
		} else {
			line_put(j, ",", 1);
		}
		line_text_value(j, text, REQUEST_FACT_MAX);
	}
	if (count)
		line_put(j, "]", 1);
	j->comma |= count > 0;
}

/* Writes what the request asks for. The texts are the sandbox's; the members' names are those of
 * request_fact_name(). */
static void write_facts(struct ocsf_line *line)
{
	if (!line->event->facts.n)
		return;
	line_object(&line->json, "request");
	for (unsigned fact = 0; fact < REQUEST_FACT_COUNT; fact++)
		if (request_fact_name(fact))
			write_facts_of(line, fact);
	line_end_object(&line->json);
}

static void http_body(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	if (http_activity(e) == ACTIVITY_OTHER)
		line_text(j, "activity_name", e->method.n ? e->method : SLICE("none"),
		        OCSF_METHOD_MAX);
	ocsf_http_request(line);
	write_response(line);
	ocsf_src_endpoint(line);
	ocsf_dst_endpoint(line);
	ocsf_proxy_endpoint(line);
	ocsf_traffic(line);
	ocsf_tls(line);
	if (e->credential.n || ocsf_failure_code(e).n || e->callback || e->facts.n) {
		line_object(j, "unmapped");
		line_some_text(j, "credential", e->credential, OCSF_NAME_MAX);
		line_some_text(j, "failure", ocsf_failure_code(e), OCSF_NAME_MAX);
		if (e->callback)
			line_plain(j, "decided_for", "another proxy");
		write_facts(line);
		line_end_object(j);
	}
}

const struct ocsf_class ocsf_http = {
        .uid = 4002,
        .head = OCSF_CONSTANT("\"class_uid\":4002,\"category_uid\":4"),
        .profiles = OCSF_CONSTANT("\"profiles\":[\"host\",\"network_proxy\",\"record_integrity\","
                                  "\"security_control\"]"),
        .activity = http_activity,
        .body = http_body,
};
