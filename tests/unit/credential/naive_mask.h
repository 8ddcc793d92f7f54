/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_mask: what mask.h promises, written down as plainly as possible and without a line of
 * src/credential: every pattern, every mode, every start. Slow; for comparing. ASCII values only
 * (test_mask.c has tables for the others).
 */
#ifndef TESTS_NAIVE_MASK_H
#define TESTS_NAIVE_MASK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAIVE_PATTERNS_MAX 40
#define NAIVE_PATTERN_BYTES 512

struct naive {
	size_t count;
	struct {
		char p[NAIVE_PATTERN_BYTES];
		size_t n;
	} patterns[NAIVE_PATTERNS_MAX];
};

static inline void naive_base64(const unsigned char *p, size_t n, const char *last_two, char *out)
{
	char alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	memcpy(alphabet + 62, last_two, 2);
	for (size_t i = 0; i + 3 <= n; i += 3) {
		unsigned long group =
		        (unsigned long)p[i] << 16 | (unsigned long)p[i + 1] << 8 | p[i + 2];

		for (int shift = 18; shift >= 0; shift -= 6)
			*out++ = alphabet[group >> shift & 63];
	}
	*out = 0;
}

static inline void naive_add(struct naive *naive, const char *p, size_t n)
{
	memcpy(naive->patterns[naive->count].p, p, n);
	naive->patterns[naive->count++].n = n;
}

/* The characters of base64(lead bytes, value, more bytes) that do not depend on what surrounds the
 * value. */
static inline void naive_add_base64(
        struct naive *naive, const char *value, size_t n, size_t lead, const char *last_two)
{
	unsigned char zeros[NAIVE_PATTERN_BYTES] = {0}, ones[NAIVE_PATTERN_BYTES];
	char a[NAIVE_PATTERN_BYTES * 2], b[NAIVE_PATTERN_BYTES * 2];
	size_t total = (lead + n + 5) / 3 * 3, first = 0, last;

	memset(ones, 0xff, sizeof(ones));
	memcpy(zeros + lead, value, n);
	memcpy(ones + lead, value, n);
	naive_base64(zeros, total, last_two, a);
	naive_base64(ones, total, last_two, b);
	while (a[first] != b[first])
		first++;
	for (last = first; a[last] && a[last] == b[last]; last++)
		;
	naive_add(naive, a + first, last - first);
}

static inline void naive_add_value(struct naive *naive, const char *value, size_t n)
{
	char plus[NAIVE_PATTERN_BYTES];

	naive_add(naive, value, n);
	memcpy(plus, value, n);
	for (size_t i = 0; i < n; i++)
		if (plus[i] == ' ')
			plus[i] = '+';
	naive_add(naive, plus, n);
	for (size_t lead = 0; lead < 3; lead++) {
		naive_add_base64(naive, value, n, lead, "+/");
		naive_add_base64(naive, value, n, lead, "-_");
	}
}

/* All ways to write byte c in a mode ('-' plain, '%', '\\'), as strings in lower case; returns how
 * many. */
static inline int naive_ways(char mode, char c, char out[4][8], size_t sizes[4])
{
	static const char shorts[] = "\"\\/\b\f\n\r\t", letters[] = "\"\\/bfnrt";
	int n = 0;

	if (c != mode || mode == '-') {
		out[n][0] = c;
		sizes[n++] = 1;
	}
	if (mode == '%')
		sizes[n] = (size_t)sprintf(out[n], "%%%02x", (unsigned char)c), n++;
	if (mode == '\\')
		sizes[n] = (size_t)sprintf(out[n], "\\u%04x", (unsigned char)c), n++;
	if (mode == '\\' && c && strchr(shorts, c)) {
		out[n][0] = '\\';
		out[n][1] = letters[strchr(shorts, c) - shorts];
		sizes[n++] = 2;
	}
	return n;
}

/* Escapes compare their hex digits without case; everything else exactly. */
static inline bool naive_same(const char *way, const char *text, size_t n)
{
	size_t digits = way[0] == '%' ? 1 : way[0] == '\\' && n > 1 && way[1] == 'u' ? 2 : n;

	if (n <= digits)
		return memcmp(way, text, n) == 0;
	return memcmp(way, text, digits) == 0 &&
	       strncasecmp(way + digits, text + digits, n - digits) == 0;
}

/* Bytes of text that spell the pattern; 0: they do not; -1: text ends first and fits so far. */
static inline long naive_spell(
        char mode, const char *pattern, size_t n, const char *text, size_t left)
{
	const char *begin = text;

	for (size_t i = 0; i < n; i++) {
		char ways[4][8];
		size_t sizes[4];
		int count = naive_ways(mode, pattern[i], ways, sizes), w;

		if (left == 0)
			return -1;
		for (w = 0; w < count; w++) {
			size_t size = sizes[w] < left ? sizes[w] : left;

			if (sizes[w] == 1 ? ways[w][0] == text[0]
			                  : naive_same(ways[w], text, size)) {
				if (sizes[w] > left)
					return -1;
				break;
			}
		}
		if (w == count)
			return 0;
		text += sizes[w];
		left -= sizes[w];
	}
	return text - begin;
}

/* covered[i]: byte i lies in an occurrence. Returns where the longest true beginning at the end
 * starts. */
static inline size_t naive_run(const struct naive *naive, const char *text, size_t n, bool *covered)
{
	size_t prefix = n;

	memset(covered, 0, n);
	for (size_t s = n; s-- > 0;)
		for (size_t k = 0; k < naive->count; k++)
			for (const char *mode = "-%\\"; *mode; mode++) {
				long used = naive_spell(*mode, naive->patterns[k].p,
				        naive->patterns[k].n, text + s, n - s);

				if (used < 0)
					prefix = s;
				for (long i = 0; i < used; i++)
					covered[s + (size_t)i] = true;
			}
	return prefix;
}

#endif
