/* SPDX-License-Identifier: Apache-2.0 */
/* bench_dlp: how fast the scanner of secrets passes over bodies without any, in 16 KiB pieces.
 * Prints GB/s of CPU time per kind of body. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vethguard/dlp/scan.h"

#define PIECE 16384u
#define BODY (4u << 20)
#define ROUNDS 20

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fill_words(uint8_t *p, size_t n, const char *separators)
{
	static const char *const words[] = {"the", "request", "was", "answered", "by", "an",
	        "upstream", "with", "status", "created_at", "id", "token", "ghp", "2024", "http",
	        "value", "name", "default_branch", "eyes", "example.com/a/b", "kept", "of", "which",
	        "message", "content", "role", "user", "system", "function", "arguments", "path",
	        "line"};
	size_t at = 0, k = 0;

	while (at < n) {
		const char *w = words[(size_t)rand() % (sizeof(words) / sizeof(words[0]))];

		while (*w && at < n)
			p[at++] = (uint8_t)*w++;
		if (at < n)
			p[at++] = (uint8_t)separators[k++ % strlen(separators)];
	}
}

static void fill_random(uint8_t *p, size_t n, const char *alphabet)
{
	for (size_t i = 0; i < n; i++)
		p[i] = alphabet ? (uint8_t)alphabet[(size_t)rand() % strlen(alphabet)]
		                : (uint8_t)rand();
}

static void measure(struct dlp_scanner *scanner, const char *what, const uint8_t *body)
{
	const struct dlp_question question = {0};
	struct dlp_finding finding;
	unsigned found = 0;
	double begin = cpu_seconds();

	for (int round = 0; round < ROUNDS; round++) {
		struct dlp_stream stream = {0};

		for (size_t at = 0; at < BODY; at += PIECE)
			found += dlp_stream_scan(
			        &stream, scanner, &question, slice_of(body + at, PIECE), &finding);
	}
	printf("%-24s %6.2f GB/s  found %u\n", what,
	        (double)BODY * ROUNDS / 1e9 / (cpu_seconds() - begin), found);
}

int main(void)
{
	uint8_t *body = malloc(BODY);
	struct dlp_scanner *scanner = dlp_scanner_new();

	if (!body || !scanner)
		return 1;
	fill_words(body, BODY, " ");
	measure(scanner, "words", body);
	fill_words(body, BODY, "\":\",");
	measure(scanner, "JSON", body);
	fill_words(body, BODY, "&==");
	measure(scanner, "form", body);
	fill_random(body, BODY, NULL);
	measure(scanner, "random bytes", body);
	fill_random(body, BODY, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
	measure(scanner, "base64", body);
	fill_random(body, BODY, "0123456789abcdef");
	measure(scanner, "hex digits", body);
	dlp_scanner_free(scanner);
	free(body);
	return 0;
}
