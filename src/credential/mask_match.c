/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: does text, read from one place on, spell a pattern? In each mode every byte
 * of text has one meaning (an escape byte always begins an escape), so the comparison never has to
 * try two ways and go back. Escapes are not decoded: the escapes that the pattern's next byte could
 * be written as are compared with the text digit by digit, so that "the text ends here and so far
 * all fits" falls out of the same comparison.
 */
#include "mask_internal.h"

/* Compares digits hex digits of value with text, upper and lower case alike. */
static enum mask_fit hex_fit(uint32_t value, unsigned digits, const uint8_t *text, size_t left)
{
	for (unsigned i = 0; i < digits; i++) {
		if (i == left)
			return MASK_PART;
		if (slice_hex_digit(text[i]) != (int)(value >> 4 * (digits - 1 - i) & 15))
			return MASK_NO;
	}
	return MASK_WHOLE;
}

/* "\uXXXX" of one UTF-16 unit. */
static enum mask_fit unit_fit(uint32_t unit, const uint8_t *text, size_t left)
{
	static const uint8_t begin[2] = {'\\', 'u'};

	for (unsigned i = 0; i < 2; i++) {
		if (i == left)
			return MASK_PART;
		if (text[i] != begin[i])
			return MASK_NO;
	}
	return hex_fit(unit, 4, text + 2, left - 2);
}

/* The code point of the UTF-8 sequence (2 to 4 bytes) at p, and its length; 0: none there. Overlong
 * forms and surrogates need no refusal: they only name escapes that no encoder writes. */
static size_t utf8_at(const uint8_t *p, size_t n, uint32_t *code)
{
	size_t len = p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;

	if (len == 0 || p[0] > 0xf4 || len > n)
		return 0;
	*code = p[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	return len;
}

/* The UTF-8 sequence at p, as JSON escapes its code point: one unit or a surrogate pair. */
static enum mask_fit code_point_fit(uint32_t code, const uint8_t *text, size_t left, size_t *used)
{
	enum mask_fit fit;

	*used = 6;
	if (code < 0x10000)
		return unit_fit(code, text, left);
	*used = 12;
	fit = unit_fit(0xd800 + ((code - 0x10000) >> 10), text, left);
	if (fit != MASK_WHOLE)
		return fit;
	return unit_fit(0xdc00 + ((code - 0x10000) & 0x3ff), text + 6, left - 6);
}

/* The letter behind '\' that stands for c (RFC 8259 section 7), or 0. */
static uint8_t json_short(uint8_t c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/':
		return c;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return 0;
	}
}

/* One escape against the pattern's bytes at p: what it takes of text (*used) and of the pattern
 * (*taken). */
static enum mask_fit json_fit(
        const uint8_t *p, size_t n, const uint8_t *text, size_t left, size_t *used, size_t *taken)
{
	enum mask_fit as_code = MASK_NO, as_byte;
	uint32_t code;

	if (left > 1 && text[1] != 'u') {
		*used = 2;
		*taken = 1;
		return text[1] == json_short(p[0]) ? MASK_WHOLE : MASK_NO;
	}
	*taken = utf8_at(p, n, &code);
	if (*taken > 0) {
		as_code = code_point_fit(code, text, left, used);
		if (as_code == MASK_WHOLE)
			return MASK_WHOLE;
	}
	/* A reader that takes field values for Latin-1 escapes each byte on its own. */
	*used = 6;
	*taken = 1;
	as_byte = unit_fit(p[0], text, left);
	return as_byte == MASK_NO ? as_code : as_byte;
}

static enum mask_fit percent_fit(
        const uint8_t *p, const uint8_t *text, size_t left, size_t *used, size_t *taken)
{
	*used = 3;
	*taken = 1;
	return hex_fit(p[0], 2, text + 1, left - 1);
}

static enum mask_fit plain_fit(const struct mask_pattern *pattern, size_t i, const uint8_t *text,
        size_t left, size_t *used)
{
	size_t n = pattern->n - i;

	*used = n;
	if (memcmp(pattern->p + i, text, n < left ? n : left) != 0)
		return MASK_NO;
	return left < n ? MASK_PART : MASK_WHOLE;
}

enum mask_fit mask_fit(const struct mask_pattern *pattern, enum mask_mode mode, size_t i,
        const uint8_t *text, size_t left, size_t *used)
{
	const uint8_t escape = mask_escape_byte(mode);
	size_t at = 0;

	if (mode == MASK_PLAIN)
		return plain_fit(pattern, i, text, left, used);
	while (i < pattern->n) {
		size_t step = 1, taken = 1;
		enum mask_fit fit = MASK_WHOLE;

		if (at == left)
			return MASK_PART;
		if (text[at] != escape)
			fit = text[at] == pattern->p[i] ? MASK_WHOLE : MASK_NO;
		else if (mode == MASK_PERCENT)
			fit = percent_fit(pattern->p + i, text + at, left - at, &step, &taken);
		else
			fit = json_fit(pattern->p + i, pattern->n - i, text + at, left - at, &step,
			        &taken);
		if (fit != MASK_WHOLE)
			return fit;
		at += step;
		i += taken;
	}
	*used = at;
	return MASK_WHOLE;
}

/* First byte of the UTF-8 form of a UTF-16 unit from 0x80 on (of the pair's code point for a high
 * surrogate). */
static uint8_t utf8_lead(uint32_t unit)
{
	if (unit < 0x800)
		return (uint8_t)(0xc0 | unit >> 6);
	if (unit < 0xd800 || unit > 0xdbff)
		return (uint8_t)(0xe0 | unit >> 12);
	return (uint8_t)(0xf0 | (((unit - 0xd800) << 10) + 0x10000) >> 18);
}

static unsigned json_stands_for(const uint8_t *text, size_t left, uint8_t out[2])
{
	static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	uint32_t unit = 0;
	unsigned n = 0;

	if (left < 2)
		return 0;
	if (text[1] != 'u') {
		const char *letter = memchr(letters, text[1], sizeof(letters) - 1);

		if (!letter)
			return 0;
		out[0] = (uint8_t)meaning[letter - letters];
		return 1;
	}
	if (left < 6)
		return 0;
	for (unsigned i = 2; i < 6; i++) {
		int digit = slice_hex_digit(text[i]);

		if (digit < 0)
			return 0;
		unit = unit << 4 | (uint32_t)digit;
	}
	if (unit <= 0xff)
		out[n++] = (uint8_t)unit;
	if (unit >= 0x80)
		out[n++] = utf8_lead(unit);
	return n;
}

unsigned mask_escape_stands_for(
        enum mask_mode mode, const uint8_t *text, size_t left, uint8_t out[2])
{
	int high, low;

	if (mode == MASK_JSON)
		return json_stands_for(text, left, out);
	if (left < 3)
		return 0;
	high = slice_hex_digit(text[1]);
	low = slice_hex_digit(text[2]);
	if (high < 0 || low < 0)
		return 0;
	out[0] = (uint8_t)(high << 4 | low);
	return 1;
}

void mask_fill_escaped(struct mask_tables *tables)
{
	tables->escaped[MASK_JSON]['u'] = 1;
	for (unsigned c = 0; c < 256; c++) {
		unsigned high = c >> 4;

		if (!tables->member[c])
			continue;
		tables->escaped[MASK_PERCENT][high < 10 ? '0' + high : 'A' + high - 10] = 1;
		tables->escaped[MASK_PERCENT][high < 10 ? '0' + high : 'a' + high - 10] = 1;
		if (json_short((uint8_t)c))
			tables->escaped[MASK_JSON][json_short((uint8_t)c)] = 1;
	}
}
