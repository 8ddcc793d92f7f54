/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table. The terminal, not the rows, fixes the widths: rows appear while they are read, and a
 * log of any size takes no memory.
 *
 * On a terminal a long text continues in the next line. If there is no room for all columns, the
 * reason stands below its subject, bytes are left out, and the day is printed once. In a pipe each
 * row is one line, nothing is cut, and a long text moves the row's later columns to the right.
 */
#include <string.h>
#include <time.h>

#include "cli/audit/audit.h"
#include "cli/screen.h"

#define GAP SCREEN_GAP
#define DECISION_WIDTH 8
#define BYTES_WIDTH 7
#define TIME_OF_DAY 8
#define DAY_AND_TIME 19
#define SANDBOX_WIDTH 16
#define SANDBOX_NARROW 12
#define WIDE 120  /* columns from which on a reason has a column of its own */
#define WIDER 150 /* ... and the day too */

void audit_table_init(struct audit_table *table, FILE *out, int width, bool color)
{
	int rest;

	*table = (struct audit_table){.out = out, .color = color, .wraps = width > 0};
	table->time = DAY_AND_TIME;
	table->sandbox = SANDBOX_WIDTH;
	table->what = 60;
	table->why = 32;
	if (!table->wraps)
		return;
	table->stacked = width < WIDE;
	if (width < WIDER)
		table->time = TIME_OF_DAY;
	if (table->stacked) {
		table->sandbox = SANDBOX_NARROW;
		table->what = width - table->time - table->sandbox - DECISION_WIDTH - 3 * GAP;
		return;
	}
	rest = width - table->time - table->sandbox - DECISION_WIDTH - BYTES_WIDTH - 5 * GAP;
	table->why = rest * 3 / 7;
	table->what = rest - table->why;
}

/* Prints text in a column of this width. */
static void put(const struct audit_table *table, const char *text, int width)
{
	fprintf(table->out, "%-*s%*s", width, text, GAP, "");
}

/* If rows have only the time of day, a line with the day precedes the first row of that day. */
static void format_time(struct audit_table *table, int64_t time_ms, char *out, size_t out_size)
{
	time_t seconds = (time_t)(time_ms / 1000);
	char day[sizeof(table->day)] = "";
	struct tm tm;

	snprintf(out, out_size, "?");
	if (!localtime_r(&seconds, &tm))
		return;
	strftime(out, out_size, table->time == TIME_OF_DAY ? "%H:%M:%S" : "%F %T", &tm);
	strftime(day, sizeof(day), "%F", &tm);
	if (table->time != TIME_OF_DAY || strcmp(day, table->day) == 0)
		return;
	memcpy(table->day, day, sizeof(day));
	fprintf(table->out, "%s\n", day);
}

static const char *color(const struct audit_table *table, enum audit_decision decision)
{
	if (!table->color)
		return "";
	switch (decision) {
	case AUDIT_ALLOWED:
		return "\033[32m";
	case AUDIT_DENIED:
	case AUDIT_DROPPED:
		return "\033[31m";
	case AUDIT_FINDING:
		return "\033[1;31m";
	case AUDIT_OBSERVED:
	case AUDIT_FAILED:
		return "\033[33m";
	default:
		return "";
	}
}

static void format_bytes(const struct audit_row *row, char *out, size_t out_size)
{
	static const char units[] = "kMGTPE";
	double v = (double)row->bytes;
	size_t unit = 0;

	if (!row->has_bytes || row->bytes < 0) {
		out[0] = '\0';
		return;
	}
	if (row->bytes < 1000) {
		snprintf(out, out_size, "%d", (int)row->bytes);
		return;
	}
	for (v /= 1000; v >= 999.5 && unit + 1 < sizeof(units) - 1; v /= 1000)
		unit++;
	snprintf(out, out_size, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[unit]);
}

static const char *const heads[] = {
        "TIME", "SANDBOX", "WHAT", "DECISION", "RULE OR REASON", "BYTES"};
enum { TIME, SANDBOX, WHAT, DECISION, WHY, BYTES, COLUMNS };

static void put_line(
        const struct audit_table *table, const char *const texts[COLUMNS], const char *on)
{
	put(table, texts[TIME], table->time);
	put(table, texts[SANDBOX], table->sandbox);
	put(table, texts[WHAT], table->what);
	fprintf(table->out, "%s%-*s%s%*s", on, DECISION_WIDTH, texts[DECISION],
	        *on ? "\033[0m" : "", GAP, "");
	put(table, texts[WHY], table->why);
	fprintf(table->out, "%*s\n", BYTES_WIDTH, texts[BYTES]);
}

static void put_columns(
        const struct audit_table *table, const char *const texts[COLUMNS], const char *on)
{
	char bytes[BYTES_WIDTH + 1];
	const struct screen_cell cells[] = {{texts[TIME], table->time, NULL, NULL},
	        {texts[SANDBOX], table->sandbox, NULL, NULL},
	        {texts[WHAT], table->what, NULL, NULL},
	        {texts[DECISION], DECISION_WIDTH, *on ? on : NULL, NULL},
	        {texts[WHY], table->why, NULL, NULL}, {bytes, BYTES_WIDTH, NULL, NULL}};

	snprintf(bytes, sizeof(bytes), "%*s", *texts[BYTES] ? BYTES_WIDTH : 0, texts[BYTES]);
	screen_row(table->out, cells, COLUMNS, SCREEN_LINES_MAX);
}

/* Prints the reason below its subject. */
static void put_stacked(
        const struct audit_table *table, const char *const texts[COLUMNS], const char *on)
{
	const struct screen_cell cells[] = {{texts[TIME], table->time, NULL, NULL},
	        {texts[SANDBOX], table->sandbox, NULL, NULL},
	        {texts[DECISION], DECISION_WIDTH, *on ? on : NULL, NULL},
	        {texts[WHAT], table->what, NULL, texts[WHY]}};

	screen_row(table->out, cells, sizeof(cells) / sizeof(cells[0]), SCREEN_LINES_MAX);
}

static void put_texts(
        const struct audit_table *table, const char *const texts[COLUMNS], const char *on)
{
	(table->stacked ? put_stacked : table->wraps ? put_columns : put_line)(table, texts, on);
}

void audit_table_print(struct audit_table *table, const struct audit_row *row)
{
	char bytes[32], when[32];

	if (!table->head_done)
		put_texts(table, heads, "");
	table->head_done = true;
	format_time(table, row->time_ms, when, sizeof(when));
	format_bytes(row, bytes, sizeof(bytes));
	put_texts(table,
	        (const char *const[COLUMNS]){[TIME] = when,
	                [SANDBOX] = row->sandbox,
	                [WHAT] = row->what,
	                [DECISION] = audit_decision_name(row->decision),
	                [WHY] = row->why,
	                [BYTES] = bytes},
	        color(table, row->decision));
}
