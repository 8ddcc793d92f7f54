/* SPDX-License-Identifier: Apache-2.0 */
/* The parser looks for the head's end as bytes arrive, and parses the head once it is complete. */
#include <errno.h>

#include "vethguard/wire/proxy_head.h"
#include "wire/http/http_text.h"

#define AUTHORIZATION "proxy-authorization"

static void clear(struct proxy_head *out)
{
	*out = (struct proxy_head){
	        .method = SLICE(""), .target = SLICE(""), .authorization = SLICE(""), .why = ""};
	out->host = out->origin = out->preflight_method = out->preflight_fields = SLICE("");
	for (size_t i = 0; i < PROXY_KEY_FIELDS; i++)
		out->keys[i] = SLICE("");
}

static enum proxy_head_status bad(struct proxy_head *out, unsigned status, const char *why)
{
	clear(out);
	out->status = status;
	out->why = why;
	return PROXY_HEAD_BAD;
}

static bool is_token(char c)
{
	return slice_token_length(slice_of(&c, 1)) == 1;
}

/* Takes the text before the next space off *line. */
static struct slice take_word(struct slice *line)
{
	ptrdiff_t space = slice_find_byte(*line, ' ');
	size_t n = space < 0 ? line->n : (size_t)space;
	struct slice word = slice_of(line->p, n);
	size_t used = space < 0 ? n : n + 1;

	*line = slice_of(line->p + used, line->n - used);
	return word;
}

static bool names_a_url(struct slice target)
{
	static const struct slice scheme = {"http://", 7};

	return target.n > scheme.n &&
	       slice_equals_ignoring_case(slice_of(target.p, scheme.n), scheme);
}

static enum proxy_head_status read_request_line(struct slice line, struct proxy_head *out)
{
	out->method = take_word(&line);
	out->target = take_word(&line);
	if (!out->method.n || slice_token_length(out->method) != out->method.n ||
	        !http_text_is_visible(out->target))
		return bad(out, 400, "the request line is malformed");
	if (!slice_equals(line, SLICE("HTTP/1.1")) && !slice_equals(line, SLICE("HTTP/1.0")))
		return bad(out, 505, "the gateway speaks HTTP/1.1");
	out->last = line.p[line.n - 1] == '0';
	if (slice_equals(out->method, SLICE("CONNECT")))
		out->form = PROXY_FORM_CONNECT;
	else if (names_a_url(out->target))
		out->form = PROXY_FORM_ABSOLUTE;
	else if (out->target.p[0] == '/')
		out->form = PROXY_FORM_ORIGIN;
	else
		return bad(out, 400,
		        "the gateway takes CONNECT, requests for a whole http:// URL, and base "
		        "URLs");
	return PROXY_HEAD_DONE;
}

/* Fields that may appear once, and fields whose values are noted. */
enum field {
	FIELD_PROXY_AUTHORIZATION,
	FIELD_HOST,
	FIELD_CONTENT_LENGTH,
	FIELD_TRANSFER_ENCODING,
	FIELD_ONCE, /* those above */
	FIELD_AUTHORIZATION = FIELD_ONCE,
	FIELD_X_API_KEY,
	FIELD_X_GOOG_API_KEY,
	FIELD_ORIGIN,
	FIELD_PREFLIGHT_METHOD,
	FIELD_PREFLIGHT_FIELDS,
	FIELD_CONNECTION,
	FIELD_COUNT
};

struct fields {
	struct slice values[FIELD_COUNT];
	bool seen[FIELD_COUNT];
	bool closes, upgrades, keys_twice;
};

static const struct {
	struct slice name;
	const char *twice;
} known_fields[FIELD_COUNT] = {
        [FIELD_PROXY_AUTHORIZATION] = {{AUTHORIZATION, sizeof(AUTHORIZATION) - 1},
                "Proxy-Authorization appears twice"},
        [FIELD_HOST] = {{"host", 4}, "Host appears twice"},
        [FIELD_CONTENT_LENGTH] = {{"content-length", 14}, "Content-Length appears twice"},
        [FIELD_TRANSFER_ENCODING] = {{"transfer-encoding", 17}, "Transfer-Encoding appears twice"},
        [FIELD_AUTHORIZATION] = {{"authorization", 13}, NULL},
        [FIELD_X_API_KEY] = {{"x-api-key", 9}, NULL},
        [FIELD_X_GOOG_API_KEY] = {{"x-goog-api-key", 14}, NULL},
        [FIELD_ORIGIN] = {{"origin", 6}, NULL},
        [FIELD_PREFLIGHT_METHOD] = {{"access-control-request-method", 29}, NULL},
        [FIELD_PREFLIGHT_FIELDS] = {{"access-control-request-headers", 30}, NULL},
        [FIELD_CONNECTION] = {{"connection", 10}, NULL},
};

static void read_connection(struct slice list, struct fields *f)
{
	while (list.n) {
		ptrdiff_t comma = slice_find_byte(list, ',');
		size_t n = comma < 0 ? list.n : (size_t)comma;
		struct slice option = slice_trim(slice_of(list.p, n));

		f->closes |= slice_equals_ignoring_case(option, SLICE("close"));
		f->upgrades |= slice_equals_ignoring_case(option, SLICE("upgrade"));
		n += comma < 0 ? 0 : 1;
		list = slice_of(list.p + n, list.n - n);
	}
}

