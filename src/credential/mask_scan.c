/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: three searches over the same text, each giving occurrences in order of their
 * starts, merged.
 * - Plain: Wu and Manber's: a window as long as the shortest pattern moves by what its last two
 * bytes allow; most bytes of an ordinary body are never looked at.
 * - Percent and JSON: an occurrence that is not plain holds an escape, so memchr() finds the escape
 * bytes, which are few. For each, the places where a pattern holds the byte it stands for are
 * tried: before the first escape of an occurrence everything is plain, so what lies left of it is
 * one memcmp(), and what lies right is mask_fit(). Every byte inside any occurrence is covered,
 * also where occurrences overlap; covering waits until no later occurrence can begin inside the
 * stretch, because the searches still need its bytes.
 */
#include "mask_internal.h"

struct mask_span {
	size_t start, end;
};

/* Occurrences in text, in order of their starts. */
struct mask_scan {
	const struct mask *mask;
	const uint8_t *text;
	size_t n;
	size_t at[MASK_MODE_COUNT];   /* where each mode's search goes on */
	size_t bare[MASK_MODE_COUNT]; /* behind the last escape byte the search has passed */
	struct mask_span
	        next[MASK_MODE_COUNT]; /* each mode's next occurrence; start == n: no more */
};

/* The longest pattern that stands at text[start]; 0: none. */
static size_t plain_here(const struct mask *mask, const uint8_t *text, size_t left, unsigned block)
{
	size_t longest = 0;

	for (size_t k = 0; k < mask->count; k++) {
		const struct mask_pattern *pattern = &mask->patterns[k];

		if (pattern->block == block && pattern->n <= left && pattern->n > longest &&
		        memcmp(pattern->p, text, pattern->n) == 0)
			longest = pattern->n;
	}
	return longest;
}

static void plain_next(struct mask_scan *scan)
{
	const struct mask *mask = scan->mask;
	const uint8_t *text = scan->text, *shift = mask->tables->shift;
	size_t lead = mask->window - 2; /* bytes of the window before its last block */
	size_t last = scan->n - 2, at = scan->at[MASK_PLAIN];

	scan->next[MASK_PLAIN].start = scan->n;
	if (scan->n < mask->window)
		return;
	while (at <= last) {
		unsigned block = mask_block(text + at);
		size_t n;

		if (shift[block] > 0) {
			at += shift[block];
			continue;
		}
		n = plain_here(mask, text + at - lead, scan->n - (at - lead), block);
		at++;
		if (n == 0)
			continue;
		scan->next[MASK_PLAIN] = (struct mask_span){at - 1 - lead, at - 1 - lead + n};
		break;
	}
	scan->at[MASK_PLAIN] = at;
}

/* Widens span by every occurrence of pattern whose first escape is at text[at] and stands for c. */
static void widen_at_escape(const struct mask_scan *scan, enum mask_mode mode, size_t at, uint8_t c,
        const struct mask_pattern *pattern, struct mask_span *span)
{
	size_t bare = pattern->bare[mode];
	size_t limit = bare < pattern->n ? bare + 1 : pattern->n;

	/* Left of the first escape there is none, so an occurrence begins behind the last one:
	 * where escapes are dense there is little to try, and where they are not there are few. */
	if (at - scan->bare[mode] < limit)
		limit = at - scan->bare[mode] + 1;
	for (size_t i = 0; i < limit; i++) {
		const uint8_t *p = memchr(pattern->p + i, c, limit - i);
		size_t used;

		if (!p)
			return;
		i = (size_t)(p - pattern->p);
		if (i > 0 && (scan->text[at - 1] != p[-1] ||
		                     memcmp(scan->text + at - i, pattern->p, i) != 0))
			continue;
		if (mask_fit(pattern, mode, i, scan->text + at, scan->n - at, &used) != MASK_WHOLE)
			continue;
		if (at - i < span->start)
			span->start = at - i;
		if (at + used > span->end)
			span->end = at + used;
	}
}

/* The next escape from text[at] on that could belong to a pattern, or n. */
static size_t find_escape(struct mask_scan *scan, enum mask_mode mode, size_t at)
{
	const uint8_t *text = scan->text, *goes_on = scan->mask->tables->escaped[mode];
	const uint8_t escape = mask_escape_byte(mode);

	while (at < scan->n) {
		const uint8_t *p = memchr(text + at, escape, scan->n - at);

		if (!p)
			break;
		/* Runs of escape bytes are walked here, without a call for each. */
		for (at = (size_t)(p - text); at < scan->n && text[at] == escape; at++) {
			if (scan->n - at > 1 && goes_on[text[at + 1]])
				return at;
			scan->bare[mode] = at + 1;
		}
	}
	return scan->n;
}

