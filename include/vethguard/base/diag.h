/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag: what is wrong with a text that a person wrote, said so that the person can mend it: file, line, column,
 * the offending text and what would be right.
 */
#ifndef VETHGUARD_BASE_DIAG_H
#define VETHGUARD_BASE_DIAG_H

#include <stdio.h>

#include "vethguard/base/slice.h"

#define DIAG_FILE_MAX 256
#define DIAG_MESSAGE_MAX 512
#define DIAG_MAX 32 /* messages kept of one load; later ones are only counted */

struct diag {
	char file[DIAG_FILE_MAX];
	unsigned line;   /* from 1; 0: the file as a whole */
	unsigned column; /* from 1 */
	char message[DIAG_MESSAGE_MAX]; /* escaped; says what is wrong, shows the text, says what would be right */
};

struct diag_list {
	struct diag items[DIAG_MAX];
	size_t count;   /* items in use */
	size_t dropped; /* messages beyond DIAG_MAX */
};

void diag_add(struct diag_list *list, const char *file, unsigned line, unsigned column, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* One line each: "file:line:column: error: message". */
void diag_print(const struct diag_list *list, FILE *out);
/* The candidate closest to word by edit distance, where it is near enough to be a slip (at most 2 edits and fewer
 * than half the letters), else one of the same letters in another order (4 at least), else the only one that begins with
 * word (3 letters at least), else NULL. candidates ends with NULL. */
const char *diag_nearest(struct slice word, const char *const candidates[]);

/* "a, b or c" (last: "or"), as far as it goes into size bytes; then "a, b and 7 more". words ends with NULL. out. */
const char *diag_words(const char *const words[], const char *last, char *out, size_t size);

#define DIAG_WORDS_SHORT 240 /* bytes of a list that goes into a message beside a suggestion */
#define DIAG_HINT_MAX 512    /* with the NUL */

/* A set of known words, and how a message speaks of it. */
struct diag_known {
	const char *const *words;   /* ends with NULL */
	const char *what;           /* before the list: "known here" */
	const char *before, *after; /* around the suggested word ("preset:", "${", "}"), or NULL */
};

/* What goes behind "... NAME is none": the nearest word, where there is one, and the list of all words. The list is left
 * out beside a suggestion where it is longer than DIAG_WORDS_SHORT. "" where there is neither. out. */
const char *diag_hint(struct slice word, const struct diag_known *known, char out[DIAG_HINT_MAX]);

#endif
