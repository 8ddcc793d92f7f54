/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: nearly all texts hold no value, and nearly all calls only ask whether that
 * is so. One vector search passes over the text and finds the places that three bytes make
 * suspicious: they could be the end of a plain occurrence's window, or the first escape of another
 * occurrence. (The window's beginning, such as "ghp_", is frequent in ordinary texts.) Each place
 * is then examined exactly. If a text has many places, or the processor lacks the instructions, the
 * searches of mask_scan.c are used instead.
 */
#include "credential/mask_private.h"

#define PATTERN_GROUPS (VECTOR_GROUPS - MASK_ESCAPE_COUNT)
#define PLACES_MIN 16    /* looked at in any text */
#define BYTES_A_PLACE 64 /* a text with more places than this is searched another way */

/* Adds the group of one kind of escape: first byte, what may follow, second digit of %XX. */
static void add_escape(struct mask *mask, enum mask_escape kind, uint8_t escape)
{
	struct vector_groups *v = &mask->tables->places;
	unsigned group = PATTERN_GROUPS + kind;

	vector_add(v, group, 0, escape);
	for (unsigned c = 0; c < 256; c++) {
		if (mask->tables->follows[kind][c])
			vector_add(v, group, 1, (uint8_t)c);
		if (kind == MASK_PERCENT && slice_hex_digit((char)c) >= 0)
			vector_add(v, group, 2, (uint8_t)c);
	}
	if (kind == MASK_BACKSLASH || mask->has_escapes)
		vector_add_any(v, group, 2);
}

void mask_fill_places(struct mask *mask)
{
	struct vector_groups *v = &mask->tables->places;

	for (size_t k = 0; k < mask->count; k++)
		for (unsigned depth = 0; depth < VECTOR_DEPTH; depth++) {
			uint8_t c = mask->patterns[k].p[mask->window - VECTOR_DEPTH + depth];

			vector_add(v, k % PATTERN_GROUPS, depth, c);
			if (c == ' ')
				vector_add(v, k % PATTERN_GROUPS, depth, '+');
		}
	add_escape(mask, MASK_PERCENT, '%');
	add_escape(mask, MASK_BACKSLASH, '\\');
	mask->vectors = vector_works();
}

/* True if a plain occurrence has the last two bytes of its window at text[at]. */
static bool stands_at(
        const struct mask *mask, const uint8_t *text, size_t n, size_t at, unsigned block)
{
	size_t start = at - (mask->window - 2);

	return mask_scan_plain_here(mask, text + start, n - start, block) > 0;
}

/* True if the last three bytes of a plain occurrence's window are at text[at], or the first escape
 * of another occurrence. */
static bool touches(const struct mask *mask, const uint8_t *text, size_t n, size_t at)
{
	unsigned block;

	if (mask_is_escape(text[at]) && mask_scan_escaped_here(mask, text, n, at))
		return true;
	if (at < mask->window - VECTOR_DEPTH || n - at < VECTOR_DEPTH)
		return false;
	block = mask_block(text + at + 1);
	return mask->tables->shift[block] == 0 && stands_at(mask, text, n, at + 1, block);
}

enum outcome { NOTHING, SOMETHING, TOO_MANY_PLACES };

static enum outcome search_by_vectors(const struct mask *mask, const uint8_t *text, size_t n)
{
	size_t at = 0, places = PLACES_MIN + n / BYTES_A_PLACE;

	while (vector_find(&mask->tables->places, text, n, &at)) {
		if (touches(mask, text, n, at))
			return SOMETHING;
		if (places-- == 0)
			return TOO_MANY_PLACES;
		at++;
	}
	for (; at < n; at++)
		if (touches(mask, text, n, at))
			return SOMETHING;
	return NOTHING;
}

/* The plain search if only yes or no matters. Each step depends on the one before it (load a block,
 * load its shift, add), so four searches over four parts of the text run in turn and wait together.
 * A shift past the end of a part is harmless: the next part will find the same. */
#define LANES 4

static bool plain_anywhere(const struct mask *mask, const uint8_t *text, size_t n)
{
	const uint8_t *shift = mask->tables->shift;
	size_t first = mask->window - 2, part, at[LANES], end[LANES];

	if (n < mask->window)
		return false;
	part = (n - 1 - first) / LANES;
	for (unsigned i = 0; i < LANES; i++) {
		at[i] = first + i * part;
		end[i] = i + 1 < LANES ? at[i] + part : n - 1;
	}
	while (at[0] < end[0] && at[1] < end[1] && at[2] < end[2] && at[3] < end[3]) {
		unsigned block[LANES], d[LANES];

		for (unsigned i = 0; i < LANES; i++)
			d[i] = shift[block[i] = mask_block(text + at[i])];
		for (unsigned i = 0; i < LANES; i++) {
			if (d[i] == 0 && stands_at(mask, text, n, at[i], block[i]))
				return true;
			at[i] += d[i] ? d[i] : 1;
		}
	}
	for (unsigned i = 0; i < LANES; i++) {
		while (at[i] < end[i]) {
			unsigned block = mask_block(text + at[i]), d = shift[block];

			if (d == 0 && stands_at(mask, text, n, at[i], block))
				return true;
			at[i] += d ? d : 1;
		}
	}
	return false;
}

bool mask_scan_nothing(const struct mask *mask, const uint8_t *text, size_t n)
{
	enum outcome outcome = mask->vectors ? search_by_vectors(mask, text, n) : TOO_MANY_PLACES;

	if (outcome != TOO_MANY_PLACES)
		return outcome == NOTHING;
	return !plain_anywhere(mask, text, n) && !mask_scan_escaped_anywhere(mask, text, n);
}
