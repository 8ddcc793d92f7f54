/* SPDX-License-Identifier: Apache-2.0 */
/* bench_dlp: how fast the scanner of secrets passes over bodies without any, in 16 KiB pieces.
 * Prints GB/s of CPU time per kind of body. */
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"
#include "cpu.h"
#include "vethguard/dlp/scan.h"

#define PIECE 16384u
#define BODY (4u << 20)
#define ROUNDS 20

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
	body_of_words(body, BODY, " ", BODY_WORDS);
	measure(scanner, "words", body);
	body_of_words(body, BODY, "\":\",", BODY_WORDS);
	measure(scanner, "JSON", body);
	body_of_words(body, BODY, "&==", BODY_WORDS);
	measure(scanner, "form", body);
	body_of_random(body, BODY, NULL);
	measure(scanner, "random bytes", body);
	body_of_random(body, BODY, BODY_BASE64);
	measure(scanner, "base64", body);
	body_of_random(body, BODY, "0123456789abcdef");
	measure(scanner, "hex digits", body);
	dlp_scanner_free(scanner);
	free(body);
	return 0;
}
