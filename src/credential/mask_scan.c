/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: where the occurrences are, for texts that have some (mask_nothing.c). Two
 * searches over the same text, each giving occurrences in order of their starts, are merged.
 * - Plain: Wu and Manber's algorithm. A window as long as the shortest pattern moves by what its
 *   last two bytes allow; most bytes of an ordinary body are never looked at.
 * - With escapes: an occurrence that is not plain has a '%' or '\\'. These are rare, and memchr()
 *   finds them. Each is taken for the first one of an occurrence, whether it begins an escape or
 *   stands for itself: what is left of it is a pattern's beginning, plain and without another such
 *   byte (one memcmp()), and what is right of it is for mask_fit().
 *
 * Every byte inside any occurrence is masked, including overlapping ones. Masking waits until no
 * later occurrence can begin inside the stretch, because the searches still need its bytes.
 */
#include "credential/mask_private.h"

struct mask_span {
	size_t start, end;
};

enum search { PLAIN, ESCAPED, SEARCH_COUNT };

/* Occurrences in text, in order of their starts. */
struct mask_scan {
	const struct mask *mask;
	const uint8_t *text;
	size_t n;
	size_t at[SEARCH_COUNT];             /* where each search continues */
	struct mask_span next[SEARCH_COUNT]; /* its next occurrence; start == n: no more */
	size_t bare;                         /* behind the last escape byte that was passed */
	size_t escape[MASK_ESCAPE_COUNT];    /* the next such byte of each kind, or n */
};

size_t mask_scan_plain_here(
        const struct mask *mask, const uint8_t *text, size_t left, unsigned block)
{
	size_t longest = 0;

	for (size_t k = 0; k < mask->count; k++) {
		const struct mask_pattern *pattern = &mask->patterns[k];

		if ((pattern->block == block || pattern->spaced) && pattern->n <= left &&
		        pattern->n > longest && mask_is_raw(pattern, text, pattern->n))
			longest = pattern->n;
	}
	return longest;
}

static void plain_next(struct mask_scan *scan)
{
	const struct mask *mask = scan->mask;
	const uint8_t *text = scan->text, *shift = mask->tables->shift;
	size_t lead = mask->window - 2; /* bytes of the window before its last block */
	size_t last = scan->n - 2, at = scan->at[PLAIN];

	scan->next[PLAIN].start = scan->n;
	if (scan->n < mask->window)
		return;
	while (at <= last) {
		unsigned block = mask_block(text + at);
		size_t n;

		if (shift[block] > 0) {
			at += shift[block];
			continue;
		}
		n = mask_scan_plain_here(mask, text + at - lead, scan->n - (at - lead), block);
		at++;
		if (n == 0)
			continue;
		scan->next[PLAIN] = (struct mask_span){at - 1 - lead, at - 1 - lead + n};
		break;
	}
	scan->at[PLAIN] = at;
}

/* The first of the pattern's bytes from i up to limit for which c stands, or limit. */
static size_t find_byte(const struct mask_pattern *pattern, size_t i, size_t limit, uint8_t c)
{
	const uint8_t *p;

	if (pattern->spaced) {
		while (i < limit && !mask_same(pattern->p[i], c))
			i++;
		return i;
	}
	p = memchr(pattern->p + i, c, limit - i);
	return p ? (size_t)(p - pattern->p) : limit;
}

/* Extends span by an occurrence of the pattern whose byte i is text[at], plain or escaped. */
static void widen(const struct mask_scan *scan, size_t at, const struct mask_pattern *pattern,
        size_t i, struct mask_span *span)
{
	struct mask_fit fit;

	if (i > 0 && (!mask_same(pattern->p[i - 1], scan->text[at - 1]) ||
	                     !mask_is_raw(pattern, scan->text + at - i, i)))
		return;
	fit = mask_fit(pattern, i, scan->text + at, scan->n - at);
	if (fit.used == 0)
		return;
	if (at - i < span->start)
		span->start = at - i;
	if (at + fit.used > span->end)
		span->end = at + fit.used;
}

/* Extends span by every occurrence of pattern whose first escape byte is text[at]. As an escape it
 * may stand for any of the n bytes in c. */
static void widen_at_escape(const struct mask_scan *scan, size_t at, const uint8_t *c, unsigned n,
        const struct mask_pattern *pattern, struct mask_span *span)
{
	/* No other escape byte is left of it in the occurrence, so the occurrence begins after the
	 * previous one: dense escape bytes leave little to try, and otherwise there are few of
	 * them. */
	size_t room = at - scan->bare, bare = pattern->bare;
	size_t limit = bare < pattern->n ? bare + 1 : pattern->n;

	if (room < limit)
		limit = room + 1;
	for (unsigned k = 0; k < n; k++)
		for (size_t i = find_byte(pattern, 0, limit, c[k]); i < limit;
		        i = find_byte(pattern, i + 1, limit, c[k]))
			widen(scan, at, pattern, i, span);
	if (bare < pattern->n && bare <= room && pattern->p[bare] == scan->text[at])
		widen(scan, at, pattern, bare, span);
}

/* The next '%' or '\\' from text[at] on, or n. */
static size_t next_escape(struct mask_scan *scan, size_t at)
{
	static const uint8_t bytes[MASK_ESCAPE_COUNT] = {'%', '\\'};
	size_t first = scan->n;

	for (enum mask_escape k = MASK_PERCENT; k < MASK_ESCAPE_COUNT; k++) {
		if (scan->escape[k] <= at) {
			const uint8_t *p = memchr(scan->text + at, bytes[k], scan->n - at);

			scan->escape[k] = p ? (size_t)(p - scan->text) : scan->n;
		}
		if (scan->escape[k] < first)
			first = scan->escape[k];
	}
	return first;
}

