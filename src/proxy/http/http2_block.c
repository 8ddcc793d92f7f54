/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header blocks of HTTP/2 while they are received. Each field is checked by itself (RFC 9113
 * section 8.2.1) and copied behind the others, after its two lengths, because the memory may still
 * move. Only the first error is noted; the block is read to its end all the same, to keep the
 * compression's state. nghttp2 checks none of this: it would decide by its own tables, and could
 * only reset the stream.
 */
#include "proxy/http/http2.h"

#define BLOCK_KEPT 4096 /* bytes of memory that a block keeps between uses */

struct lengths {
	uint32_t name, value;
};

void http2_block_init(struct http2_block *b, size_t limit)
{
	memset(b, 0, sizeof(*b));
	b->limit = limit;
	buf_init(&b->text, limit + (HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX) * sizeof(struct lengths));
	buf_init(&b->cookies, limit);
}

void http2_block_fini(struct http2_block *b)
{
	buf_fini(&b->text);
	buf_fini(&b->cookies);
}

void http2_block_reset(struct http2_block *b)
{
	if (b->text.cap > BLOCK_KEPT)
		buf_fini(&b->text);
	buf_consume(&b->text, b->text.len);
	buf_fini(&b->cookies);
	b->size = b->count = 0;
	b->plain = b->too_large = false;
	b->why = NULL;
}

static bool is_lower(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] >= 'A' && name.p[i] <= 'Z')
			return false;
	return true;
}

const char *http2_check_field(struct slice name, struct slice value)
{
	bool pseudo = name.n && name.p[0] == ':';
	struct slice word = slice_of(name.p + pseudo, name.n - pseudo);

	if (!word.n)
		return "a field without a name";
	if (slice_token_length(word) != word.n)
		return "a byte that no field name may have";
	if (!is_lower(word))
		return "a capital letter in a field name of HTTP/2";
	if (!http_is_value(value))
		return "a control character in a field value";
	return slice_trim(value).n == value.n ? NULL : "white space around a field value of HTTP/2";
}

bool http2_is_of_connection(enum http_name known)
{
	return known == HTTP_CONNECTION || known == HTTP_KEEP_ALIVE ||
	       known == HTTP_PROXY_CONNECTION || known == HTTP_UPGRADE ||
	       known == HTTP_TRANSFER_ENCODING;
}

const char *http2_check_trailer(struct slice name, struct slice value)
{
	if (name.n && name.p[0] == ':')
		return "a pseudo-header field in a trailer section";
	if (http2_is_of_connection(http_name_of(name)))
		return "a connection-specific field in HTTP/2";
	return http2_check_field(name, value);
}

/* Appends a cookie. An empty one is skipped: it would leave white space at the end. */
static bool add_crumb(struct http2_block *b, struct slice value)
{
	if (!value.n)
		return true;
	return (!b->cookies.len || buf_append(&b->cookies, "; ", 2) == 0) &&
	       buf_append_slice(&b->cookies, value) == 0;
}

static bool add_field(struct http2_block *b, struct slice name, struct slice value)
{
	const struct lengths n = {(uint32_t)name.n, (uint32_t)value.n};
	uint8_t *p = buf_reserve(&b->text, sizeof(n) + name.n + value.n);

	if (!p || b->count == HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX)
		return false;
	memcpy(p, &n, sizeof(n));
	memcpy(p + sizeof(n), name.p, name.n);
	if (value.n)
		memcpy(p + sizeof(n) + name.n, value.p, value.n);
	buf_commit(&b->text, sizeof(n) + name.n + value.n);
	b->count++;
	return true;
}

void http2_block_add(struct http2_block *b, struct slice name, struct slice value)
{
	bool pseudo = name.n && name.p[0] == ':';

	b->size += name.n + value.n + HTTP2_FIELD_COST;
	if (b->too_large)
		return;
	b->too_large = b->size > b->limit;
	if (b->why) /* only the size is still counted */
		return;
	if (pseudo && b->plain)
		b->why = "a pseudo-header field behind other fields";
	else
		b->why = http2_check_field(name, value);
	b->plain |= !pseudo;
	if (b->too_large || b->why)
		return;
	if (slice_equals(name, SLICE("cookie")) ? !add_crumb(b, value) : !add_field(b, name, value))
		b->too_large = true;
}

static struct slice next_part(struct slice *rest, size_t n)
{
	struct slice part = slice_of(rest->p, n);

	*rest = slice_of(rest->p + n, rest->n - n);
	return part;
}

bool http2_block_next(struct slice *rest, struct slice *name, struct slice *value)
{
	struct lengths n;

	if (!rest->n)
		return false;
	memcpy(&n, next_part(rest, sizeof(n)).p, sizeof(n));
	*name = next_part(rest, n.name);
	*value = next_part(rest, n.value);
	return true;
}
