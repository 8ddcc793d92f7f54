/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on a terminal; see screen.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/screen.h"
#include "vethguard/base/slice.h"

#define CELLS_MAX 8
#define CUT "..."
#define SEPARATORS "/?&,;:=._-"

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

bool screen_has_color(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
	       !(term && strcmp(term, "dumb") == 0);
}

/* Returns the number of bytes of text for the next line. The line ends before a blank or after a
 * separator of addresses if there is one in its second half. */
static size_t line_length(const char *text, size_t width)
{
	if (strlen(text) <= width)
		return strlen(text);
	for (size_t n = width; n > width / 2; n--)
		if (text[n] == ' ' || strchr(SEPARATORS, text[n - 1]))
			return n;
	return width;
}

/* Position in a cell. */
struct place {
	const char *rest, *below;
	size_t lines; /* of this text */
	size_t lines_max;
	int indent;
	const char *color; /* before its next line; NULL: none */
};

/* Prints one line with at most width columns. Returns the number of columns it fills. */
static int put_text(FILE *out, struct place *at, size_t width, int owed)
{
	const size_t left = strlen(at->rest);
	const bool cut = at->lines + 1 == at->lines_max && left > width;
	const size_t mark = !cut ? 0 : width < strlen(CUT) ? width : strlen(CUT);
	const size_t n = cut ? width - mark : line_length(at->rest, width);
	const char *on = at->color ? at->color : "";
	size_t shown = n;

	while (shown > 0 && at->rest[shown - 1] == ' ' && !mark)
		shown--;
	fprintf(out, "%*s%s%.*s%.*s%s", owed, "", on, (int)shown, at->rest, (int)mark, CUT,
	        *on ? "\033[0m" : "");
	at->lines++;
	at->color = NULL;
	at->rest += cut ? left : n;
	while (*at->rest == ' ')
		at->rest++;
	return (int)(shown + mark);
}

static void put_piece(FILE *out, const struct screen_cell *cell, struct place *at, int *owed)
{
	int filled = 0;

	if (!*at->rest && at->below) {
		*at = (struct place){at->below, NULL, 0, at->lines_max, SCREEN_INDENT, NULL};
		if (cell->width <= SCREEN_INDENT)
			at->indent = 0;
	}
	if (*at->rest) {
		const int room = cell->width - at->indent;

		filled = at->indent +
		         put_text(out, at, room > 0 ? (size_t)room : 1, *owed + at->indent);
		*owed = 0;
	}
	*owed += SCREEN_GAP + (cell->width > filled ? cell->width - filled : 0);
}

void screen_row(FILE *out, const struct screen_cell *cells, size_t count, size_t lines_max)
{
	struct place places[CELLS_MAX];
	bool more = true;

	if (count > CELLS_MAX)
		count = CELLS_MAX;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){
		        cells[i].text, cells[i].below, 0, lines_max, 0, cells[i].color};
	while (more) {
		int owed = 0;

		more = false;
		for (size_t i = 0; i < count; i++) {
			put_piece(out, &cells[i], &places[i], &owed);
			more |= *places[i].rest || (places[i].below && *places[i].below);
		}
		fputc('\n', out);
	}
}
