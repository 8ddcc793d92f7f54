/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an answer to a POST is JSON or a stream of events, one to a GET a stream.
 * The bytes of a stream are gathered up to the empty line that ends an event. If its data lists
 * tools that may not be called, the event is written anew; else it passes as it came. A tool may be
 * called if the policy allows a call of it that is sent like the request that was answered.
 */
#include "proxy/rewrite/tools.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/http/content.h"
#include "proxy/http/event_stream.h"
#include "proxy/redact/charset.h"
#include "proxy/rewrite/kept_head.h"
#include "proxy/rewrite/tool_watch.h"
#include "vethguard/policy/tools.h"

struct tools_filter {
	bool stream;           /* of events; else JSON */
	struct kept_head kept; /* of JSON */
	struct buf text;       /* the answer, or the beginning of an event */
	struct event_stream events;
};

static const char large_text[] =
        "the upstream's answer has more than 4 MiB, so the tools in it cannot be looked at";
static const char type_text[] =
        "the upstream's answer is neither JSON nor a stream of events, so the tools in it cannot "
        "be looked at";
static const char coding_text[] =
        "the upstream's answer is compressed or not in UTF-8, so the tools in it cannot be looked "
        "at";
static const char broken_text[] =
        "the upstream's answer is not valid JSON, or programs could read it in different ways, so "
        "the tools in it cannot be looked at";
static const char memory_text[] = "no memory to look at the tools in the upstream's answer";

bool tools_are_wanted(const struct exchange *ex)
{
	if (!ex->verdict.decision.lists_tools || ex->request.wants_websocket ||
	        ex->request.upgrade.n)
		return false;
	return !ex->holding || !slice_equals(ex->request.method, SLICE("POST")) ||
	       policy_body_lists_tools(&ex->holding->body);
}

/* --- the head --- */

enum answer_type { ANSWER_OTHER, ANSWER_JSON, ANSWER_EVENTS };

static enum answer_type type_of(const struct http_fields *fields)
{
	const struct slice type = content_type_of(fields);

	return slice_equals_ignoring_case(type, SLICE("application/json"))    ? ANSWER_JSON
	       : slice_equals_ignoring_case(type, SLICE("text/event-stream")) ? ANSWER_EVENTS
	                                                                      : ANSWER_OTHER;
}

/* True if the answer may be neither JSON nor events. A successful answer to a POST may not: clients
 * that ignore the type would read it as JSON. It may if it is "202 Accepted": servers of 2024
 * answer so with any text, and send the message by the stream. */
static bool may_be_other(const struct exchange *ex, const struct http_response *r)
{
	return r->status / 100 != 2 || r->status == 202 ||
	       !slice_equals(ex->request.method, SLICE("POST"));
}

static void drop_digests(struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (content_is_digest(fields->items[i].name) ||
		        http_names_alike(fields->items[i].name, SLICE("etag")))
			fields->items[i].dropped = true;
}

const char *tools_begin(struct exchange *ex, struct http_response *r)
{
	enum answer_type type = type_of(&r->fields);

	if (exchange_has_no_content(ex, r))
		return NULL;
	if (type == ANSWER_OTHER)
		return may_be_other(ex, r) ? NULL : type_text;
	if (!charset_is_searchable(&r->fields) || content_coding_of(&r->fields) != CONTENT_PLAIN)
		return coding_text;
	if (type == ANSWER_JSON && r->body == HTTP_BODY_LENGTH &&
	        r->content_length > TOOLS_ANSWER_MAX)
		return large_text;
	ex->tools = calloc(1, sizeof(*ex->tools));
	if (!ex->tools)
		return memory_text;
	ex->tools->stream = type == ANSWER_EVENTS;
	buf_init(&ex->tools->text, TOOLS_ANSWER_MAX);
	drop_digests(&r->fields);
	r->body = HTTP_BODY_CHUNKED;
	return NULL;
}

bool tools_hold_head(const struct exchange *ex)
{
	return !ex->tools->stream;
}

bool tools_keep_head(struct exchange *ex, const struct http_response *r)
{
	if (kept_head_init(&ex->tools->kept, r))
		return true;
	exchange_fail(ex, EVENT_CAUSE_LIMIT, memory_text);
	return false;
}

void tools_free(struct exchange *ex)
{
	struct tools_filter *t = ex->tools;

	if (!t)
		return;
	ex->proxy->body_held -= t->text.len;
	kept_head_fini(&t->kept);
	if (t->text.len)
		secret_wipe(buf_bytes(&t->text), t->text.len);
	buf_fini(&t->text);
	free(t);
	ex->tools = NULL;
}

/* --- the content --- */

/* Describes the request that was answered, for questions about calls that are sent like it. */
static struct policy_request describe(const struct exchange *ex, const struct policy_fields *fields)
{
	const struct http_request *r = &ex->request;

