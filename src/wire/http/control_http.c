/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a head (its empty line) is found first, then the head is read line by line. Lines end
 * in CR LF and contain printable ASCII, tabs and, in values, bytes from 0x80 on; anything else
 * makes the message malformed.
 */
#include <ctype.h>
#include <stdio.h>

#include "vethguard/wire/control_http.h"
#include "wire/http/http_text.h"

#define BAD_REQUEST 400
#define LENGTH_REQUIRED 411
#define URI_TOO_LONG 414
#define EXPECTATION_FAILED 417
#define FIELDS_TOO_LARGE 431
#define VERSION_NOT_SUPPORTED 505

static bool is_token(struct slice s)
{
	return s.n > 0 && slice_token_length(s) == s.n;
}

static bool is_target(struct slice s)
{
	return http_text_is_visible(s) && s.p[0] == '/';
}

/* Takes the next line without its CR LF. rest has at least one line, because the head is
 * complete. */
static struct slice next_line(struct slice *rest)
{
	const char *end = memmem(rest->p, rest->n, "\r\n", 2);
	struct slice line = slice_of(rest->p, (size_t)(end - rest->p));

	*rest = slice_of(end + 2, rest->n - line.n - 2);
	return line;
}

/* Takes the text up to the first space; *rest goes on behind the space. False: there is no
 * space. */
static bool next_word(struct slice *rest, struct slice *word)
{
	ptrdiff_t space = slice_find_byte(*rest, ' ');

	if (space < 0)
		return false;
	*word = slice_of(rest->p, (size_t)space);
	*rest = slice_of(rest->p + space + 1, rest->n - (size_t)space - 1);
	return true;
}

static int take_version(struct slice version, struct control_head *head)
{
	head->closes = slice_equals(version, SLICE("HTTP/1.0"));
	head->needs_host = slice_equals(version, SLICE("HTTP/1.1"));
	if (head->closes || head->needs_host)
		return CONTROL_HEAD_WHOLE;
	return slice_starts_with(version, SLICE("HTTP/")) ? VERSION_NOT_SUPPORTED : BAD_REQUEST;
}

static int request_line(struct slice line, struct control_head *head)
{
	if (!next_word(&line, &head->method) || !is_token(head->method) ||
	        !next_word(&line, &head->target))
		return BAD_REQUEST;
	if (head->target.n > CONTROL_TARGET_MAX)
		return URI_TOO_LONG;
	return is_target(head->target) ? take_version(line, head) : BAD_REQUEST;
}

static int status_line(struct slice line, struct control_head *head)
{
	struct slice version, code;
	uint64_t status;

	if (!next_word(&line, &version) || take_version(version, head) != CONTROL_HEAD_WHOLE)
		return BAD_REQUEST;
	if (!next_word(&line, &code)) /* the reason may be missing together with its space */
		code = line;
	if (code.n != 3 || !slice_to_u64(code, 599, &status) || status < 100 ||
	        !http_text_is_value(line))
		return BAD_REQUEST;
	head->status = (unsigned)status;
	return CONTROL_HEAD_WHOLE;
}

static int take_length(struct slice value, struct control_head *head)
{
	if (head->has_length || !slice_to_u64(value, UINT64_MAX / 2, &head->length))
		return BAD_REQUEST;
	head->has_length = true;
	return CONTROL_HEAD_WHOLE;
}

/* The answer is the same for every host, but an intermediary could be misled by two names, or by
 * something that is not a name. */
static int take_host(struct slice value, struct control_head *head)
{
	static const char others[] = "-._~!$&'()*+;=:[]%";

	if (head->has_host)
		return BAD_REQUEST;
	for (size_t i = 0; i < value.n; i++)
		if (!isalnum((unsigned char)value.p[i]) &&
		        !memchr(others, value.p[i], sizeof(others) - 1))
			return BAD_REQUEST;
	head->has_host = true;
	return CONTROL_HEAD_WHOLE;
}

