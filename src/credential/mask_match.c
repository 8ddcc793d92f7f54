/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: does text, read from one place on, spell a pattern? Each byte of the pattern
 * is in the text plain or as one of its escapes, independently of the others. So the spellings of a
 * pattern are the words of a small automaton whose states are the pattern's indices. A '%' or '\\'
 * in the text may be itself or begin an escape. Both readings can be right for a while (the value
 * "%25" spelled "%2525"), so the comparison follows all of them at once.
 *
 * Nearly always there is only one reading, which is followed without any set of states. If there
 * are two, the states at each place of the text are kept as bits, in a ring as long as the longest
 * escape: the work is bounded by the length of the text times that of the pattern, whatever they
 * contain.
 *
 * Escapes are not decoded: the possible escapes of the pattern's next byte are compared with the
 * text digit by digit, so that the same comparison finds that the text ends and everything has fit
 * so far.
 */
#include "credential/mask_private.h"

#define RING (MASK_ESCAPE_MAX + 1)
#define STATE_WORDS (MASK_PATTERN_MAX / 64 + 1)
#define WAYS_MAX 3 /* plain; one byte escaped; a UTF-8 sequence escaped */

enum fit { NO, PART, WHOLE };

/* One way to read the pattern's next bytes from text. */
struct way {
	size_t used, taken; /* bytes of text, of the pattern */
};

struct ways {
	unsigned count;
	bool part; /* the text ends inside a further way */
	struct way items[WAYS_MAX];
};

/* Compares text with `digits` hex digits of value, in either case. */
static enum fit hex_fit(uint32_t value, unsigned digits, const uint8_t *text, size_t left)
{
	for (unsigned i = 0; i < digits; i++) {
		if (i == left)
			return PART;
		if (slice_hex_digit(text[i]) != (int)(value >> 4 * (digits - 1 - i) & 15))
			return NO;
	}
	return WHOLE;
}

/* "\uXXXX" of one UTF-16 unit. */
static enum fit unit_fit(uint32_t unit, const uint8_t *text, size_t left)
{
	static const uint8_t begin[2] = {'\\', 'u'};

	for (unsigned i = 0; i < 2; i++) {
		if (i == left)
			return PART;
		if (text[i] != begin[i])
			return NO;
	}
	return hex_fit(unit, 4, text + 2, left - 2);
}

/* Gets the code point of the UTF-8 sequence (2 to 4 bytes) at p; returns its length, or 0 if there
 * is none. Overlong forms and surrogates need no refusal: they only give escapes that no encoder
 * writes. */
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

/* Compares a code point as JSON escapes it: one unit or a surrogate pair. */
static enum fit code_point_fit(uint32_t code, const uint8_t *text, size_t left, size_t *used)
{
	enum fit fit;

	*used = 6;
	if (code < 0x10000)
		return unit_fit(code, text, left);
	*used = MASK_ESCAPE_MAX;
	fit = unit_fit(0xd800 + ((code - 0x10000) >> 10), text, left);
	if (fit != WHOLE)
		return fit;
	return unit_fit(0xdc00 + ((code - 0x10000) & 0x3ff), text + 6, left - 6);
}

/* The letter after '\' that stands for c (RFC 8259 section 7), or 0. */
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

static void add_way(struct ways *ways, enum fit fit, size_t used, size_t taken)
{
	if (fit == WHOLE)
		ways->items[ways->count++] = (struct way){used, taken};
	ways->part |= fit == PART;
}

/* The better of two readings that use the same bytes. */
static enum fit either(enum fit a, enum fit b)
{
	return a > b ? a : b;
}

static void add_percent(struct ways *ways, uint8_t c, const uint8_t *text, size_t left)
{
	enum fit fit = hex_fit(c, 2, text + 1, left - 1);

	if (c == ' ')
		fit = either(fit, hex_fit('+', 2, text + 1, left - 1));
	add_way(ways, fit, 3, 1);
}

static void add_json(
        struct ways *ways, const uint8_t *p, size_t n, const uint8_t *text, size_t left)
{
	size_t taken, used;
	uint32_t code;
	enum fit fit;

	if (left > 1 && text[1] != 'u') {
		uint8_t letter = json_short(p[0]);

		add_way(ways, letter && text[1] == letter ? WHOLE : NO, 2, 1);
		return;
	}
	/* A program that takes field values for Latin-1 escapes each byte by itself. */
	fit = unit_fit(p[0], text, left);
	if (p[0] == ' ')
		fit = either(fit, unit_fit('+', text, left));
	add_way(ways, fit, 6, 1);
	taken = utf8_at(p, n, &code);
	if (taken > 0) {
		fit = code_point_fit(code, text, left, &used);
		add_way(ways, fit, used, taken);
	}
}

static void find_ways(
        struct ways *ways, const uint8_t *p, size_t n, const uint8_t *text, size_t left)
{
	ways->count = 0;
	ways->part = false;
	add_way(ways, mask_same(p[0], text[0]) ? WHOLE : NO, 1, 1);
	if (text[0] == '%')
		add_percent(ways, p[0], text, left);
	else if (text[0] == '\\')
		add_json(ways, p, n, text, left);
}