	return (struct policy_request){.scheme = ex->client->tls ? POLICY_HTTPS : POLICY_HTTP,
	        .host = destination_host(&ex->destination),
	        .address = ex->destination.address,
	        .port = ex->destination.port,
	        .path = slice_of(r->path, r->path_n),
	        .query = r->query,
	        .fields = fields};
}

static bool may_call(void *context, struct slice tool)
{
	const struct exchange *ex = context;
	const struct policy_fields fields = authorize_fields(&ex->request.fields);
	const struct policy_request request = describe(ex, &fields);

	return policy_may_call(ex->proxy->config.policy, &request, tool);
}

static bool may_show(void *context, struct slice tool, const struct json_tree *tree,
        const struct json_value *said)
{
	struct exchange *ex = context;
	const struct policy_fields fields = authorize_fields(&ex->request.fields);
	const struct policy_request request = describe(ex, &fields);

	return tool_watch_lets(ex, &request, tool, tree, said);
}

/* Filters a text of JSON into out, as policy_tools_filter() does; a fault is marked. */
static int filter(struct exchange *ex, struct slice text, struct buf *out)
{
	const struct policy_tools tools = {ex, may_call, may_show};
	int rc = policy_tools_filter(&tools, text, out);

	if (rc == 1)
		ex->detail =
		        "tools that may not be called, or whose descriptions are blocked, were "
		        "taken out of the answer";
	else if (rc < 0)
		exchange_mark_undecodable(ex, rc == -EBADMSG ? broken_text : memory_text);
	return rc;
}

static void pass(struct exchange *ex, struct slice text)
{
	if (text.n)
		exchange_redact_body(ex, (const uint8_t *)text.p, text.n);
}

static bool keep(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct tools_filter *t = ex->tools;

	if (n > TOOLS_ANSWER_MAX - t->text.len)
		exchange_mark_undecodable(ex, large_text);
	else if (n > HOLDING_ALL_MAX - ex->proxy->body_held || buf_append(&t->text, p, n) < 0)
		exchange_mark_undecodable(ex, memory_text);
	else
		ex->proxy->body_held += n;
	return !ex->redacting.undecodable;
}

/* --- events --- */

/* Writes the event with other data, in one line: JSON has line ends only between its values. */
static void pass_changed(struct exchange *ex, struct buf *others, struct buf *json)
{
	uint8_t *p = buf_bytes(json);

	for (size_t i = 0; i < json->len; i++)
		if (p[i] == '\n' || p[i] == '\r')
			p[i] = ' ';
	pass(ex, buf_slice(others));
	pass(ex, SLICE("data: "));
	pass(ex, buf_slice(json));
	pass(ex, SLICE("\n\n"));
}

/* Passes an event on, filtered, with the empty line that ends it. */
static void pass_event(struct exchange *ex, struct slice event)
{
	struct buf data, others, json;
	int rc = 0;

	buf_init(&data, TOOLS_ANSWER_MAX);
	buf_init(&others, TOOLS_ANSWER_MAX);
	buf_init(&json, TOOLS_ANSWER_MAX);
	if (event_stream_split(event, &data, &others) < 0)
		exchange_mark_undecodable(ex, memory_text);
	else if (slice_find_byte(buf_slice(&data), '{') >= 0)
		rc = filter(ex, buf_slice(&data), &json);
	if (rc == 1)
		pass_changed(ex, &others, &json);
	else if (rc == 0 && !ex->redacting.undecodable)
		pass(ex, event);
	buf_fini(&data);
	buf_fini(&others);
	buf_fini(&json);
}

static void take_events(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct tools_filter *t = ex->tools;
	size_t length;

	if (!keep(ex, p, n))
		return;
	while (!ex->redacting.undecodable &&
	        (length = event_stream_find(&t->events, buf_slice(&t->text)))) {
		pass_event(ex, slice_of(buf_bytes(&t->text), length));
		buf_consume(&t->text, length);
		ex->proxy->body_held -= length;
	}
}

void tools_take(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (ex->redacting.undecodable) /* further pieces of the same read */
		return;
	if (ex->tools->stream)
		take_events(ex, p, n);
	else
		keep(ex, p, n);
}

static void end_json(struct exchange *ex)
{
	struct tools_filter *t = ex->tools;
	struct buf out;
	int rc;

	buf_init(&out, TOOLS_ANSWER_MAX);
	rc = t->text.len ? filter(ex, buf_slice(&t->text), &out) : 0;
	if (rc >= 0) {
		responding_enter(ex, RESPONDING_BEGUN);
		ex->ops->response_head(ex, &t->kept.head, SLICE(""));
		pass(ex, rc == 1 ? buf_slice(&out) : buf_slice(&t->text));
	}
	buf_fini(&out);
}

/* Some clients also take an event that no empty line ends. */
void tools_end(struct exchange *ex)
{
	struct tools_filter *t = ex->tools;

	if (ex->redacting.undecodable)
		return;
	if (!t->stream)
		end_json(ex);
	else if (t->text.len)
		pass_event(ex, buf_slice(&t->text));
}
