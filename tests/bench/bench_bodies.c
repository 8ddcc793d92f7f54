/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_bodies: the CPU time that rules with conditions on a JSON body cost beyond a rule without
 * conditions: reading the body (content type, JSON, keys that differ) and judging it. The bodies
 * are a chat request, a GraphQL document and a call of an MCP tool, of about N bytes each (4096).
 *
 *   bench_bodies [N]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/load.h"

#define BYTES_MEASURED (80u << 20) /* of bodies, in each turn */
#define TURNS 7                    /* the best of them counts: what disturbs only adds */

static int read_memory(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	static const struct policy_field fields[] = {{{"accept", 6}, {"*/*", 3}},
	        {{"content-type", 12}, {"application/json", 16}},
	        {{"user-agent", 10}, {"bench", 5}}};

	(void)context;
	if (*at == sizeof(fields) / sizeof(fields[0]))
		return false;
	*out = fields[(*at)++];
	return true;
}

static struct slice make_body(size_t wanted)
{
	char *text = malloc(wanted + 1024), *p = text;

	if (!text)
		exit(1);
	p += sprintf(p, "{\"model\":\"gpt-4o-mini\",\"max_tokens\":1024,\"stream\":true,"
	                "\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"}");
	while ((size_t)(p - text) + 240 < wanted)
		p += sprintf(p,
		        ",{\"role\":\"user\",\"content\":\"Please read src/main.c, say what is "
		        "wrong with it\\nin two sentences, and \\\"quote\\\" the lines.\"}");
	p += sprintf(p,
	        "],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"
	        "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}}}]}");
	return slice_of(text, (size_t)(p - text));
}

/* Makes a GraphQL request with many fields, a fragment at its root, arguments and variables. */
static struct slice make_graphql(size_t wanted)
{
	char *text = malloc(wanted + 1024), *p = text;

	if (!text)
		exit(1);
	p += sprintf(p, "{\"operationName\":\"Issues\",\"variables\":{\"owner\":\"acme\",\"n\":50},"
	                "\"query\":\"query Issues($owner: String!, $n: Int = 10) {\\n  "
	                "...Top\\n}\\nfragment Top on Query {\\n  viewer { login }\\n");
	for (int i = 0; (size_t)(p - text) + 160 < wanted; i++)
		p += sprintf(p,
		        "  r%d: repository(owner: $owner, name: \\\"site-%d\\\") {\\n    "
		        "issues(first: "
		        "$n) { nodes { id title } }\\n  }\\n",
		        i, i);
	p += sprintf(p, "}\"}");
	return slice_of(text, (size_t)(p - text));
}

static struct slice make_call(size_t wanted)
{
	char *text = malloc(wanted + 1024), *p = text;

	if (!text)
		exit(1);
	p += sprintf(p,
	        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":"
	        "\"fs_write\",\"arguments\":{\"path\":\"/data/a/b.txt\",\"lines\":[\"\"");
	while ((size_t)(p - text) + 64 < wanted)
		p += sprintf(p, ",\"some text of a file that is written\"");
	p += sprintf(p, "]}}}");
	return slice_of(text, (size_t)(p - text));
}

/* Microseconds of a request with or without its body. */
static double measure(const struct policy *policy, const char *host, struct slice text, bool reads)
{
	const struct policy_fields fields = {NULL, next_field};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = slice_from_string(host),
	        .port = 443,
	        .method = SLICE("POST"),
	        .path = SLICE("/v1/x"),
	        .fields = &fields};
	struct policy_decision d;
	unsigned rounds = BYTES_MEASURED / (unsigned)text.n;
	double best = 1e9;

	for (int turn = 0; turn < TURNS; turn++) {
		double start = cpu_us(), each;

		for (unsigned i = 0; i < rounds; i++) {
			struct policy_body body = {.state = POLICY_BODY_UNREAD};

			request.body = &body;
			policy_decide(policy, &request, &d);
			if (d.needs_body != reads)
				exit(2);
			if (!reads)
				continue;
			policy_body_read(&body, &fields, text);
			policy_decide(policy, &request, &d);
			policy_body_fini(&body);
			if (d.verdict != POLICY_ALLOW)
				exit(3);
		}
		each = (cpu_us() - start) / rounds;
		best = each < best ? each : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	static char rules[] =
	        "vethguard: 1\nallow:\n"
	        "  - {to: plain.example, methods: [POST], paths: [/v1/**]}\n"
	        "  - to: json.example\n    methods: [POST]\n    paths: [/v1/**]\n"
	        "    json: {model: [\"gpt-4o*\", o3], max_tokens: {max: 4096}, user: ~, "
	        "/messages/*/role: [system, user, assistant, tool]}\n"
	        "  - {to: graphql.example, methods: [POST], paths: [/v1/**], graphql: {operations: "
	        "[query], fields: [viewer, \"repo*\"]}}\n"
	        "  - {to: mcp.example, methods: [POST], paths: [/v1/**], mcp: {tools: [search, "
	        "\"fs_*\"], arguments: {path: \"/data/**\"}}}\n";
	size_t bytes = argc > 1 ? (size_t)atoi(argv[1]) : 4096;
	const struct {
		const char *host, *what;
		struct slice text;
	} bodies[] = {{"json.example", "JSON", make_body(bytes)},
	        {"graphql.example", "GraphQL", make_graphql(bytes)},
	        {"mcp.example", "MCP", make_call(bytes)}};
	struct policy_reader reader = {rules, read_memory, NULL};
	struct diag_list diags = {.count = 0};
	struct policy policy;
	uint8_t *image;
	size_t size;

	if (policy_load(&reader, "/bench.yaml", NULL, &image, &size, &diags) != 0 ||
	        policy_open(&policy, image, size) != 0) {
		diag_print(&diags, stderr);
		return 1;
	}
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		double plain = measure(&policy, "plain.example", bodies[i].text, false);
		double read = measure(&policy, bodies[i].host, bodies[i].text, true);

		printf("%s body of %zu bytes: %.2f us beyond a rule without conditions (%.2f us)\n",
		        bodies[i].what, bodies[i].text.n, read - plain, plain);
		free((char *)(uintptr_t)bodies[i].text.p);
	}
	free(image);
	return 0;
}
