/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_policy: compiles a policy of 100,000 hosts and 1,000 path rules on one host, and prints how
 * long loading took and nanoseconds per decision for hosts that are there, that are not, and for
 * paths of the last rules.
 *
 *   bench_policy [HOSTS [PATH_RULES]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "cpu.h"
#include "vethguard/policy/load.h"

#define ROUNDS 1000000u

/* CPU time: other work on the machine does not count. */
static int read_memory(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(*text);
	return 0;
}

static char *write_policy(unsigned hosts, unsigned rules)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		exit(1);
	fputs("vethguard: 1\nname: bench\ngroups:\n  many:\n", f);
	for (unsigned i = 0; i < hosts; i++)
		fprintf(f, "    - https://host-%u.example.com\n", i);
	fputs("allow:\n  - to: group:many\n    methods: [GET, HEAD]\n  - to: "
	      "https://*.glob.example\n",
	        f);
	for (unsigned i = 0; i < rules; i++)
		fprintf(f,
		        "  - to: https://api.example.org\n    methods: [GET, POST]\n    paths: "
		        "[/repos/owner-%u/**]\n",
		        i);
	fputs("  - to: https://denies.example.org\n", f);
	fputs("deny:\n  - to: https://*.example.com\n    methods: [DELETE]\n", f);
	for (unsigned i = 0; i < rules; i++)
		fprintf(f,
		        "  - to: https://denies.example.org\n    paths: "
		        "[/repos/owner-%u/*/secrets/**, "
		        "/@private-%u%%2F*]\n",
		        i, i);
	fclose(f);
	return text;
}

/* The formats are those of main(). */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void measure(const struct policy *policy, const char *what, const char *host_format,
        const char *path_format, unsigned spread, enum policy_verdict expected)
{
	enum { SHAPES = 4096 };
	static char hosts[SHAPES][64], paths[SHAPES][96];
	static struct policy_request requests[SHAPES];
	struct policy_decision d;
	unsigned wrong = 0;
	double start;

	for (unsigned i = 0; i < SHAPES; i++) {
		unsigned n = (unsigned)((uint64_t)i * 2654435761u % spread);

		snprintf(hosts[i], sizeof(hosts[i]), host_format, n);
		snprintf(paths[i], sizeof(paths[i]), path_format, n);
		requests[i] = (struct policy_request){.scheme = POLICY_HTTPS,
		        .host = slice_from_string(hosts[i]),
		        .port = 443,
		        .method = SLICE("GET"),
		        .path = slice_from_string(paths[i])};
	}
	start = cpu_seconds();
	for (unsigned i = 0; i < ROUNDS; i++) {
		policy_decide(policy, &requests[i % SHAPES], &d);
		wrong += d.verdict != expected;
	}
	printf("%-28s %7.0f ns per decision%s\n", what, (cpu_seconds() - start) * 1e9 / ROUNDS,
	        wrong ? "  WRONG VERDICTS" : "");
}

int main(int argc, char **argv)
{
	unsigned hosts = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
	unsigned rules = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	char *text = write_policy(hosts, rules);
	struct policy_reader reader = {text, read_memory, NULL};
	struct policy_load_options options = {0};
	struct diag_list diags = {.count = 0};
	struct policy policy;
	uint8_t *image;
	size_t size;
	double start = cpu_seconds();

	if (policy_load(&reader, "/bench.yaml", &options, &image, &size, &diags) != 0) {
		diag_print(&diags, stderr);
		return 1;
	}
	printf("%u hosts, %u path rules: loaded and compiled in %.0f ms, image %zu kB\n", hosts,
	        rules, (cpu_seconds() - start) * 1e3, size / 1024);
	start = cpu_seconds();
	if (policy_open(&policy, image, size) != 0)
		return 1;
	printf("opened (all offsets checked) in %.1f ms\n", (cpu_seconds() - start) * 1e3);
	measure(&policy, "allowed host", "host-%u.example.com", "/v1/objects/%u", hosts,
	        POLICY_ALLOW);
	measure(&policy, "unknown host", "none-%u.example.net", "/v1/objects/%u", hosts,
	        POLICY_DENY);
	measure(&policy, "glob host", "a%u.b.glob.example", "/v1/objects/%u", hosts, POLICY_ALLOW);
	if (rules > 0)
		measure(&policy, "path rules, allowed", "api.example.org",
		        "/repos/owner-%u/name/pulls/12", rules, POLICY_ALLOW);
	if (rules > 0) {
		measure(&policy, "deny rules, plain path", "denies.example.org",
		        "/repos/owner-%u/name/pulls/12", rules, POLICY_ALLOW);
		measure(&policy, "deny rules, escaped slash", "denies.example.org",
		        "/@scope-%u%%2Fname", rules, POLICY_ALLOW);
		measure(&policy, "deny rules, parameters", "denies.example.org",
		        "/repos/owner-%u/name;v=1/pulls", rules, POLICY_ALLOW);
	}
	if (rules > 0)
		measure(&policy, "path rules, denied", "api.example.org",
		        "/repos/other-%u/name/pulls/12", rules, POLICY_DENY);
	free(image);
	free(text);
	return 0;
}
