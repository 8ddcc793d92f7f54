/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what is kept back at the end of a piece of text must not depend on the
 * value, because an attacker whose guesses are echoed would learn from the wait that a guess is
 * right. So it depends only on kinds of bytes, which everybody may know: an end of bytes that keys
 * consist of could be the beginning of a value, and is kept back whether it is or not. If a value
 * has other bytes too, all bytes except control characters are kept back; this reveals only that it
 * has such bytes.
 */
#include "credential/mask_private.h"

/* Besides letters and digits: the bytes of keys, base64, and escapes in URLs and JSON. Bytes that
 * end sentences, objects and elements are not included, so that these do not wait. */
static const char signs[] = "-_.~+/=%\\:@!#$&*^";

static bool is_of_keys(unsigned c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && c < 0x80 && strchr(signs, (int)c));
}

static bool is_control(unsigned c)
{
	return c < ' ' || c == 0x7f;
}

void mask_fill_open(struct mask_tables *tables)
{
	bool others = false, controls = false;

	for (unsigned c = 0; c < 256; c++) {
		others |= tables->member[c] && !is_of_keys(c);
		controls |= tables->member[c] && is_control(c);
	}
	for (unsigned c = 0; c < 256; c++)
		tables->open[c] = controls || (others && !is_control(c)) || is_of_keys(c);
}

/* The number of bytes at the end of text, at most `most`, that are all open. */
static size_t open_bytes(const struct mask *mask, const uint8_t *text, size_t n, size_t most)
{
	size_t run = 0;

	while (run < n && run < most && mask->tables->open[text[n - 1 - run]])
		run++;
	return run;
}

size_t mask_scan_open(const struct mask *mask, const uint8_t *text, size_t n)
{
	size_t plain = mask->longest + MASK_ESCAPE_MAX - 2,
	       escaped = MASK_EXPANSION * mask->longest - 1;
	size_t run = open_bytes(mask, text, n, plain), near = n < escaped ? n : escaped;

	/* A longer beginning has escapes in it, whether or not one that begins before text
	 * continues in it. */
	if (run == plain &&
	        (memchr(text + n - near, '%', near) || memchr(text + n - near, '\\', near)))
		run = open_bytes(mask, text, n, escaped);
	return n - run;
}
