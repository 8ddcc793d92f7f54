/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan: searches what a sandbox sends for secrets of known formats (formats.h): as they are written, and inside of up
 * to DLP_DEPTH encodings, one in the other: base64 of either alphabet at any alignment and over lines, hex digits
 * (also with a sign between), percent-encoding, escapes of JSON and of programming languages, invisible characters
 * between, gzip and zlib.
 *
 * A text with the mark of placeholders ("vethguard") is none of these: credential/store.h finds placeholders.
 */
#ifndef VETHGUARD_DLP_SCAN_H
#define VETHGUARD_DLP_SCAN_H

#include "vethguard/dlp/formats.h"

#define DLP_DEPTH 3              /* encodings inside of each other */
#define DLP_OVERLAP 2048         /* bytes of a piece that are searched again with the next one */
#define DLP_INFLATED_MAX 4194304 /* bytes that all compressed data in one piece inflate to */

enum dlp_coding {
	DLP_PLAIN,
	DLP_BASE64,
	DLP_HEX,
	DLP_PERCENT,
	DLP_ESCAPES,
	DLP_INVISIBLE,
	DLP_COMPRESSED,
	DLP_CODING_COUNT
};

/* What is searched for. */
struct dlp_question {
	const struct dlp_set *except; /* NULL: nothing is excepted */
	/* NULL, or true for a format that may be there after all. It is called for what is found. */
	bool (*passes)(void *context, uint32_t format);
	void *context;
};

struct dlp_finding {
	uint32_t format;                    /* or DLP_NONE */
	enum dlp_coding codings[DLP_DEPTH]; /* the outermost first; DLP_PLAIN: no further one */
};

/* Writes the codings ("base64, in gzip") into out, or "". Returns out. */
#define DLP_CODINGS_TEXT_MAX 96
const char *dlp_codings_text(const struct dlp_finding *finding, char out[DLP_CODINGS_TEXT_MAX]);

struct dlp_scanner;                        /* room for decoded text; one for a worker */
struct dlp_scanner *dlp_scanner_new(void); /* NULL: no memory */
void dlp_scanner_free(struct dlp_scanner *scanner);

/* Searches the text. Returns true, and the first finding. */
bool dlp_scan(
        struct dlp_scanner *scanner, const struct dlp_question *question, struct slice text, struct dlp_finding *out);

/* A text that comes in pieces. Zero it before the first one. The last DLP_OVERLAP bytes of each piece are kept. */
struct dlp_stream {
	size_t n;
	uint8_t end[DLP_OVERLAP];
};
bool dlp_stream_scan(struct dlp_stream *stream, struct dlp_scanner *scanner, const struct dlp_question *question,
        struct slice piece, struct dlp_finding *out);

/* Encoded data in parts of a URL, as formats of their own (entropy.c). host: canonical. target: path and query as
 * sent. DLP_NONE: there is none. */
uint32_t dlp_entropy_host(struct slice host);
uint32_t dlp_entropy_path(struct slice path);
uint32_t dlp_entropy_query(struct slice query);

#endif
