/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on a terminal; see screen.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "screen.h"
#include "vethguard/base/slice.h"

#define CELLS_MAX 8
#define CUT "..."

static int bounded(uint64_t width)
{
	return width < SCREEN_WIDTH_MIN ? SCREEN_WIDTH_MIN : (int)width;
}

int screen_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (columns && slice_to_u64(slice_from_string(columns), SCREEN_WIDTH_MAX, &n) && n > 0)
		return bounded(n);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return bounded(size.ws_col < SCREEN_WIDTH_MAX ? size.ws_col : SCREEN_WIDTH_MAX);
	return SCREEN_WIDTH_DEFAULT;
}

bool screen_has_colour(void)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) &&
	       !(term && strcmp(term, "dumb") == 0);
}

/* How many bytes of text make the next line: up to a blank, or behind a separator of addresses, if
 * there is one in the second half of the line. */
static size_t line_length(const char *text, size_t width)
{
	if (strlen(text) <= width)
		return strlen(text);
	for (size_t n = width; n > width / 2; n--)
		if (text[n] == ' ' || strchr("/?&,;", text[n - 1]))
			return n;
	return width;
}

/* Where a cell is. */
struct place {
	const char *rest;
	size_t lines;
};

static void put_piece(FILE *out, const struct screen_cell *cell, struct place *at, int *owed)
{
	const size_t width = cell->width > 0 ? (size_t)cell->width : *at->rest != '\0';
	const bool last = at->lines + 1 == SCREEN_LINES_MAX && strlen(at->rest) > width;
	size_t n = last && width > strlen(CUT) ? width - strlen(CUT) : line_length(at->rest, width);
	const bool colour = cell->colour && at->lines == 0 && n > 0;

	if (n > 0)
		fprintf(out, "%*s%s%.*s%s%s", *owed, "", colour ? cell->colour : "", (int)n,
		        at->rest, last ? CUT : "", colour ? "\033[0m" : "");
	if (n > 0)
		*owed = 0;
	*owed += (int)(width - n) - (last ? (int)strlen(CUT) : 0) + SCREEN_GAP;
	at->lines++;
	at->rest += last ? strlen(at->rest) : n;
	while (*at->rest == ' ')
		at->rest++;
}

void screen_row(FILE *out, const struct screen_cell *cells, size_t count)
{
	struct place places[CELLS_MAX];
	bool more = true;

	if (count > CELLS_MAX)
		count = CELLS_MAX;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){cells[i].text, 0};
	while (more) {
		int owed = 0;

		more = false;
		for (size_t i = 0; i < count; i++) {
			put_piece(out, &cells[i], &places[i], &owed);
			more |= *places[i].rest != '\0';
		}
		fputc('\n', out);
	}
}