static int field(struct slice line, struct control_head *head)
{
	struct slice name, value;

	if (!http_text_read_field(line, &name, &value))
		return BAD_REQUEST;
	if (slice_equals_ignoring_case(name, SLICE("content-length")))
		return take_length(value, head);
	if (slice_equals_ignoring_case(name, SLICE("host")))
		return take_host(value, head);
	if (slice_equals_ignoring_case(name, SLICE("transfer-encoding")))
		return LENGTH_REQUIRED;
	if (slice_equals_ignoring_case(name, SLICE("content-type")))
		head->content_type = value;
	if (slice_equals_ignoring_case(name, SLICE("connection")) &&
	        slice_equals_ignoring_case(value, SLICE("close")))
		head->closes = true;
	if (slice_equals_ignoring_case(name, SLICE("expect"))) {
		if (!slice_equals_ignoring_case(value, SLICE("100-continue")))
			return EXPECTATION_FAILED;
		head->expects_continue = true;
	}
	return CONTROL_HEAD_WHOLE;
}

static int read_head(struct slice bytes, struct control_head *head,
        int (*first)(struct slice line, struct control_head *head))
{
	struct slice searched =
	        slice_of(bytes.p, bytes.n < CONTROL_HEAD_MAX ? bytes.n : CONTROL_HEAD_MAX);
	const char *end = searched.n ? memmem(searched.p, searched.n, "\r\n\r\n", 4) : NULL;
	struct slice rest;
	size_t fields = 0;
	int rc;

	*head = (struct control_head){0};
	if (!end)
		return bytes.n < CONTROL_HEAD_MAX ? CONTROL_HEAD_MORE : FIELDS_TOO_LARGE;
	head->size = (size_t)(end - bytes.p) + 4;
	rest = slice_of(bytes.p, head->size - 2);
	rc = first(next_line(&rest), head);
	while (rc == CONTROL_HEAD_WHOLE && rest.n > 0)
		rc = ++fields > CONTROL_FIELDS_MAX ? FIELDS_TOO_LARGE
		                                   : field(next_line(&rest), head);
	return rc;
}

int control_head_request(struct slice bytes, struct control_head *head)
{
	int rc = read_head(bytes, head, request_line);

	return rc == CONTROL_HEAD_WHOLE && head->needs_host && !head->has_host ? BAD_REQUEST : rc;
}

int control_head_response(struct slice bytes, struct control_head *head)
{
	int rc = read_head(bytes, head, status_line);

	return rc == CONTROL_HEAD_WHOLE || rc == CONTROL_HEAD_MORE ? rc : BAD_REQUEST;
}

static const struct {
	unsigned status;
	const char *name;
	const char *type; /* last part of a problem's type; NULL: not a problem */
} statuses[] = {
        {200, "OK", NULL},
        {201, "Created", NULL},
        {400, "Bad Request", "malformed"},
        {403, "Forbidden", "forbidden"},
        {404, "Not Found", "not-found"},
        {405, "Method Not Allowed", "method"},
        {408, "Request Timeout", "timeout"},
        {409, "Conflict", "conflict"},
        {411, "Length Required", "malformed"},
        {413, "Content Too Large", "too-large"},
        {414, "URI Too Long", "too-large"},
        {415, "Unsupported Media Type", "media-type"},
        {417, "Expectation Failed", "malformed"},
        {422, "Unprocessable Content", "invalid"},
        {431, "Request Header Fields Too Large", "too-large"},
        {500, "Internal Server Error", "failed"},
        {503, "Service Unavailable", "busy"},
        {505, "HTTP Version Not Supported", "malformed"},
};
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static size_t status_index(unsigned status)
{
	size_t i = 0;

	while (i < STATUSES && statuses[i].status != status)
		i++;
	return i;
}

const char *control_status_name(unsigned status)
{
	size_t i = status_index(status);

	return i < STATUSES ? statuses[i].name : "Unknown";
}

void control_problem_begin(struct json *j, struct buf *out, unsigned status, struct slice detail)
{
	size_t i = status_index(status);
	const char *kind = i < STATUSES && statuses[i].type ? statuses[i].type : "failed";
	char type[64];

	snprintf(type, sizeof(type), "urn:vethguard:problem:control:%s", kind);
	json_begin(j, out);
	json_object(j, NULL);
	json_literal(j, "type", type);
	json_literal(j, "title", control_status_name(status));
	json_uint(j, "status", status);
	json_string(j, "detail", detail, 0);
}
