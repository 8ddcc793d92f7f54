/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is collected until it ends; data goes into the output at once, behind a signature that is
 * written once the data is whole. The trailer's lines end in LF or CRLF, and empty lines may
 * precede or separate them: clients differ, and AWS's documentation differs from its own examples.
 */
#include <errno.h>
#include <string.h>

#include "vethguard/sign/aws_chunked.h"

#define EXTENSION ";chunk-signature="
#define TRAILER_SIGNATURE "x-amz-trailer-signature"
#define OUT_MAX (AWS_CHUNK_MAX + 2 * AWS_CHUNK_INPUT_MAX)

int aws_chunked_init(struct aws_chunked *c, struct hmac *hmac, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, const char seed[SIGV4_HEX + 1], bool with_trailer)
{
	memset(c, 0, sizeof(*c));
	buf_init(&c->out, OUT_MAX);
	buf_init(&c->trailer, AWS_CHUNK_TRAILER_MAX);
	if (scope->region.n > SIGV4_REGION_MAX || scope->service.n > SIGV4_SERVICE_MAX)
		return -EINVAL;
	c->hmac = hmac;
	c->with_trailer = with_trailer;
	c->scope = *scope;
	memcpy(c->names, scope->region.p, scope->region.n);
	memcpy(c->names + SIGV4_REGION_MAX, scope->service.p, scope->service.n);
	c->scope.region.p = c->names;
	c->scope.service.p = c->names + SIGV4_REGION_MAX;
	memcpy(c->signature, seed, sizeof(c->signature));
	return secret_copy(&c->key, key, HMAC_BYTES);
}

void aws_chunked_fini(struct aws_chunked *c)
{
	secret_free(&c->key);
	buf_fini(&c->out);
	buf_fini(&c->trailer);
}

static int fail(struct aws_chunked *c, int rc, const char *why)
{
	c->why = why;
	return rc;
}

static int put(struct aws_chunked *c, const void *p, size_t n)
{
	int rc = buf_append(&c->out, p, n);

	return rc ? fail(c, rc, "there is no memory for a chunk of the body") : 0;
}

/* Releases everything in the output for sending. */
static void release(struct aws_chunked *c)
{
	c->ready = c->out.len;
}

static bool is_hex(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (slice_hex_digit(s.p[i]) < 0)
			return false;
	return true;
}

/* --- chunks --- */

static int sign_chunk(struct aws_chunked *c)
{
	uint8_t *from = buf_bytes(&c->out) + c->ready;
	struct slice data = slice_of(from + c->data_at, c->out.len - c->ready - c->data_at);

	if (sigv4_sign_chunk(c->hmac, c->key.p, &c->scope, data, c->signature) < 0)
		return fail(c, -EIO, "a chunk of the body could not be signed");
	memcpy(from + c->signature_at, c->signature, SIGV4_HEX);
	return 0;
}

/* Takes the first line of a chunk, without its line end. */
static int take_size(struct aws_chunked *c, struct slice line)
{
	static const char malformed[] = "the body is not in signed chunks, as its request says";
	struct slice extension = SLICE(EXTENSION);
	ptrdiff_t n = slice_find_byte(line, ';');
	size_t size = 0;
	int rc;

	if (n <= 0 || n > 8 || !is_hex(slice_of(line.p, (size_t)n)) ||
	        !slice_starts_with(slice_of(line.p + n, line.n - (size_t)n), extension) ||
	        line.n != (size_t)n + extension.n + SIGV4_HEX ||
	        !is_hex(slice_of(line.p + n + extension.n, SIGV4_HEX)))
		return fail(c, -EBADMSG, malformed);
	for (ptrdiff_t i = 0; i < n; i++)
		size = size << 4 | (size_t)slice_hex_digit(line.p[i]);
	if (size > AWS_CHUNK_MAX)
		return fail(c, -EFBIG,
		        "a chunk of the body has more than 1 MiB, and a chunk is kept until it is "
		        "signed: let the client send smaller ones");
	rc = put(c, line.p, line.n);
	if (rc == 0)
		rc = put(c, "\r\n", 2);
	c->signature_at = (size_t)n + extension.n;
	c->data_at = line.n + 2;
	c->left = size;
	if (rc == 0 && size == 0) {
		rc = sign_chunk(c);
		if (c->with_trailer) /* without a trailer, the last line waits for the body's end */
			release(c);
	}
	c->expects = size              ? AWS_CHUNKED_DATA
	             : c->with_trailer ? AWS_CHUNKED_TRAILER
	                               : AWS_CHUNKED_LAST;
	return rc;
}

static size_t take_data(struct aws_chunked *c, const uint8_t *p, size_t n, int *rc)
{
	if (n > c->left)
		n = c->left;
	*rc = put(c, p, n);
	c->left -= n;
	if (*rc == 0 && c->left == 0) {
		*rc = sign_chunk(c);
		c->expects = AWS_CHUNKED_DATA_END;
	}
	return n;
}

/* --- the trailer --- */

