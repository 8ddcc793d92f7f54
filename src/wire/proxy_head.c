/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser looks for the head's end as bytes arrive, and parses the head once it is complete.
 * Lines end with CR LF only; there is no folding. A value is visible ASCII, space, tab and bytes
 * from 0x80 on (RFC 9110 section 5.5).
 */
#include <errno.h>

#include "vethguard/base/base64.h"
#include "vethguard/wire/proxy_head.h"

#define AUTHORIZATION "proxy-authorization"
#define CLOSE "Connection: close\r\n\r\n"

static enum proxy_head_status bad(struct proxy_head *out, unsigned status, const char *why)
{
	*out = (struct proxy_head){.status = status, .why = why};
	return PROXY_HEAD_BAD;
}

static bool is_token(char c)
{
	return slice_token_length(slice_of(&c, 1)) == 1;
}

/* Looks for the end from *looked on. Returns the head's length, 0 if the end has not come, or
 * SIZE_MAX if a line ends wrongly. */
static size_t find_end(const uint8_t *p, size_t n, size_t *looked)
{
	size_t i = *looked;

	for (; i < n; i++) {
		if (p[i] != '\n')
			continue;
		if (i == 0 || p[i - 1] != '\r')
			return SIZE_MAX;
		if (i >= 3 && p[i - 2] == '\n')
			return i + 1;
	}
	*looked = n;
	return 0;
}

/* Takes the next line off *rest, without its CR LF. */
static struct slice take_line(struct slice *rest)
{
	ptrdiff_t end = slice_find_byte(*rest, '\n');
	struct slice line = slice_of(rest->p, end > 0 ? (size_t)end - 1 : 0);

	*rest = slice_of(rest->p + end + 1, rest->n - (size_t)end - 1);
	return line;
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

static bool is_visible(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] <= 0x20 || (uint8_t)s.p[i] >= 0x7f)
			return false;
	return s.n > 0;
}

static bool is_value(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (((uint8_t)s.p[i] < 0x20 && s.p[i] != '\t') || (uint8_t)s.p[i] == 0x7f)
			return false;
	return true;
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
	        !is_visible(out->target))
		return bad(out, 400, "the request line is malformed");
	if (!slice_equals(line, SLICE("HTTP/1.1")) && !slice_equals(line, SLICE("HTTP/1.0")))
		return bad(out, 505, "the proxy speaks HTTP/1.1");
	if (!slice_equals(out->method, SLICE("CONNECT")) && !names_a_url(out->target))
		return bad(out, 400,
		        "this is a proxy: it takes CONNECT, and requests for a whole http:// URL");
	return PROXY_HEAD_DONE;
}

/* Returns the field's name, and its value in *value; an empty name means that the line is
 * malformed. */
static struct slice field_name(struct slice line, struct slice *value)
{
	size_t n = slice_token_length(line);

	if (n == 0 || n == line.n || line.p[n] != ':')
		return SLICE("");
	*value = slice_trim(slice_of(line.p + n + 1, line.n - n - 1));
	return is_value(*value) ? slice_of(line.p, n) : SLICE("");
}

static enum proxy_head_status read_fields(struct slice rest, struct proxy_head *out)
{
	bool seen = false;
	size_t count = 0;

	for (struct slice line = take_line(&rest); line.n; line = take_line(&rest)) {
		struct slice value, name = field_name(line, &value);

		if (!name.n)
			return bad(out, 400, "a field of the head is malformed");
		if (++count > PROXY_HEAD_FIELDS_MAX)
			return bad(out, 431, "the head has too many fields");
		if (!slice_equals_ignoring_case(name, SLICE(AUTHORIZATION)))
			continue;
		if (seen)
			return bad(out, 400, "Proxy-Authorization is there twice");
		seen = true;
		out->authorization = value;
	}
	return PROXY_HEAD_DONE;
}

enum proxy_head_status proxy_head_parse(
        const uint8_t *p, size_t n, size_t *looked, struct proxy_head *out)
{
	enum proxy_head_status status;
	struct slice rest;
	size_t end;

	*out = (struct proxy_head){
	        .method = SLICE(""), .target = SLICE(""), .authorization = SLICE(""), .why = ""};
	if (n && !is_token((char)p[0]))
		return bad(out, 400, "this is no request");
	end = find_end(p, n < PROXY_HEAD_MAX ? n : PROXY_HEAD_MAX, looked);
	if (end == SIZE_MAX)
		return bad(out, 400, "a line of the head ends without CR");
	if (end == 0)
		return n < PROXY_HEAD_MAX ? PROXY_HEAD_MORE : bad(out, 431, "the head is too long");
	rest = slice_of(p, end);
	status = read_request_line(take_line(&rest), out);
	if (status == PROXY_HEAD_DONE)
		status = read_fields(rest, out);
	if (status == PROXY_HEAD_DONE)
		out->used = end;
	return status;
}

int proxy_head_write(const uint8_t *p, const struct proxy_head *head, struct buf *out)
{
	struct slice rest = slice_of(p, head->used), value;
	int rc = 0;

	for (struct slice line = take_line(&rest); line.n && !rc; line = take_line(&rest)) {
		if (slice_equals_ignoring_case(field_name(line, &value), SLICE(AUTHORIZATION)))
			continue;
		rc = buf_append_slice(out, slice_of(line.p, line.n + 2));
	}
	return rc ? rc : buf_append_slice(out, SLICE(CLOSE));
}

/* Proofs. */

static bool take_token(struct slice token, struct proxy_proof *out)
{
	if (token.n > sizeof(out->text) || !is_visible(token))
		return false;
	memcpy(out->text, token.p, token.n);
	out->n = token.n;
	return true;
}

bool proxy_proof_of_pair(struct slice user, struct slice password, struct proxy_proof *out)
{
	out->n = 0;
	return take_token(password.n ? password : user, out);
}

static bool read_basic(struct slice text, struct proxy_proof *out)
{
	char pair[PROXY_PROOF_MAX + 256];
	ssize_t n = base64_decode(text, BASE64_STRICT, pair, sizeof(pair));
	ptrdiff_t colon;
	bool good;

	colon = n > 0 ? slice_find_byte(slice_of(pair, (size_t)n), ':') : -1;
	good = colon >= 0 && proxy_proof_of_pair(slice_of(pair, (size_t)colon),
	                             slice_of(pair + colon + 1, (size_t)(n - colon - 1)), out);
	explicit_bzero(pair, sizeof(pair));
	return good;
}

bool proxy_proof_read(struct slice authorization, struct proxy_proof *out)
{
	struct slice scheme = take_word(&authorization);

	out->n = 0;
	authorization = slice_trim(authorization);
	if (slice_equals_ignoring_case(scheme, SLICE("basic")))
		return read_basic(authorization, out);
	return slice_equals_ignoring_case(scheme, SLICE("bearer")) &&
	       take_token(authorization, out);
}
