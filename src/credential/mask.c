/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: compiling. Each value becomes a few byte strings: the value, and the
 * characters of its base64 that it alone determines (three alignments, two alphabets). The ways of
 * writing a byte (percent, JSON, '+' for SP) are not compiled into further strings: the matcher
 * handles them, so that partial and mixed-case escapes cost nothing here. A long value is cut into
 * pieces that overlap by two bytes, so that no base64 character at a cut is missed by both.
 * Everything derived from the value is in a few blocks of secret memory.
 */
#include "credential/mask_private.h"

#include <stdlib.h>

#include "vethguard/base/base64.h"

#define PIECE_OVERLAP 2
#define PATTERNS_PER_PIECE 7
#define ALIGNMENT 16

static size_t aligned(size_t n)
{
	return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Takes n <= SECRET_MAX zeroed bytes of secret memory that live as long as the mask. */
static void *take(struct mask *mask, size_t n)
{
	struct secret *last = mask->block_count ? &mask->blocks[mask->block_count - 1] : NULL;
	void *p;

	n = aligned(n);
	if (!last || n > last->cap - mask->block_used)
		return NULL;
	p = last->p + mask->block_used;
	mask->block_used += n;
	return p;
}

static bool grow(struct mask *mask, size_t n)
{
	struct secret *blocks = realloc(mask->blocks, (mask->block_count + 1) * sizeof(*blocks));

	if (!blocks)
		return false;
	mask->blocks = blocks;
	if (secret_alloc(&blocks[mask->block_count], n) < 0)
		return false;
	mask->block_count++;
	mask->block_used = 0;
	return true;
}

static void *take_or_grow(struct mask *mask, size_t n)
{
	void *p = take(mask, n);

	return p || !grow(mask, SECRET_MAX) ? p : take(mask, n);
}

/* Adds the n bytes at p, which are in secret memory already, as a pattern. */
static void add_pattern(struct mask *mask, size_t value, const uint8_t *p, size_t n)
{
	struct mask_pattern *pattern = &mask->patterns[mask->count];

	for (size_t i = 0; i < mask->count; i++)
		if (mask->patterns[i].n == n && memcmp(mask->patterns[i].p, p, n) == 0) {
			mask->patterns[i].values |= 1ull << value;
			return;
		}
	pattern->values = 1ull << value;
	pattern->p = p;
	pattern->n = n;
	pattern->bare = 0;
	while (pattern->bare < n && !mask_is_escape(p[pattern->bare]))
		pattern->bare++;
	mask->has_escapes |= pattern->bare < n;
	pattern->spaced = memchr(p, ' ', n) != NULL;
	mask->count++;
	if (n > mask->longest)
		mask->longest = n;
	if (n < mask->window)
		mask->window = n;
}

static bool add_piece(struct mask *mask, size_t value, const uint8_t *p, size_t n)
{
	uint8_t *copy = take_or_grow(mask, n);

	if (!copy)
		return false;
	memcpy(copy, p, n);
	add_pattern(mask, value, copy, n);
	for (unsigned lead = 0; lead < 3; lead++) {
		for (unsigned url = 0; url < 2; url++) {
			copy = take_or_grow(mask, BASE64_SIZE(n));
			if (!copy)
				return false;
			add_pattern(mask, value, copy,
			        base64_inner(p, n, lead, url ? base64_url : base64_standard, copy));
		}
	}
	return true;
}

/* Size of the next piece of what is left. The last piece is never so short that it could be taken
 * for ordinary text, and no cut is inside a UTF-8 sequence (one JSON escape stands for the whole
 * sequence). */
static size_t piece_size(const uint8_t *p, size_t left)
{
	size_t n = left;

	if (n > MASK_PIECE_MAX)
		n = left < 2 * MASK_PIECE_MAX ? left / 2 + PIECE_OVERLAP : MASK_PIECE_MAX;
	if (n < left)
		for (unsigned i = 0; i < 3 && (p[n] & 0xc0) == 0x80; i++)
			n--;
	return n;
}

static bool add_value(struct mask *mask, size_t index, struct slice value)
{
	const uint8_t *p = (const uint8_t *)value.p;
	size_t left = value.n;

	for (;;) {
		size_t n = piece_size(p, left);

		if (!add_piece(mask, index, p, n))
			return false;
		if (n == left)
			return true;
		p += n - PIECE_OVERLAP;
		left -= n - PIECE_OVERLAP;
	}
}

/* Limits the window's shift to d if the window ends with a and b, or with '+' for a SP among
 * them. */
static void limit_shift(struct mask_tables *t, uint8_t a, uint8_t b, size_t d)
{
	for (unsigned i = 0; i < 4; i++) {
		uint8_t block[2] = {i & 1 && a == ' ' ? '+' : a, i & 2 && b == ' ' ? '+' : b};
		uint8_t *shift = &t->shift[mask_block(block)];

		if (d < *shift)
			*shift = (uint8_t)d;
	}
}

static void fill_tables(struct mask *mask)
{
	struct mask_tables *t = mask->tables;

	memset(t->shift, (int)(mask->window - 1), sizeof(t->shift));
	t->first['%'] = t->first['\\'] = 0xff;
	for (size_t k = 0; k < mask->count; k++) {
		struct mask_pattern *pattern = &mask->patterns[k];

		t->first[pattern->p[0]] |= (uint8_t)(1u << k % 8);
		if (pattern->p[0] == ' ')
			t->first['+'] |= (uint8_t)(1u << k % 8);
		for (size_t i = 0; i < pattern->n; i++)
			t->member[pattern->p[i]] = 1;
		t->member['+'] |= pattern->spaced;
		for (size_t i = 0; i + 2 <= mask->window; i++)
			limit_shift(t, pattern->p[i], pattern->p[i + 1], mask->window - 2 - i);
		pattern->block = mask_block(pattern->p + mask->window - 2);
	}
	mask_fill_follows(mask);
	mask_fill_places(mask);
	mask_fill_open(t);
}

static size_t pattern_room(const struct slice *values, size_t n)
{
	size_t pieces = 0;

	for (size_t i = 0; i < n; i++)
		pieces += values[i].n / (MASK_PIECE_MAX / 2) + 1;
	return pieces * PATTERNS_PER_PIECE;
}

/* Bytes of secret memory for a mask of ordinary values, so that one block holds it all. */
static size_t first_block_bytes(const struct slice *values, size_t n, size_t patterns)
{
	size_t bytes = aligned(sizeof(struct mask_tables)) +
	               aligned(patterns * sizeof(struct mask_pattern));

	for (size_t i = 0; i < n; i++)
		bytes += PATTERNS_PER_PIECE * aligned(BASE64_SIZE(values[i].n));
	return bytes < SECRET_MAX ? bytes : SECRET_MAX;
}

struct mask *mask_new(const struct slice *values, size_t n)
{
	struct mask *mask;
	size_t patterns;

	if (n == 0 || n > MASK_VALUES_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (values[i].n < MASK_VALUE_MIN || values[i].n > SECRET_MAX)
			return NULL;
	mask = calloc(1, sizeof(*mask));
	if (!mask)
		return NULL;
	patterns = pattern_room(values, n);
	mask->window = MASK_WINDOW_MAX;
	mask->spare = calloc(1, sizeof(*mask->spare));
	if (!mask->spare || !grow(mask, first_block_bytes(values, n, patterns)))
		goto fail;
	mask->tables = take_or_grow(mask, sizeof(*mask->tables));
	mask->patterns = take_or_grow(mask, patterns * sizeof(*mask->patterns));
	if (!mask->tables || !mask->patterns)
		goto fail;
	for (size_t i = 0; i < n; i++)
		if (!add_value(mask, i, values[i]))
			goto fail;
	fill_tables(mask);
	return mask;
fail:
	mask_free(mask);
	return NULL;
}

void mask_free(struct mask *mask)
{
	if (!mask)
		return;
	for (size_t i = 0; i < mask->block_count; i++)
		secret_free(&mask->blocks[i]);
	if (mask->spare)
		secret_free(mask->spare);
	free(mask->spare);
	free(mask->blocks);
	free(mask);
}

size_t mask_longest(const struct mask *mask)
{
	return mask->longest * MASK_EXPANSION;
}