/* --- all readings at once --- */

/* The indices of the pattern that were reached, by place in the text. */
struct states {
	size_t words;
	size_t last; /* the last place with any index */
	uint64_t bits[RING][STATE_WORDS];
};

static void states_init(struct states *s, const struct mask_pattern *pattern)
{
	s->words = pattern->n / 64 + 1;
	s->last = 0;
	for (size_t i = 0; i < RING; i++)
		memset(s->bits[i], 0, s->words * sizeof(s->bits[i][0]));
}

static void states_add(struct states *s, size_t at, size_t i)
{
	s->bits[at % RING][i / 64] |= 1ull << i % 64;
	if (at > s->last)
		s->last = at;
}

/* Takes one index off those at `at`. False: there is none. */
static bool states_take(struct states *s, size_t at, size_t *i)
{
	uint64_t *bits = s->bits[at % RING];

	for (size_t w = 0; w < s->words; w++) {
		if (!bits[w])
			continue;
		*i = 64 * w + (size_t)__builtin_ctzll(bits[w]);
		bits[w] &= bits[w] - 1;
		return true;
	}
	return false;
}

static void add_part(struct mask_fit *fit, size_t reached)
{
	fit->part = true;
	if (reached > fit->reached)
		fit->reached = reached;
}

static struct mask_fit fit_everywhere(
        const struct mask_pattern *pattern, size_t i, const uint8_t *text, size_t at, size_t left)
{
	struct mask_fit fit = {0};
	struct states s;

	states_init(&s, pattern);
	for (states_add(&s, at, i); at <= s.last; at++) {
		while (states_take(&s, at, &i)) {
			struct ways ways;

			if (i == pattern->n) {
				fit.used = at;
				continue;
			}
			if (at == left) {
				add_part(&fit, i);
				continue;
			}
			find_ways(&ways, pattern->p + i, pattern->n - i, text + at, left - at);
			if (ways.part)
				add_part(&fit, i + 1);
			for (unsigned k = 0; k < ways.count; k++)
				states_add(&s, at + ways.items[k].used, i + ways.items[k].taken);
		}
	}
	return fit;
}

struct mask_fit mask_fit(
        const struct mask_pattern *pattern, size_t i, const uint8_t *text, size_t left)
{
	size_t at = 0;

	while (i < pattern->n) {
		struct ways ways;

		if (at == left)
			return (struct mask_fit){.part = true, .reached = i};
		if (!mask_is_escape(text[at])) {
			if (!mask_same(pattern->p[i], text[at]))
				return (struct mask_fit){0};
			at++;
			i++;
			continue;
		}
		find_ways(&ways, pattern->p + i, pattern->n - i, text + at, left - at);
		if (ways.count == 0)
			return (struct mask_fit){.part = ways.part, .reached = i + 1};
		if (ways.count > 1 || ways.part)
			return fit_everywhere(pattern, i, text, at, left);
		at += ways.items[0].used;
		i += ways.items[0].taken;
	}
	return (struct mask_fit){.used = at};
}

bool mask_is_raw(const struct mask_pattern *pattern, const uint8_t *text, size_t n)
{
	if (!pattern->spaced)
		return memcmp(pattern->p, text, n) == 0;
	for (size_t i = 0; i < n; i++)
		if (!mask_same(pattern->p[i], text[i]))
			return false;
	return true;
}

/* --- the meaning of an escape --- */

/* First byte of the UTF-8 form of a UTF-16 unit from 0x80 on (for a high surrogate: of the pair's
 * code point). */
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

unsigned mask_escape_stands_for(const uint8_t *text, size_t left, uint8_t out[2])
{
	int high, low;

	if (text[0] == '\\')
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

/* For an escape byte that stands for itself and is the pattern's first one. */
static void fill_raw_follows(struct mask_tables *tables, const struct mask_pattern *pattern)
{
	uint8_t *follows, next;

	if (pattern->bare == pattern->n)
		return;
	follows = tables->follows[pattern->p[pattern->bare] == '%' ? MASK_PERCENT : MASK_BACKSLASH];
	if (pattern->bare + 1 == pattern->n) {
		memset(follows, 1, 256);
		return;
	}
	next = pattern->p[pattern->bare + 1];
	follows[next] = follows['%'] = follows['\\'] = 1;
	if (next == ' ')
		follows['+'] = 1;
}

void mask_fill_follows(struct mask *mask)
{
	struct mask_tables *tables = mask->tables;

	tables->follows[MASK_BACKSLASH]['u'] = 1;
	for (unsigned c = 0; c < 256; c++) {
		unsigned high = c >> 4;

		if (!tables->member[c])
			continue;
		tables->follows[MASK_PERCENT][high < 10 ? '0' + high : 'A' + high - 10] = 1;
		tables->follows[MASK_PERCENT][high < 10 ? '0' + high : 'a' + high - 10] = 1;
		if (json_short((uint8_t)c))
			tables->follows[MASK_BACKSLASH][json_short((uint8_t)c)] = 1;
	}
	for (size_t k = 0; k < mask->count; k++)
		fill_raw_follows(tables, &mask->patterns[k]);
}
