/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table. Widths are fixed by the terminal, not by the rows, so that rows appear while they are
 * read and a log of any size takes no memory. In a pipe nothing is cut and a long text pushes its
 * row's later columns to the right.
 */
#include <string.h>
#include <time.h>

#include "audit_commands.h"

#define GAP 2
#define DECISION_WIDTH 8
#define BYTES_WIDTH 7
#define NARROW 100 /* columns below which only the time of day is shown */
#define WHAT_MIN 16
#define WHY_MIN 8

void audit_table_init(struct audit_table *table, FILE *out, int width, bool colour)
{
	int rest;

	*table = (struct audit_table){.out = out, .colour = colour, .cut = width > 0};
	table->time = table->cut && width < NARROW ? 8 : 19;
	table->sandbox = table->cut && width < NARROW ? 10 : 16;
	table->what = 60;
	table->why = 32;
	if (!table->cut)
		return;
	rest = width - table->time - table->sandbox - DECISION_WIDTH - BYTES_WIDTH - 5 * GAP;
	table->why = rest / 3 > WHY_MIN ? rest / 3 : WHY_MIN;
	table->what = rest - table->why > WHAT_MIN ? rest - table->why : WHAT_MIN;
}

/* text in a column of width, cut with "..." where the table is cut. */
static void put(const struct audit_table *table, const char *text, int width)
{
	int n = (int)strlen(text);

	if (table->cut && n > width)
		fprintf(table->out, "%.*s...%*s", width - 3, text, GAP, "");
	else
		fprintf(table->out, "%-*s%*s", width, text, GAP, "");
}

static void put_time(const struct audit_table *table, int64_t time_ms)
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm tm;
	char text[32] = "?";

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), table->time == 8 ? "%H:%M:%S" : "%F %T", &tm);
	put(table, text, table->time);
}

static const char *colour(const struct audit_table *table, enum audit_decision decision)
{
	if (!table->colour)
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

static void put_decision(const struct audit_table *table, enum audit_decision decision)
{
	const char *on = colour(table, decision);

	fputs(on, table->out);
	fprintf(table->out, "%-*s", DECISION_WIDTH, audit_decision_name(decision));
	fprintf(table->out, "%s%*s", *on ? "\033[0m" : "", GAP, "");
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

static void put_head(struct audit_table *table)
{
	if (table->head_done)
		return;
	table->head_done = true;
	put(table, "TIME", table->time);
	put(table, "SANDBOX", table->sandbox);
	put(table, "WHAT", table->what);
	put(table, "DECISION", DECISION_WIDTH);
	put(table, "RULE OR REASON", table->why);
	fprintf(table->out, "%*s\n", BYTES_WIDTH, "BYTES");
}

void audit_table_print(struct audit_table *table, const struct audit_row *row)
{
	char bytes[32];

	put_head(table);
	put_time(table, row->time_ms);
	put(table, row->sandbox, table->sandbox);
	put(table, row->what, table->what);
	put_decision(table, row->decision);
	put(table, row->why, table->why);
	format_bytes(row, bytes, sizeof(bytes));
	fprintf(table->out, "%*s\n", BYTES_WIDTH, bytes);
}