/* Adds a line as it is signed: the name in lower case, no blanks around the value. */
static int add_trailer(struct aws_chunked *c, struct slice name, struct slice value)
{
	char small[AWS_CHUNK_LINE_MAX];
	int rc;

	for (size_t i = 0; i < name.n; i++)
		small[i] =
		        (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] | 0x20 : name.p[i]);
	rc = buf_append(&c->trailer, small, name.n);
	if (rc == 0)
		rc = buf_append(&c->trailer, ":", 1);
	if (rc == 0)
		rc = buf_append_slice(&c->trailer, slice_trim(value));
	if (rc == 0)
		rc = buf_append(&c->trailer, "\n", 1);
	return rc ? fail(c, -EBADMSG, "the trailer of the body is too long") : 0;
}

/* line: with its line end, which is sent on as it is. */
static int take_trailer(struct aws_chunked *c, struct slice line)
{
	size_t end = line.n > 1 && line.p[line.n - 2] == '\r' ? 2 : 1;
	ptrdiff_t colon = slice_find_byte(line, ':');
	struct slice name = slice_of(line.p, colon < 0 ? 0 : (size_t)colon);
	int rc;

	if (line.n == end) {
		rc = put(c, line.p, line.n);
		release(c);
		return rc;
	}
	if (!name.n || slice_token_length(name) != name.n)
		return fail(c, -EBADMSG, "the trailer of the body has a line that is not a field");
	if (!slice_equals_ignoring_case(name, SLICE(TRAILER_SIGNATURE))) {
		rc = add_trailer(c, name, slice_of(name.p + name.n + 1, line.n - end - name.n - 1));
		return rc ? rc : put(c, line.p, line.n);
	}
	if (line.n != name.n + 1 + SIGV4_HEX + end ||
	        !is_hex(slice_of(line.p + name.n + 1, SIGV4_HEX)))
		return fail(c, -EBADMSG, "the signature of the body's trailer is not a signature");
	if (sigv4_sign_trailer(c->hmac, c->key.p, &c->scope, buf_slice(&c->trailer), c->signature) <
	        0)
		return fail(c, -EIO, "the trailer of the body could not be signed");
	rc = put(c, line.p, name.n + 1);
	if (rc == 0)
		rc = put(c, c->signature, SIGV4_HEX);
	if (rc == 0)
		rc = put(c, line.p + line.n - end, end);
	c->expects = AWS_CHUNKED_LAST;
	release(c);
	return rc;
}

/* --- lines --- */

static int take_line(struct aws_chunked *c, struct slice line)
{
	bool crlf = line.n > 1 && line.p[line.n - 2] == '\r';
	int rc;

	if (c->expects == AWS_CHUNKED_TRAILER)
		return take_trailer(c, line);
	if (!crlf)
		return fail(c, -EBADMSG, "a line of the body's chunks does not end in CR LF");
	if (c->expects == AWS_CHUNKED_SIZE)
		return take_size(c, slice_of(line.p, line.n - 2));
	if (line.n != 2)
		return fail(c, -EBADMSG, "a chunk of the body has more data than it says");
	rc = put(c, line.p, line.n);
	release(c);
	c->expects = c->expects == AWS_CHUNKED_DATA_END ? AWS_CHUNKED_SIZE : AWS_CHUNKED_DONE;
	return rc;
}

/* Adds bytes to the line, and takes the line when it ends. */
static size_t collect(struct aws_chunked *c, const uint8_t *p, size_t n, int *rc)
{
	const uint8_t *lf = memchr(p, '\n', n);
	size_t taken = lf ? (size_t)(lf - p) + 1 : n;

	*rc = 0;
	if (taken > sizeof(c->line) - c->line_n) {
		*rc = fail(c, -EBADMSG, "a line of the body's chunks is too long");
		return n;
	}
	memcpy(c->line + c->line_n, p, taken);
	c->line_n += taken;
	if (lf) {
		struct slice line = slice_of(c->line, c->line_n);

		c->line_n = 0;
		*rc = take_line(c, line);
	}
	return taken;
}

int aws_chunked_take(struct aws_chunked *c, const uint8_t *p, size_t n)
{
	int rc = c->why ? -EBADMSG : 0;

	if (n > AWS_CHUNK_INPUT_MAX)
		return fail(c, -EINVAL, "too much of the body at once");
	while (n && rc == 0) {
		size_t taken;

		if (c->expects == AWS_CHUNKED_DONE)
			return fail(c, -EBADMSG, "the body goes on after its last chunk");
		taken = c->expects == AWS_CHUNKED_DATA ? take_data(c, p, n, &rc)
		                                       : collect(c, p, n, &rc);
		p += taken;
		n -= taken;
	}
	return rc;
}

void aws_chunked_sent(struct aws_chunked *c, size_t n)
{
	buf_consume(&c->out, n);
	c->ready -= n;
}

bool aws_chunked_is_whole(const struct aws_chunked *c)
{
	return !c->why && !c->line_n &&
	       (c->expects == AWS_CHUNKED_DONE ||
	               (c->expects == AWS_CHUNKED_LAST && c->with_trailer));
}
