/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages are escaped when they are added, so that a policy file full of terminal controls can be
 * quoted. Backslashes stay as they are: a caller who has run its text through slice_escape() must
 * not see it escaped twice.
 */
#include <stdarg.h>

#include "vethguard/base/diag.h"

#define NEAREST_WORD_MAX 64 /* letters; nobody mistypes a key as long as that */
#define NEAREST_EDITS_MAX 2
#define NEAREST_BEGINNING 3 /* letters; with fewer, nothing is meant in particular */

void diag_add(struct diag_list *list, const char *file, unsigned line, unsigned column,
        const char *format, ...)
{
	char raw[DIAG_MESSAGE_MAX];
	struct diag *d;
	va_list args;

	if (list->count == DIAG_MAX) {
		list->dropped++;
		return;
	}
	d = &list->items[list->count++];
	d->line = line;
	d->column = column;
	slice_escape_controls(slice_from_string(file), d->file, sizeof(d->file));
	va_start(args, format);
	if (vsnprintf(raw, sizeof(raw), format, args) < 0)
		raw[0] = '\0';
	va_end(args);
	slice_escape_controls(slice_from_string(raw), d->message, sizeof(d->message));
}

void diag_print(const struct diag_list *list, FILE *out)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct diag *d = &list->items[i];

		if (d->line)
			fprintf(out, "%s:%u:%u: error: %s\n", d->file, d->line, d->column,
			        d->message);
		else
			fprintf(out, "%s: error: %s\n", d->file, d->message);
	}
	if (list->dropped)
		fprintf(out, "%zu more errors are not shown\n", list->dropped);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that lead from a to b, each at most
 * once per letter. Three rows of the usual table are kept: the swap looks two rows back. */
static size_t edit_distance(struct slice a, struct slice b)
{
	size_t rows[3][NEAREST_WORD_MAX + 1];

	for (size_t j = 0; j <= b.n; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t *now = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];
		const size_t *two_above = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			now[j] = least(least(above[j], now[j - 1]) + 1,
			        above[j - 1] + (a.p[i - 1] != b.p[j - 1]));
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				now[j] = least(now[j], two_above[j - 2] + 1);
		}
	}
	return rows[a.n % 3][b.n];
}

/* The only candidate that begins with word. */
static const char *only_one_that_begins(struct slice word, const char *const candidates[])
{
	const char *found = NULL;

	if (word.n < NEAREST_BEGINNING)
		return NULL;
	for (; *candidates; candidates++) {
		struct slice c = slice_from_string(*candidates);

		if (c.n > NEAREST_WORD_MAX || !slice_starts_with(c, word))
			continue;
		if (found)
			return NULL;
		found = *candidates;
	}
	return found;
}

const char *diag_nearest(struct slice word, const char *const candidates[])
{
	const char *const *all = candidates;
	const char *best = NULL;
	size_t best_distance = NEAREST_EDITS_MAX + 1;

	if (word.n > NEAREST_WORD_MAX)
		return NULL;
	for (; *candidates; candidates++) {
		struct slice c = slice_from_string(*candidates);
		size_t distance;

		if (c.n > NEAREST_WORD_MAX)
			continue;
		distance = edit_distance(word, c);
		if (distance < best_distance && 2 * distance < word.n) {
			best = *candidates;
			best_distance = distance;
		}
	}
	return best ? best : only_one_that_begins(word, all);
}
