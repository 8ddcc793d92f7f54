/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag: reports what is wrong with a text that a person wrote, so that the person can correct it: file, line, column,
 * the offending text and what would be right.
 */
#ifndef VETHGUARD_BASE_DIAG_H
#define VETHGUARD_BASE_DIAG_H

#include <stdio.h>

#include "vethguard/base/slice.h"

#define DIAG_FILE_MAX 256
#define DIAG_MESSAGE_MAX 512
#define DIAG_MAX 32 /* messages kept per load; more are only counted */

struct diag {
	char file[DIAG_FILE_MAX];
	unsigned line;                  /* from 1; 0: the file as a whole */
	unsigned column;                /* from 1 */
	char message[DIAG_MESSAGE_MAX]; /* escaped; says what is wrong, quotes the text, says what would be right */
};

struct diag_list {
	struct diag items[DIAG_MAX];
	size_t count;   /* items in use */
	size_t dropped; /* messages beyond DIAG_MAX */
};

void diag_add(struct diag_list *list, const char *file, unsigned line, unsigned column, const char *format, ...)
        __attribute__((format(printf, 5, 6)));
/* Prints one line per item: "file:line:column: error: message". */
void diag_print(const struct diag_list *list, FILE *out);
/* The candidate that word was probably meant to be, or NULL. candidates ends with NULL. Tried in this order:
 * - the closest by edit distance, if it is a likely typing error (at most 2 edits and fewer than half the letters);
 * - one with the same letters in another order (at least 4 letters);
 * - the only one that begins with word (at least 3 letters). */
const char *diag_nearest(struct slice word, const char *const candidates[]);

/* Writes "a, b or c" (last: "or") into out, as far as size bytes allow; then "a, b and 7 more". words ends with NULL.
 * Returns out. */
const char *diag_words(const char *const words[], const char *last, char *out, size_t size);

#define DIAG_WORDS_SHORT 240 /* most bytes of a list beside a suggestion */
#define DIAG_HINT_MAX 512    /* with the NUL */

/* A set of known words, and the words a message uses for it. */
struct diag_known {
	const char *const *words;   /* ends with NULL */
	const char *what;           /* before the list: "known here" */
	const char *before, *after; /* around the suggested word ("preset:", "${", "}"), or NULL */
};

/* Writes into out the text that follows "... NAME is none": the nearest word if there is one, and the list of all
 * words. Beside a suggestion the list is left out if it is longer than DIAG_WORDS_SHORT. "" if there is neither.
 * Returns out. */
const char *diag_hint(struct slice word, const struct diag_known *known, char out[DIAG_HINT_MAX]);

#endif
