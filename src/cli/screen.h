/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen: tables on a terminal. A text that does not fit its column continues in the next line of
 * the row instead of being cut. Texts are printable ASCII: the caller has escaped them.
 */
#ifndef VETHGUARD_SRC_CLI_SCREEN_H
#define VETHGUARD_SRC_CLI_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#define SCREEN_WIDTH_DEFAULT 80
#define SCREEN_WIDTH_MIN 40 /* a narrower terminal wraps by itself */
#define SCREEN_WIDTH_MAX 1000
#define SCREEN_GAP 2        /* blanks between columns */
#define SCREEN_LINES_MAX 12 /* of a text from a sandbox, so that it cannot fill the screen */

/* Columns of the terminal at standard output, from COLUMNS or from the terminal. 0: it is not a
 * terminal, and each row should be one line, for a program or a file. */
int screen_width(void);
/* True if it is a terminal with colors (TERM is not "dumb") and NO_COLOR is not set. */
bool screen_has_color(void);

struct screen_cell {
	const char *text;
	int width;
	const char *color; /* an escape sequence before its first line; NULL: none */
	const char *below; /* further text, in lines of its own below the first; NULL: none */
};
#define SCREEN_INDENT 2 /* of the text below */

/* Prints one row with as many lines as its longest cell needs; no line ends in blanks. A text
 * longer than lines_max lines ends in "..."; 0: no bound. */
void screen_row(FILE *out, const struct screen_cell *cells, size_t count, size_t lines_max);

#endif
