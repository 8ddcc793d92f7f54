/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dlp: any bytes as a text in which secrets are searched for, whole and in pieces, and as
 * parts of a URL. A key that is put into the text plain is found at any place.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/dlp/scan.h"

#define KEY " AKIAIOSFODNN7QXM3PLZ "
#define TEXT_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static void scan_pieces(struct dlp_scanner *scanner, struct slice text, size_t piece)
{
	const struct dlp_question question = {0};
	struct dlp_stream stream = {0};
	struct dlp_finding finding;

	for (size_t at = 0; at < text.n; at += piece) {
		size_t left = text.n - at;

		(void)dlp_stream_scan(&stream, scanner, &question,
		        slice_of(text.p + at, left < piece ? left : piece), &finding);
		must(stream.n <= DLP_OVERLAP);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dlp_question question = {0};
	static struct dlp_scanner *scanner;
	struct slice text = slice_of(data, size);
	char codings[DLP_CODINGS_TEXT_MAX];
	struct dlp_finding finding;
	uint8_t *with;
	size_t at;

	if (!scanner)
		scanner = dlp_scanner_new();
	if (!scanner || size > TEXT_MAX)
		return 0;
	if (dlp_scan(scanner, &question, text, &finding))
		must(dlp_format_find(slice_from_string(dlp_format_name(finding.format))) ==
		                finding.format &&
		        strlen(dlp_codings_text(&finding, codings)) < sizeof(codings));
	scan_pieces(scanner, text, 1 + size / 7);
	(void)dlp_entropy_host(text);
	(void)dlp_entropy_path(text);
	(void)dlp_entropy_query(text);
	with = malloc(size + sizeof(KEY));
	if (!with)
		return 0;
	at = size ? data[0] % size : 0;
	memcpy(with, data, at);
	memcpy(with + at, KEY, sizeof(KEY) - 1);
	memcpy(with + at + sizeof(KEY) - 1, data + at, size - at);
	must(dlp_scan(scanner, &question, slice_of(with, size + sizeof(KEY) - 1), &finding));
	free(with);
	return 0;
}