static void escaped_next(struct mask_scan *scan, enum mask_mode mode)
{
	const struct mask *mask = scan->mask;
	struct mask_span span = {scan->n, 0};
	size_t at = scan->at[mode];

	while (span.end == 0 && (at = find_escape(scan, mode, at)) < scan->n) {
		uint8_t stands_for[2];
		unsigned n =
		        mask_escape_stands_for(mode, scan->text + at, scan->n - at, stands_for);

		for (unsigned i = 0; i < n; i++) {
			if (!mask->tables->member[stands_for[i]])
				continue;
			for (size_t k = 0; k < mask->count; k++)
				widen_at_escape(
				        scan, mode, at, stands_for[i], &mask->patterns[k], &span);
		}
		scan->bare[mode] = ++at;
	}
	scan->at[mode] = at;
	scan->next[mode] = span;
}

static void refill(struct mask_scan *scan, enum mask_mode mode)
{
	if (mode == MASK_PLAIN)
		plain_next(scan);
	else
		escaped_next(scan, mode);
}

static void scan_begin(
        struct mask_scan *scan, const struct mask *mask, const uint8_t *text, size_t n)
{
	*scan = (struct mask_scan){.mask = mask, .text = text, .n = n};
	scan->at[MASK_PLAIN] = mask->window - 2;
	for (enum mask_mode mode = MASK_PLAIN; mode < MASK_MODE_COUNT; mode++)
		refill(scan, mode);
}

/* False: no more. Occurrences may overlap. */
static bool scan_next(struct mask_scan *scan, struct mask_span *span)
{
	enum mask_mode first = MASK_PLAIN;

	for (enum mask_mode mode = MASK_PERCENT; mode < MASK_MODE_COUNT; mode++)
		if (scan->next[mode].start < scan->next[first].start)
			first = mode;
	*span = scan->next[first];
	if (span->start == scan->n)
		return false;
	refill(scan, first);
	return true;
}

static bool stands_at(
        const struct mask *mask, const uint8_t *text, size_t n, size_t at, unsigned block)
{
	size_t start = at - (mask->window - 2);

	return plain_here(mask, text + start, n - start, block) > 0;
}

/* The plain search when the answer is only yes or no. Each step waits for the one before it (load a
 * block, load its shift, add), so four searches over four parts of the text are run in turn and
 * wait together. A shift past the end of a part is harmless: it proves what the next part will
 * find again. */
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
	struct mask_scan scan = {.mask = mask, .text = text, .n = n};

	if (plain_anywhere(mask, text, n))
		return false;
	for (enum mask_mode mode = MASK_PERCENT; mode < MASK_MODE_COUNT; mode++) {
		refill(&scan, mode);
		if (scan.next[mode].start < n)
			return false;
	}
	return true;
}

/* Is text, to its end, a true beginning of the pattern in some mode? Without an escape the modes
 * are all alike. */
static bool begins(
        const struct mask_pattern *pattern, const uint8_t *text, size_t n, bool percent, bool json)
{
	size_t used;

	return mask_fit(pattern, MASK_PLAIN, 0, text, n, &used) == MASK_PART ||
	       (percent && mask_fit(pattern, MASK_PERCENT, 0, text, n, &used) == MASK_PART) ||
	       (json && mask_fit(pattern, MASK_JSON, 0, text, n, &used) == MASK_PART);
}

size_t mask_scan_prefix(const struct mask *mask, const uint8_t *text, size_t n)
{
	size_t plain = mask->longest - 1, escaped = MASK_EXPANSION * mask->longest - 1;
	size_t window = n < escaped ? n : escaped;
	const uint8_t *percent = memrchr(text + n - window, '%', window);
	const uint8_t *json = memrchr(text + n - window, '\\', window);

	if (!percent && !json && plain < window)
		window = plain;
	for (const uint8_t *p = text + n - window; p < text + n; p++) {
		if (!mask->tables->first[*p])
			continue;
		for (size_t k = 0; k < mask->count; k++)
			if (begins(&mask->patterns[k], p, (size_t)(text + n - p), percent >= p,
			            json >= p))
				return (size_t)(p - text);
	}
	return n;
}

uint64_t mask_cover(const struct mask *mask, uint8_t *text, size_t n, size_t until, size_t *covered,
        size_t *first)
{
	struct mask_span run = {0, *covered}, span;
	struct mask_scan scan;
	uint64_t found = 0;

	*first = n;
	scan_begin(&scan, mask, text, n);
	while (scan_next(&scan, &span) && span.start < until) {
		if (span.start < *first)
			*first = span.start;
		if (span.start >= run.end) {
			memset(text + run.start, '*', run.end - run.start);
			run = span;
			found++;
		} else if (span.end > run.end) {
			run.end = span.end;
		}
	}
	memset(text + run.start, '*', run.end - run.start);
	*covered = run.end;
	return found;
}
