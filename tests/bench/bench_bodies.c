/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_bodies: the CPU time that rules with conditions on a JSON body cost beyond a rule without
 * conditions: reading the body (content type, JSON, keys that differ) and judging it. The body is a
 * chat request of about N bytes (4096).
 *
 *   bench_bodies [N]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vethguard/policy/body.h"
#include "vethguard/policy/load.h"

#define BYTES_MEASURED (80u << 20) /* of bodies, in each turn */
#define TURNS 7                    /* the best of them counts: what disturbs only adds */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

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

/* Microseconds of a request with or without its body. */
static double measure(const struct policy *policy, const char *host, struct slice text, bool reads)
{
	const struct policy_fields fields = {NULL, next_field};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = slice_from_string(host),
	        .port = 443,
	        .method = SLICE("POST"),
	        .path = SLICE("/v1/chat/completions"),
	        .fields = &fields};
	struct policy_decision d;
	unsigned rounds = BYTES_MEASURED / (unsigned)text.n;
	double best = 1e9;

	for (int turn = 0; turn < TURNS; turn++) {
		double start = now_us(), each;

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
		each = (now_us() - start) / rounds;
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
	        "/messages/*/role: [system, user, assistant, tool]}\n";
	struct slice text = make_body(argc > 1 ? (size_t)atoi(argv[1]) : 4096);
	struct policy_reader reader = {rules, read_memory, NULL};
	struct diag_list diags = {.count = 0};
	struct policy policy;
	double plain, json;
	uint8_t *image;
	size_t size;

	if (policy_load(&reader, "/bench.yaml", NULL, &image, &size, &diags) != 0 ||
	        policy_open(&policy, image, size) != 0) {
		diag_print(&diags, stderr);
		return 1;
	}
	plain = measure(&policy, "plain.example", text, false);
	json = measure(&policy, "json.example", text, true);
	printf("JSON body of %zu bytes: %.2f us beyond a rule without conditions (%.2f us)\n",
	        text.n, json - plain, plain);
	free(image);
	free((char *)(uintptr_t)text.p);
	return 0;
}
