/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_mask: what mask.h promises, written down as plainly as possible and without a line of
 * src/credential: every pattern, every start, every way to write each byte, tried one after the
 * other and taken back. Slow; for comparing.
 */
#ifndef VETHGUARD_TESTS_UNIT_CREDENTIAL_NAIVE_MASK_H
#define VETHGUARD_TESTS_UNIT_CREDENTIAL_NAIVE_MASK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAIVE_PATTERNS_MAX 40
#define NAIVE_PATTERN_BYTES 512
#define NAIVE_TEXT_BYTES 4096
#define NAIVE_WAYS 8

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
	naive_add(naive, value, n);
	for (size_t lead = 0; lead < 3; lead++) {
		naive_add_base64(naive, value, n, lead, "+/");
		naive_add_base64(naive, value, n, lead, "-_");
	}
}

/* One way to write a pattern's next bytes: the text, hex digits in lower case, and how many bytes
 * of the pattern it stands for. */
struct naive_way {
	char text[16];
	size_t n, taken;
};

/* The code point that starts at p in UTF-8, by the table of RFC 3629; bytes of it, or 0. */
static inline size_t naive_code_point(const char *p, size_t n, unsigned long *code)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t len = 0;

	if (u[0] >= 0xc2 && u[0] <= 0xdf)
		len = 2, *code = u[0] - 0xc0ul;
	else if (u[0] >= 0xe0 && u[0] <= 0xef)
		len = 3, *code = u[0] - 0xe0ul;
	else if (u[0] >= 0xf0 && u[0] <= 0xf4)
		len = 4, *code = u[0] - 0xf0ul;
	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if (u[i] < 0x80 || u[i] > 0xbf)
			return 0;
		*code = *code * 64 + (u[i] - 0x80ul);
	}
	return len;
}

static inline int naive_ways_of_byte(unsigned char c, struct naive_way *out)
{
	static const char shorts[] = "\"\\/\b\f\n\r\t", letters[] = "\"\\/bfnrt";
	int n = 0;

	out[n++] = (struct naive_way){{(char)c}, 1, 1};
	out[n].n = (size_t)sprintf(out[n].text, "%%%02x", c), out[n++].taken = 1;
	out[n].n = (size_t)sprintf(out[n].text, "\\u%04x", c), out[n++].taken = 1;
	if (c && strchr(shorts, c))
		out[n++] = (struct naive_way){{'\\', letters[strchr(shorts, c) - shorts]}, 2, 1};
	return n;
}

/* All ways to write what the pattern goes on with at p; returns how many. */
static inline int naive_ways(const char *p, size_t left, struct naive_way out[NAIVE_WAYS])
{
	int n = naive_ways_of_byte((unsigned char)p[0], out);
	unsigned long code;
	size_t bytes = naive_code_point(p, left, &code);

	if (p[0] == ' ')
		n += naive_ways_of_byte('+', out + n);
	if (bytes) {
		if (code < 0x10000)
			sprintf(out[n].text, "\\u%04lx", code);
		else
			sprintf(out[n].text, "\\u%04lx\\u%04lx",
			        0xd800 + (code - 0x10000) / 1024 % 1024,
			        0xdc00 + (code - 0x10000) % 1024);
		out[n].n = strlen(out[n].text);
		out[n++].taken = bytes;
	}
	return n;
}

/* Escapes compare their hex digits without case; everything else exactly. n <= way->n. */
static inline bool naive_same(const struct naive_way *way, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool digit = way->n > 2 && i % 6 >= (way->text[0] == '%' ? 1 : 2);

		if (digit ? strncasecmp(way->text + i, text + i, 1) != 0 : way->text[i] != text[i])
			return false;
	}
	return true;
}

/* What a search has seen of one pattern from one start. */
struct naive_try {
	const char *p, *text;
	size_t n, left;
	size_t used; /* bytes of the longest spelling, or 0 */
	bool part;   /* the text ends inside of one */
};

