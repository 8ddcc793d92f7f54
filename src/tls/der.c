/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: certificates made here have less than 2 KiB and those read here less than 64
 * KiB, so a length has at most two bytes after its prefix. Reading accepts only the shortest form,
 * as DER requires.
 */
#include "tls/der.h"

#include <stdio.h>
#include <time.h>

static size_t read_length(struct reader *r)
{
	uint8_t first = reader_u8(r);

	if (first < 0x80)
		return first;
	if (first == 0x81) {
		size_t n = reader_u8(r);
		if (n < 0x80)
			r->failed = true;
		return n;
	}
	if (first == 0x82) {
		size_t n = reader_u16(r);
		if (n < 0x100)
			r->failed = true;
		return n;
	}
	r->failed = true;
	return 0;
}

struct slice der_read(struct reader *r, uint8_t tag, struct slice *whole)
{
	const uint8_t *start = r->p;
	size_t before = r->left;

	if (reader_u8(r) != tag)
		r->failed = true;
	size_t n = read_length(r);
	struct slice content = reader_bytes(r, n);
	if (whole)
		*whole = r->failed ? slice_of("", 0) : slice_of(start, before - r->left);
	return content;
}

uint8_t der_peek(const struct reader *r)
{
	return r->failed || r->left == 0 ? 0 : r->p[0];
}

void der_write_header(struct writer *w, uint8_t tag, size_t content_len)
{
	writer_u8(w, tag);
	if (content_len < 0x80) {
		writer_u8(w, (uint8_t)content_len);
	} else if (content_len < 0x100) {
		writer_u8(w, 0x81);
		writer_u8(w, (uint8_t)content_len);
	} else if (content_len <= 0xffff) {
		writer_u8(w, 0x82);
		writer_u16(w, (uint16_t)content_len);
	} else {
		w->failed = true;
	}
}

void der_write(struct writer *w, uint8_t tag, struct slice content)
{
	der_write_header(w, tag, content.n);
	writer_bytes(w, content.p, content.n);
}

void der_write_signed(
        struct writer *w, struct slice part, struct slice algorithm, struct slice signature)
{
	uint8_t bytes[DER_SIGNED_MORE / 2];
	struct writer bits = writer_over(bytes, sizeof(bytes));

	der_write_header(&bits, DER_BIT_STRING, signature.n + 1);
	writer_u8(&bits, 0); /* no unused bits */
	w->failed |= bits.failed;
	der_write_header(w, DER_SEQUENCE, part.n + algorithm.n + bits.len + signature.n);
	writer_bytes(w, part.p, part.n);
	writer_bytes(w, algorithm.p, algorithm.n);
	writer_bytes(w, bytes, bits.len);
	writer_bytes(w, signature.p, signature.n);
}

void der_write_time(struct writer *w, int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[64];
	int n;

	if (!gmtime_r(&t, &tm) || tm.tm_year < 50 || tm.tm_year > 9999 - 1900) {
		w->failed = true;
		return;
	}
	bool utc = tm.tm_year < 150;
	n = snprintf(text, sizeof(text), "%0*d%02d%02d%02d%02d%02dZ", utc ? 2 : 4,
	        utc ? tm.tm_year % 100 : tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
	        tm.tm_min, tm.tm_sec);
	der_write(w, utc ? DER_UTC_TIME : DER_GENERALIZED_TIME, slice_of(text, (size_t)n));
}
