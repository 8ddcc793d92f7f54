/* SPDX-License-Identifier: Apache-2.0 */
/* range: the values of Range and Content-Range for one part in bytes (RFC 9110 section 14). */
#ifndef VETHGUARD_SRC_PROXY_HTTP_RANGE_H
#define VETHGUARD_SRC_PROXY_HTTP_RANGE_H

#include "vethguard/base/slice.h"

/* Positions and lengths are at most this, so sums of two do not overflow. */
#define HTTP_POSITION_MAX (UINT64_C(1) << 62)
#define HTTP_RANGE_TEXT_MAX 80 /* bytes of either value as text, with its NUL */

/* What a request asks for: "A-B", both included; "A-", to the end; or "-N", the last N bytes. */
struct http_range {
	uint64_t first, last;
	bool open;       /* to the end: last is not set */
	uint64_t suffix; /* N; 0: not of this kind */
};

/* What a response holds: bytes first to last, of total or of unknown length. */
struct http_content_range {
	uint64_t first, last, total;
	bool has_total;
};

/* Reads the value of Range. Returns false if it is not one range in bytes. */
bool http_range_read(struct slice value, struct http_range *range);
/* Reads the value of Content-Range. Returns false if it is not one part in bytes. */
bool http_content_range_read(struct slice value, struct http_content_range *range);
/* Write these values. Each returns text as a slice. */
struct slice http_range_text(const struct http_range *range, char text[HTTP_RANGE_TEXT_MAX]);
struct slice http_content_range_text(
        const struct http_content_range *range, char text[HTTP_RANGE_TEXT_MAX]);

#endif