/* Tries what is left of the pattern from index i on at text[at]. No place is tried twice. */
static inline void naive_try_from(struct naive_try *t, size_t i, size_t at, bool again)
{
	static unsigned seen[NAIVE_PATTERN_BYTES][NAIVE_TEXT_BYTES + 1], now;
	struct naive_way ways[NAIVE_WAYS];
	int count;

	now += !again;
	if (seen[i][at] == now)
		return;
	seen[i][at] = now;
	if (i == t->n) {
		t->used = at > t->used ? at : t->used;
		return;
	}
	if (at == t->left) {
		t->part = true;
		return;
	}
	count = naive_ways(t->p + i, t->n - i, ways);
	for (int w = 0; w < count; w++) {
		size_t room = t->left - at, n = ways[w].n < room ? ways[w].n : room;

		if (!naive_same(&ways[w], t->text + at, n))
			continue;
		if (n < ways[w].n)
			t->part = true;
		else
			naive_try_from(t, i + ways[w].taken, at + n, true);
	}
}

/* covered[i]: byte i lies in an occurrence. Returns where the longest true beginning at the end
 * starts. */
static inline size_t naive_run(const struct naive *naive, const char *text, size_t n, bool *covered)
{
	size_t prefix = n;

	memset(covered, 0, n);
	for (size_t s = n; s-- > 0;)
		for (size_t k = 0; k < naive->count; k++) {
			struct naive_try t = {.p = naive->patterns[k].p,
			        .n = naive->patterns[k].n,
			        .text = text + s,
			        .left = n - s};

			naive_try_from(&t, 0, 0, false);
			if (t.part)
				prefix = s;
			for (size_t i = 0; i < t.used; i++)
				covered[s + i] = true;
		}
	return prefix;
}

static inline bool naive_is_of_keys(unsigned char c)
{
	return c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	                   "-_.~+/=%\\:@!#$&*^",
	                    c);
}

/* Where the open end of the text starts: bytes of the kinds that the patterns have, as far back as
 * a beginning of one could reach, or its part that lies in text. */
static inline size_t naive_open(const struct naive *naive, const char *text, size_t n)
{
	bool others = false, controls = false, escape = false;
	size_t longest = 0, most, from = n;

	for (size_t k = 0; k < naive->count; k++) {
		longest = naive->patterns[k].n > longest ? naive->patterns[k].n : longest;
		for (size_t i = 0; i < naive->patterns[k].n; i++) {
			unsigned char c = (unsigned char)naive->patterns[k].p[i];

			others |= !naive_is_of_keys(c);
			controls |= c < 32 || c == 127;
		}
	}
	most = 6 * longest - 1;
	for (size_t i = n > most ? n - most : 0; i < n; i++)
		escape |= text[i] == '%' || text[i] == '\\';
	if (!escape)
		most = longest - 1 + 11; /* the rest of an escape that began before */
	while (from > 0 && n - from < most) {
		unsigned char c = (unsigned char)text[from - 1];

		if (!(naive_is_of_keys(c) || (others && c >= 32 && c != 127) || controls))
			break;
		from--;
	}
	return from;
}

/* A random spelling of the pattern's bytes from index `from` to before `to`, at out; returns its
 * length. One byte in `escaped` is written as an escape; 0: none. */
static inline size_t naive_spell(
        const char *p, size_t from, size_t to, unsigned escaped, int (*next)(void), char *out)
{
	size_t len = 0;

	while (from < to) {
		struct naive_way ways[NAIVE_WAYS];
		int count = naive_ways(p + from, to - from, ways), w = 0;

		if (escaped && (unsigned)next() % escaped == 0)
			w = next() % count;
		for (size_t j = 0; j < ways[w].n; j++) {
			bool digit = ways[w].n > 2 && j % 6 >= (ways[w].text[0] == '%' ? 1 : 2);
			char c = ways[w].text[j];

			out[len++] = digit && next() % 2 && c >= 'a' ? (char)(c - 32) : c;
		}
		from += ways[w].taken;
	}
	return len;
}

#endif
