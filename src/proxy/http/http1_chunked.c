/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the chunked coding (RFC 9112 section 7.1), byte by byte except for the data, in one
 * grammar:
 * - every line ends in CRLF;
 * - a size has at most 16 hexadecimal digits and fits into 63 bits;
 * - extensions are tokens with token or quoted values;
 * - blanks may be around ";" and "=" (section 7.1.1) and nowhere else;
 * - data ends where its size said.
 *
 * Requests were hidden in bodies from readers that were more lenient: a bare LF that ends an
 * extension for one reader and not for another, or two bytes skipped after the data whatever they
 * are. Extensions are dropped. Trailer lines come out as "name: value" CRLF.
 */
#include "proxy/http/http1.h"

/* --- the size and its extensions --- */

static const char *size_digit(struct chunked *c, uint8_t byte)
{
	int digit = slice_hex_digit(byte);

	if (digit < 0)
		return "a chunk size is not a hexadecimal number";
	if (c->digits == HTTP1_CHUNK_DIGITS_MAX || c->left > (INT64_MAX >> 4))
		return "a chunk size is too large";
	c->digits++;
	c->left = c->left << 4 | (unsigned)digit;
	c->state = CHUNKED_DIGITS;
	return NULL;
}

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || byte == '\t';
}

/* Takes the byte after a size, an extension's name or its value. blank: the state for blanks
 * there. */
static const char *after_part(
        struct chunked *c, uint8_t byte, enum chunked_state blank, const char *otherwise)
{
	if (byte == '\r' && c->state != blank)
		c->state = CHUNKED_SIZE_LF;
	else if (byte == ';')
		c->state = CHUNKED_NAME;
	else if (is_blank(byte))
		c->state = blank;
	else
		return otherwise;
	return NULL;
}

/* True for qdtext of a quoted string, or a byte that a backslash may precede (RFC 9110 section
 * 5.6.4). */
static bool is_text(uint8_t byte)
{
	return byte == '\t' || (byte >= ' ' && byte != 0x7f);
}

static const char *extension_byte(struct chunked *c, uint8_t byte)
{
	static const char malformed[] = "a malformed chunk extension";
	enum chunked_state was = c->state;

	switch (was) {
	case CHUNKED_SIZE_BLANK:
		return after_part(c, byte, CHUNKED_SIZE_BLANK, malformed);
	case CHUNKED_NAME:
		if (is_blank(byte))
			return NULL;
		c->state = CHUNKED_NAME_REST;
		return http_is_tchar(byte) ? NULL : malformed;
	case CHUNKED_NAME_REST:
		if (http_is_tchar(byte))
			return NULL;
		__attribute__((fallthrough));
	case CHUNKED_NAME_BLANK:
		if (byte != '=')
			return after_part(c, byte, CHUNKED_NAME_BLANK, malformed);
		c->state = CHUNKED_VALUE;
		return NULL;
	case CHUNKED_VALUE:
		if (is_blank(byte))
			return NULL;
		c->state = byte == '"' ? CHUNKED_QUOTED : CHUNKED_TOKEN;
		return byte == '"' || http_is_tchar(byte) ? NULL : malformed;
	case CHUNKED_TOKEN:
		if (http_is_tchar(byte))
			return NULL;
		return after_part(c, byte, CHUNKED_VALUE_BLANK, malformed);
	case CHUNKED_QUOTED:
		if (byte == '"')
			c->state = CHUNKED_CLOSED;
		else if (byte == '\\')
			c->state = CHUNKED_ESCAPED;
		return is_text(byte) ? NULL : malformed;
	case CHUNKED_ESCAPED:
		c->state = CHUNKED_QUOTED;
		return is_text(byte) ? NULL : malformed;
	default: /* CHUNKED_CLOSED, CHUNKED_VALUE_BLANK */
		return after_part(c, byte, CHUNKED_VALUE_BLANK, malformed);
	}
}

/* Only extensions that outweigh the data count: a long body may have an extension per chunk. */
static void settle_extensions(struct chunked *c)
{
	uint64_t worth = 2 * c->left;

	c->extension_bytes -= worth < c->extension_bytes ? (uint32_t)worth : c->extension_bytes;
}

