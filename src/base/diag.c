/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages are escaped when they are added, so that a policy file full of terminal controls can be
 * quoted. Backslashes are kept, because callers' texts may have gone through slice_escape()
 * already.
 */
#include <stdarg.h>

#include "vethguard/base/diag.h"

#define NEAREST_WORD_MAX 64 /* letters; nobody mistypes a longer key */
#define NEAREST_EDITS_MAX 2
#define NEAREST_BEGINNING 3 /* letters; fewer could mean anything */
#define NEAREST_MIXED 4     /* letters; fewer have too many permutations */
#define WORDS_REST 32       /* bytes of " and 4294967295 more" */

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

/* The number of insertions, deletions, replacements and swaps of neighbors that lead from a to b,
 * each at most once per letter. Three rows of the usual table are kept, because the swap looks two
 * rows back. */
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

static void count_letters(struct slice s, unsigned char counts[256])
{
	memset(counts, 0, 256);
	for (size_t i = 0; i < s.n; i++)
		counts[(unsigned char)s.p[i]]++;
}

/* A candidate with the letters of word in another order ("pipy" for "pypi"). */
static const char *mixed_up(struct slice word, const char *const candidates[])
{
	unsigned char want[256], have[256];

	if (word.n < NEAREST_MIXED)
		return NULL;
	count_letters(word, want);
	for (; *candidates; candidates++) {
		struct slice c = slice_from_string(*candidates);

		if (c.n != word.n || c.p[0] != word.p[0])
			continue;
		count_letters(c, have);
		if (memcmp(want, have, sizeof(want)) == 0)
			return *candidates;
	}
	return NULL;
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

		if (word.n > 1 && slice_equals_ignoring_case(word, c))
			return *candidates;
		if (c.n > NEAREST_WORD_MAX)
			continue;
		distance = edit_distance(word, c);
		if (distance < best_distance && 2 * distance < word.n) {
			best = *candidates;
			best_distance = distance;
		}
	}
	if (!best)
		best = mixed_up(word, all);
	return best ? best : only_one_that_begins(word, all);
}

static size_t count_words(const char *const words[])
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* Bytes of "a, b and c". */
static size_t words_length(const char *const words[])
{
	size_t count = count_words(words), n = count > 2 ? 2 * (count - 2) : 0;

	for (size_t i = 0; i < count; i++)
		n += strlen(words[i]);
	return count > 1 ? n + strlen(" and ") : n;
}

const char *diag_words(const char *const words[], const char *last, char *out, size_t size)
{
	size_t count = count_words(words), n = 0;
	bool whole = words_length(words) < size;

	out[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (!whole && n + strlen(words[i]) + 2 + WORDS_REST > size) {
			snprintf(out + n, size - n, "%s%zu more", i ? " and " : "", count - i);
			break;
		}
		if (i > 0 && whole && i + 1 == count)
			n += (size_t)snprintf(out + n, size - n, " %s %s", last, words[i]);
		else
			n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", words[i]);
	}
	return out;
}

const char *diag_hint(struct slice word, const struct diag_known *known, char out[DIAG_HINT_MAX])
{
	const char *near = diag_nearest(word, known->words);
	char list[DIAG_WORDS_SHORT + 1];
	size_t count = count_words(known->words);
	bool listed =
	        near ? count > 1 && words_length(known->words) <= DIAG_WORDS_SHORT : count > 0;

	out[0] = '\0';
	if (listed)
		diag_words(known->words, "and", list, sizeof(list));
	if (near)
		snprintf(out, DIAG_HINT_MAX - 1, "; did you mean \"%s%s%s\"?%s%s%s%s",
		        known->before ? known->before : "", near, known->after ? known->after : "",
		        listed ? " (" : "", listed ? known->what : "", listed ? ": " : "",
		        listed ? list : "");
	else if (listed)
		snprintf(out, DIAG_HINT_MAX, "; %s: %s", known->what, list);
	if (near && listed)
		memcpy(out + strlen(out), ")", 2);
	return out;
}