/* The next escape byte from text[at] on that could be the first of an occurrence, or n. */
static size_t find_escape(struct mask_scan *scan, size_t at)
{
	const struct mask_tables *t = scan->mask->tables;
	const uint8_t *text = scan->text;

	while (at < scan->n && (at = next_escape(scan, at)) < scan->n) {
		/* Walk runs of such bytes here, without a call for each. */
		for (; at < scan->n && mask_is_escape(text[at]); at++) {
			if (scan->n - at == 1 || mask_follows(t, text[at])[text[at + 1]])
				return at;
			scan->bare = at + 1;
		}
	}
	return scan->n;
}

/* Extends span by every occurrence whose first escape byte is text[at]. */
static void widen_at(const struct mask_scan *scan, size_t at, struct mask_span *span)
{
	const struct mask *mask = scan->mask;
	uint8_t c[2];
	unsigned n = mask_escape_stands_for(scan->text + at, scan->n - at, c);

	if (n > 0 && !mask->tables->member[c[n - 1]])
		n--;
	if (n > 0 && !mask->tables->member[c[0]])
		c[0] = c[--n];
	for (size_t k = 0; (n > 0 || mask->has_escapes) && k < mask->count; k++)
		widen_at_escape(scan, at, c, n, &mask->patterns[k], span);
}

static void escaped_next(struct mask_scan *scan)
{
	struct mask_span span = {scan->n, 0};
	size_t at = scan->at[ESCAPED];

	while (span.end == 0 && (at = find_escape(scan, at)) < scan->n) {
		widen_at(scan, at, &span);
		scan->bare = ++at;
	}
	scan->at[ESCAPED] = at;
	scan->next[ESCAPED] = span;
}

bool mask_scan_escaped_anywhere(const struct mask *mask, const uint8_t *text, size_t n)
{
	struct mask_scan scan = {.mask = mask, .text = text, .n = n};

	escaped_next(&scan);
	return scan.next[ESCAPED].start < n;
}

bool mask_scan_escaped_here(const struct mask *mask, const uint8_t *text, size_t n, size_t at)
{
	const struct mask_scan scan = {.mask = mask, .text = text, .n = n};
	struct mask_span span = {n, 0};

	if (n - at == 1 || mask_follows(mask->tables, text[at])[text[at + 1]])
		widen_at(&scan, at, &span);
	return span.end > 0;
}

static void refill(struct mask_scan *scan, enum search search)
{
	if (search == PLAIN)
		plain_next(scan);
	else
		escaped_next(scan);
}

static void scan_begin(
        struct mask_scan *scan, const struct mask *mask, const uint8_t *text, size_t n)
{
	*scan = (struct mask_scan){.mask = mask, .text = text, .n = n};
	scan->at[PLAIN] = mask->window - 2;
	refill(scan, PLAIN);
	refill(scan, ESCAPED);
}

/* Gets the next occurrence; occurrences may overlap. False: no more. */
static bool scan_next(struct mask_scan *scan, struct mask_span *span)
{
	enum search first = scan->next[ESCAPED].start < scan->next[PLAIN].start ? ESCAPED : PLAIN;

	*span = scan->next[first];
	if (span->start == scan->n)
		return false;
	refill(scan, first);
	return true;
}

size_t mask_scan_prefix(const struct mask *mask, const uint8_t *text, size_t n)
{
	size_t plain = mask->longest - 1, escaped = MASK_EXPANSION * mask->longest - 1;
	size_t window = n < escaped ? n : escaped;
	const uint8_t *end = text + n;

	if (plain < window && !memchr(end - window, '%', window) &&
	        !memchr(end - window, '\\', window))
		window = plain;
	for (const uint8_t *p = end - window; p < end; p++) {
		unsigned first = mask->tables->first[*p];

		for (size_t k = 0; first && k < mask->count; k++)
			if (first >> k % 8 & 1 &&
			        mask_fit(&mask->patterns[k], 0, p, (size_t)(end - p)).part)
				return (size_t)(p - text);
	}
	return n;
}

/* True if a pattern of any of these values is at text. */
static bool stands_of(const struct mask *mask, const uint8_t *text, size_t left, uint64_t values)
{
	unsigned first = mask->tables->first[*text];

	for (size_t k = 0; first && k < mask->count; k++)
		if (first >> k % 8 & 1 && mask->patterns[k].values & values &&
		        mask_fit(&mask->patterns[k], 0, text, left).used > 0)
			return true;
	return false;
}

bool mask_finds(const struct mask *mask, const uint8_t *p, size_t n, uint64_t except)
{
	if (n == 0 || mask_scan_nothing(mask, p, n))
		return false;
	if (!except)
		return true;
	for (size_t at = 0; at < n; at++)
		if (stands_of(mask, p + at, n - at, ~except))
			return true;
	return false;
}

size_t mask_end_begins(const struct mask *mask, const uint8_t *p, size_t n)
{
	return mask_scan_prefix(mask, p, n);
}

size_t mask_scan_reached(const struct mask *mask, const uint8_t *text, size_t n)
{
	size_t most = 0;

	for (size_t at = mask_scan_prefix(mask, text, n); at < n; at++)
		for (size_t k = 0; k < mask->count; k++) {
			struct mask_fit fit = mask_fit(&mask->patterns[k], 0, text + at, n - at);

			if (fit.part && fit.reached > most)
				most = fit.reached;
		}
	return most;
}

uint64_t mask_redact(const struct mask *mask, uint8_t *text, size_t n, size_t until,
        size_t *covered, size_t *first)
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