static const char *size_line_byte(struct chunked *c, uint8_t byte)
{
	switch (c->state) {
	case CHUNKED_SIZE:
		c->digits = 0;
		c->left = 0;
		return size_digit(c, byte);
	case CHUNKED_DIGITS:
		if (byte == '\r' || byte == ';' || is_blank(byte))
			return after_part(c, byte, CHUNKED_SIZE_BLANK, NULL);
		return size_digit(c, byte);
	case CHUNKED_SIZE_LF:
		settle_extensions(c);
		c->state = c->left ? CHUNKED_DATA : CHUNKED_LINE;
		return byte == '\n' ? NULL : "CR inside the line of a chunk size";
	default:
		if (++c->extension_bytes > HTTP1_EXTENSIONS_MAX)
			return "too many bytes of chunk extensions";
		return extension_byte(c, byte);
	}
}

/* --- trailers --- */

static bool keep(const struct chunked_sink *sink, const void *p, size_t n)
{
	return !sink || buf_append(sink->trailers, p, n) == 0;
}

/* Removes the blanks after a value. Its first byte is not blank. */
static bool end_value(const struct chunked_sink *sink)
{
	struct buf *out = sink ? sink->trailers : NULL;

	while (out && (buf_bytes(out)[out->len - 1] == ' ' || buf_bytes(out)[out->len - 1] == '\t'))
		out->len--;
	return keep(sink, "\r\n", 2);
}

static const char *trailer_byte(struct chunked *c, uint8_t byte, const struct chunked_sink *sink)
{
	bool kept = true, fits = true;

	if (++c->trailer_bytes > HTTP_TRAILER_BYTES_MAX)
		return "trailer section too large";
	switch (c->state) {
	case CHUNKED_LINE:
		if (byte == '\r') {
			c->state = CHUNKED_END_LF;
			break;
		}
		if (++c->trailers > HTTP_TRAILERS_MAX)
			return "too many trailers";
		fits = http_is_tchar(byte);
		kept = keep(sink, &byte, 1);
		c->state = CHUNKED_FIELD;
		break;
	case CHUNKED_FIELD:
		if (http_is_tchar(byte)) {
			kept = keep(sink, &byte, 1);
			break;
		}
		__attribute__((fallthrough));
	case CHUNKED_FIELD_BLANK:
		c->state = byte == ':' ? CHUNKED_BLANK : CHUNKED_FIELD_BLANK;
		fits = byte == ':' || (c->response && is_blank(byte));
		kept = byte != ':' || keep(sink, ": ", 2);
		break;
	case CHUNKED_BLANK:
		if (byte == ' ' || byte == '\t')
			break;
		fits = byte == '\r' || is_text(byte);
		kept = byte == '\r' ? keep(sink, "\r\n", 2) : keep(sink, &byte, 1);
		c->state = byte == '\r' ? CHUNKED_CONTENT_LF : CHUNKED_CONTENT;
		break;
	case CHUNKED_CONTENT:
		fits = byte == '\r' || is_text(byte);
		kept = byte == '\r' ? end_value(sink) : keep(sink, &byte, 1);
		if (byte == '\r')
			c->state = CHUNKED_CONTENT_LF;
		break;
	default: /* CHUNKED_CONTENT_LF, CHUNKED_END_LF */
		fits = byte == '\n';
		c->state = c->state == CHUNKED_END_LF ? CHUNKED_DONE : CHUNKED_LINE;
		break;
	}
	if (!kept)
		return "trailer section too large";
	return fits ? NULL : "a malformed trailer";
}

/* --- the whole body --- */

static const char *read_byte(struct chunked *c, uint8_t byte, const struct chunked_sink *sink)
{
	if (c->state <= CHUNKED_SIZE_LF)
		return size_line_byte(c, byte);
	if (c->state == CHUNKED_DATA_CR) {
		c->state = CHUNKED_DATA_LF;
		return byte == '\r' ? NULL : "no CRLF behind a chunk's data";
	}
	if (c->state == CHUNKED_DATA_LF) {
		c->state = CHUNKED_SIZE;
		return byte == '\n' ? NULL : "no CRLF behind a chunk's data";
	}
	return trailer_byte(c, byte, sink);
}

const char *chunked_read(struct chunked *c, const uint8_t *p, size_t n, size_t *used,
        const struct chunked_sink *sink)
{
	const char *error = NULL;
	size_t at = 0;

	while (at < n && c->state != CHUNKED_DONE && !error) {
		if (c->state == CHUNKED_DATA) {
			size_t run = n - at < c->left ? n - at : (size_t)c->left;

			if (sink)
				sink->on_body(sink->context, p + at, run);
			at += run;
			c->left -= run;
			if (!c->left)
				c->state = CHUNKED_DATA_CR;
		} else {
			error = read_byte(c, p[at++], sink);
		}
	}
	*used = at;
	return error;
}
