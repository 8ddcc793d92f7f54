/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tools: reads any bytes as the body of a request, of which the log has the names; and as the
 * response of an MCP server: as one text, and as a stream of events that comes in pieces. What the
 * filter leaves of a list of tools is JSON, has no tool that may not be called, and is not changed
 * by a second filter. Pieces of any size give the same events.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/event_stream.h"
#include "vethguard/policy/request_facts.h"
#include "vethguard/policy/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static bool may_call(void *context, struct slice tool)
{
	(void)context;
	return tool.n > 0 && tool.p[0] == 'a';
}

/* What is said of a tool is read, and decides. */
static bool may_show(void *context, struct slice tool, const struct json_tree *tree,
        const struct json_value *said)
{
	(void)context;
	must(tool.n > 0);
	return !policy_tool_instructs(tree, said);
}

static void filter(struct slice text)
{
	const struct policy_tools tools = {NULL, may_call, may_show};
	struct buf once, twice;
	int rc;

	buf_init(&once, 1u << 20);
	buf_init(&twice, 1u << 20);
	rc = policy_tools_filter(&tools, text, &once);
	if (rc == 1) {
		must(once.len < text.n);
		must(policy_tools_filter(&tools, buf_slice(&once), &twice) == 0);
	}
	must(rc == 1 || once.len == 0);
	must(twice.len == 0);
	buf_fini(&once);
	buf_fini(&twice);
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	(void)context;
	*out = (struct policy_field){SLICE("content-type"), SLICE("application/json")};
	return (*at)++ == 0;
}

/* What the log says of a request with this body: bounded names, in one encoding. */
static void name(struct slice text)
{
	static const char *const paths[] = {"/mcp", "/v1/chat/completions", "/model/a%3Ab/invoke"};
	const struct policy_fields fields = {NULL, next_field};
	uint8_t facts[REQUEST_FACTS_BYTES_MAX];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct policy_body body = {.state = POLICY_BODY_UNREAD};
		const struct policy_request request = {.method = SLICE("POST"),
		        .path = slice_from_string(paths[i]),
		        .fields = &fields,
		        .body = &body};
		struct slice rest, one;
		unsigned fact, count = 0;

		policy_body_read(&body, &fields, text);
		rest = slice_of(facts, policy_request_facts(&request, facts));
		while (request_fact_next(&rest, &fact, &one)) {
			must(request_fact_name(fact) && one.n <= REQUEST_FACT_MAX);
			must(request_fact_is_flag(fact) == (one.n == 0));
			count++;
		}
		must(rest.n == 0 && count <= REQUEST_FACTS_MAX + 1);
		policy_body_fini(&body);
	}
}

/* Splits the text into events, in pieces. Returns a checksum of the lengths of all events. */
static uint64_t take(struct slice text, size_t piece, bool look)
{
	struct event_stream s = {0};
	size_t start = 0, n;
	uint64_t sum = 0;

	for (size_t at = 0; at < text.n;) {
		at += text.n - at < piece ? text.n - at : piece;
		while ((n = event_stream_find(&s, slice_of(text.p + start, at - start)))) {
			struct buf data, others;

			must(n <= at - start);
			buf_init(&data, text.n + 1);
			buf_init(&others, text.n + 2);
			must(event_stream_split(slice_of(text.p + start, n), &data, &others) == 0);
			must(data.len + others.len <= n + 1);
			if (look)
				filter(buf_slice(&data));
			buf_fini(&data);
			buf_fini(&others);
			start += n;
			sum = sum * 31 + n;
		}
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);

	if (size > 1u << 16)
		return 0;
	filter(text);
	name(text);
	must(take(text, 1, true) == take(text, 7, false));
	must(take(text, 3, false) == take(text, SIZE_MAX / 2, false));
	return 0;
}
