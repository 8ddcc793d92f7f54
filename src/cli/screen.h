/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen: tables on a terminal. A text that does not fit its column goes on in the next line of the
 * row instead of being cut. Texts are printable ASCII: whoever fills a cell has escaped it.
 */
#ifndef VETHGUARD_SRC_CLI_SCREEN_H
#define VETHGUARD_SRC_CLI_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#define SCREEN_WIDTH_DEFAULT 80
#define SCREEN_WIDTH_MIN 40 /* a narrower terminal wraps by itself */
#define SCREEN_WIDTH_MAX 1000
#define SCREEN_GAP 2 /* blanks between columns */
#define SCREEN_LINES_MAX \
	12 /* of a text that a sandbox sends, so that it does not fill the screen */

/* Columns of the terminal that standard output is: what COLUMNS says, or else the terminal. 0: it
 * is no terminal, and a program or a file wants each row on one line. */
int screen_width(void);
/* It is a terminal that knows colours (TERM is not "dumb"), and NO_COLOR is not set. */
bool screen_has_colour(void);

struct screen_cell {
	const char *text;
	int width;
	const char *colour; /* an escape sequence before its first line; NULL: none */
	const char *below;  /* further text, in lines of its own behind the first's; NULL: none */
};
#define SCREEN_INDENT 2 /* of what stands below */

/* One row, with as many lines as its longest cell takes; no line ends in blanks. What is beyond
 * lines_max lines of a text is told as "..."; 0: no bound. */
void screen_row(FILE *out, const struct screen_cell *cells, size_t count, size_t lines_max);

#endif