static const char *note(struct slice name, struct slice value, struct fields *f)
{
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (!slice_equals_ignoring_case(name, known_fields[i].name))
			continue;
		if (i < FIELD_ONCE && f->seen[i])
			return known_fields[i].twice;
		f->keys_twice |= i <= FIELD_X_GOOG_API_KEY && f->seen[i];
		f->seen[i] = true;
		f->values[i] = value;
		if (i == FIELD_CONNECTION)
			read_connection(value, f);
		break;
	}
	return NULL;
}

static enum proxy_head_status read_body(const struct fields *f, bool old, struct proxy_head *out)
{
	const bool counted = f->seen[FIELD_CONTENT_LENGTH];

	if (f->seen[FIELD_TRANSFER_ENCODING]) {
		if (counted || old)
			return bad(out, 400, "Transfer-Encoding is not alone, or in HTTP/1.0");
		if (!slice_equals_ignoring_case(
		            f->values[FIELD_TRANSFER_ENCODING], SLICE("chunked")))
			return bad(out, 501, "Transfer-Encoding is not chunked");
		out->body = PROXY_BODY_CHUNKED;
	} else if (counted) {
		if (!slice_to_u64(
		            f->values[FIELD_CONTENT_LENGTH], HTTP_TEXT_LENGTH_MAX, &out->length))
			return bad(out, 400, "Content-Length is not a number");
		out->body = out->length ? PROXY_BODY_LENGTH : PROXY_BODY_NONE;
	}
	return PROXY_HEAD_DONE;
}

static enum proxy_head_status take_fields(const struct fields *f, struct proxy_head *out)
{
	const bool old = out->last;

	out->authorization = f->values[FIELD_PROXY_AUTHORIZATION];
	out->host = f->values[FIELD_HOST];
	for (size_t i = 0; i < PROXY_KEY_FIELDS; i++)
		out->keys[i] = f->values[FIELD_AUTHORIZATION + i];
	out->keys_twice = f->keys_twice;
	out->origin = f->values[FIELD_ORIGIN];
	out->preflight_method = f->values[FIELD_PREFLIGHT_METHOD];
	out->preflight_fields = f->values[FIELD_PREFLIGHT_FIELDS];
	out->upgrade = out->form == PROXY_FORM_CONNECT || f->upgrades;
	out->last = old || f->closes || out->upgrade;
	return read_body(f, old, out);
}

static enum proxy_head_status read_fields(struct slice rest, struct proxy_head *out)
{
	struct fields f = {.closes = false};
	size_t count = 0;

	for (size_t i = 0; i < FIELD_COUNT; i++)
		f.values[i] = SLICE("");
	for (struct slice line = http_text_take_line(&rest); line.n;
	        line = http_text_take_line(&rest)) {
		struct slice name, value;
		const char *why;

		if (!http_text_read_field(line, &name, &value))
			return bad(out, 400, "a field of the head is malformed");
		if (++count > PROXY_HEAD_FIELDS_MAX)
			return bad(out, 431, "the head has too many fields");
		why = note(name, value, &f);
		if (why)
			return bad(out, 400, why);
	}
	return take_fields(&f, out);
}

enum proxy_head_status proxy_head_parse(
        const uint8_t *p, size_t n, size_t *looked, struct proxy_head *out)
{
	enum proxy_head_status status;
	struct slice rest;
	size_t end;

	clear(out);
	if (n && !is_token((char)p[0]))
		return bad(out, 400, "this is not an HTTP request");
	end = http_text_head_end(p, n < PROXY_HEAD_MAX ? n : PROXY_HEAD_MAX, looked);
	if (end == SIZE_MAX)
		return bad(out, 400, "a line of the head ends without CR");
	if (end == 0)
		return n < PROXY_HEAD_MAX ? PROXY_HEAD_MORE : bad(out, 431, "the head is too long");
	rest = slice_of(p, end);
	status = read_request_line(http_text_take_line(&rest), out);
	if (status == PROXY_HEAD_DONE)
		status = read_fields(rest, out);
	if (status == PROXY_HEAD_DONE)
		out->used = end;
	return status;
}

bool proxy_head_next_field(const uint8_t *p, const struct proxy_head *head, size_t *at,
        struct slice *line, struct slice *name)
{
	struct slice rest = slice_of(p + *at, head->used - *at), value;

	if (*at == 0) /* the request line */
		*at += http_text_take_line(&rest).n + 2;
	*line = http_text_take_line(&rest);
	if (!line->n)
		return false;
	http_text_read_field(*line, name, &value);
	line->n += 2;
	*at += line->n;
	return true;
}

int proxy_head_write(const uint8_t *p, const struct proxy_head *head, struct buf *out)
{
	struct slice rest = slice_of(p, head->used), line, name;
	size_t at = 0;
	int rc;

	line = http_text_take_line(&rest);
	rc = buf_append_slice(out, slice_of(line.p, line.n + 2));
	while (!rc && proxy_head_next_field(p, head, &at, &line, &name))
		if (!slice_equals_ignoring_case(name, SLICE(AUTHORIZATION)))
			rc = buf_append_slice(out, line);
	if (!rc && head->last)
		rc = buf_append_slice(out, SLICE("Connection: close\r\n"));
	return rc ? rc : buf_append_slice(out, SLICE("\r\n"));
}
