/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of an HTTP/1.x message (RFC 9112 sections 3 and 4). */
#include "proxy/http/http1.h"

bool http1_refuse(struct http1 *h, uint16_t status, const char *why)
{
	if (!h->fault.why)
		h->fault = (struct http_fault){status, why};
	return false;
}

#define VERSION_BYTES 8 /* "HTTP/1.1" */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* An unknown minor version is read as 1.1 (RFC 9110 section 2.5). */
static bool read_version(struct http1 *h, struct slice text, uint8_t *version)
{
	if (text.n != VERSION_BYTES || memcmp(text.p, "HTTP/", 5) != 0 || !is_digit(text.p[5]) ||
	        text.p[6] != '.' || !is_digit(text.p[7]))
		return http1_refuse(h, HTTP_MALFORMED, "malformed start line");
	if (text.p[5] != '1')
		return http1_refuse(h, HTTP_VERSION_UNKNOWN, "HTTP version is neither 1.0 nor 1.1");
	*version = text.p[7] == '0' ? 10 : 11;
	return true;
}

/* Reads "method target HTTP/1.1", with single spaces. */
static bool read_request_line(struct http1 *h, struct slice line, struct http1_start *out)
{
	ptrdiff_t first = slice_find_byte(line, ' ');
	struct http_fault fault;
	struct slice rest;

	if (first <= 0 || line.n < (size_t)first + 1 + VERSION_BYTES + 2 ||
	        line.p[line.n - VERSION_BYTES - 1] != ' ')
		return http1_refuse(h, HTTP_MALFORMED, "malformed start line");
	out->method = slice_of(line.p, (size_t)first);
	rest = slice_of(line.p + first + 1, line.n - (size_t)first - 1);
	out->target = slice_of(rest.p, rest.n - VERSION_BYTES - 1);
	if (!read_version(
	            h, slice_of(rest.p + rest.n - VERSION_BYTES, VERSION_BYTES), &out->version))
		return false;
	fault = http_check_method(out->method);
	if (!fault.why)
		fault = http_check_target(out->target);
	return !fault.why || http1_refuse(h, fault.status, fault.why);
}

/* Reads "HTTP/1.1 200 reason"; the last space and the reason may be missing. */
static bool read_status_line(struct http1 *h, struct slice line, struct http1_start *out)
{
	const char *digits = line.p + VERSION_BYTES + 1;

	if (line.n < VERSION_BYTES + 4 || line.p[VERSION_BYTES] != ' ' ||
	        (line.n > VERSION_BYTES + 4 && digits[3] != ' ') || !is_digit(digits[0]) ||
	        !is_digit(digits[1]) || !is_digit(digits[2]))
		return http1_refuse(h, HTTP_MALFORMED, "malformed status line");
	if (!read_version(h, slice_of(line.p, VERSION_BYTES), &out->version))
		return false;
	out->status =
	        (uint16_t)((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0'));
	if (out->status < HTTP_STATUS_MIN)
		return http1_refuse(h, HTTP_MALFORMED, "status code out of range");
	out->reason = line.n > VERSION_BYTES + 5 ? slice_of(digits + 4, line.n - VERSION_BYTES - 5)
	                                         : SLICE("");
	return http_is_value(out->reason) ||
	       http1_refuse(h, HTTP_MALFORMED, "a control character in the reason phrase");
}

bool http1_read_start(struct http1 *h, struct slice line, struct http1_start *out)
{
	return h->response ? read_status_line(h, line, out) : read_request_line(h, line, out);
}

bool http1_start_line(struct http1 *h, struct slice line)
{
	struct http1_start start;

	return http1_read_start(h, line, &start);
}
