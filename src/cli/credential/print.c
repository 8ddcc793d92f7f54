/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the daemon's answers about credentials. Names, sources and sentences are escaped. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/credential/credential.h"
#include "cli/screen.h"
#include "vethguard/base/slice.h"

#define CELL_MAX 1024
#define COLUMN_MIN 8
#define KEY_WIDTH 12

enum { SANDBOX, NAME, STATE, SOURCE, FETCHED, ENDS, USES, ERROR, COLUMNS };

struct row {
	char cells[COLUMNS][CELL_MAX];
};

struct table {
	int widths[COLUMNS];
};

static void put_text(char *cell, const json_t *object, const char *member)
{
	slice_escape(slice_from_string(control_text(object, member)), cell, CELL_MAX);
}

/* Writes a time such as "2026-11-20T17:29:58.123Z" as its distance from now: "41s", "5m", "3h",
 * "2d"; "-" if there is none. */
static void put_distance(char *cell, const json_t *object, const char *member)
{
	static const struct {
		long long s;
		char unit;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	struct tm tm = {0};
	long long s;
	size_t i = 0;

	snprintf(cell, CELL_MAX, "-");
	if (!strptime(control_text(object, member), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	s = (long long)(timegm(&tm) - time(NULL));
	s = s < 0 ? -s : s;
	while (units[i].s > 1 && s < 2 * units[i].s)
		i++;
	snprintf(cell, CELL_MAX, "%lld%c", s / units[i].s, units[i].unit);
}

static void put_count(char *cell, const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);

	if (json_is_integer(value))
		snprintf(cell, CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		snprintf(cell, CELL_MAX, "-");
}

static void fill(struct row *row, const char *sandbox, const json_t *credential)
{
	slice_escape(slice_from_string(sandbox), row->cells[SANDBOX], CELL_MAX);
	put_text(row->cells[NAME], credential, "name");
	put_text(row->cells[STATE], credential, "state");
	put_text(row->cells[SOURCE], credential, "source");
	put_distance(row->cells[FETCHED], credential, "fetched");
	put_distance(row->cells[ENDS], credential, "ends");
	put_count(row->cells[USES], credential, "uses");
	put_text(row->cells[ERROR], credential, "error");
	if (!row->cells[ERROR][0])
		snprintf(row->cells[ERROR], CELL_MAX, "-");
}

/* Calls each for the table's head and for every credential. */
static void for_each_row(const json_t *answers,
        void (*each)(struct table *table, const struct row *row), struct table *table)
{
	static struct row row;

	row = (struct row){{"SANDBOX", "CREDENTIAL", "STATE", "SOURCE", "AGE", "ENDS IN", "USES",
	        "LAST ERROR"}};
	each(table, &row);
	for (size_t i = 0; i < json_array_size(answers); i++) {
		const json_t *answer = json_array_get(answers, i);
		const json_t *list = json_object_get(answer, "credentials");

		for (size_t k = 0; k < json_array_size(list); k++) {
			fill(&row, control_text(answer, "name"), json_array_get(list, k));
			each(table, &row);
		}
	}
}

static void widen(struct table *table, const struct row *row)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if ((int)strlen(row->cells[i]) > table->widths[i])
			table->widths[i] = (int)strlen(row->cells[i]);
}

static void put_row(struct table *table, const struct row *row)
{
	struct screen_cell cells[COLUMNS];

	for (size_t i = 0; i < COLUMNS; i++)
		cells[i] = (struct screen_cell){row->cells[i], table->widths[i], NULL, NULL};
	screen_row(stdout, cells, COLUMNS, 0);
}

/* Narrows the widest columns until the table fits the screen; their texts continue on further
 * lines. */
static void fit(int widths[COLUMNS], int screen)
{
	for (;;) {
		int *widest = &widths[0], total = -SCREEN_GAP;

		for (size_t i = 0; i < COLUMNS; i++) {
			total += widths[i] + SCREEN_GAP;
			widest = widths[i] > *widest ? &widths[i] : widest;
		}
		if (total <= screen || *widest <= COLUMN_MIN)
			return;
		--*widest;
	}
}

void credential_print_list(const json_t *answers)
{
	const int screen = screen_width();
	struct table table = {{0}};

	for_each_row(answers, widen, &table);
	if (screen)
		fit(table.widths, screen);
	for_each_row(answers, put_row, &table);
}

void credential_put(const char *key, const char *text)
{
	const int screen = screen_width();
	char shown[4 * CELL_MAX];
	const struct screen_cell cells[] = {{key, KEY_WIDTH, NULL, NULL},
	        {slice_escape(slice_from_string(text), shown, sizeof(shown)),
	                screen - KEY_WIDTH - SCREEN_GAP, NULL, NULL}};

	if (!*text)
		return;
	if (screen)
		screen_row(stdout, cells, sizeof(cells) / sizeof(cells[0]), 0);
	else
		printf("%-*s%*s%s\n", KEY_WIDTH, key, SCREEN_GAP, "", shown);
}

static void put_member(const char *key, const json_t *object, const char *member)
{
	char count[CELL_MAX];

	put_count(count, object, member);
	credential_put(key, json_is_integer(json_object_get(object, member))
	                            ? count
	                            : control_text(object, member));
}

void credential_print(const char *sandbox, const json_t *credential)
{
	const json_t *to = json_object_get(credential, "to");

	credential_put("sandbox", sandbox);
	put_member("credential", credential, "name");
	put_member("state", credential, "state");
	put_member("source", credential, "source");
	put_member("sent as", credential, "sent_as");
	for (size_t i = 0; i < json_array_size(to); i++)
		credential_put(i ? "" : "to", json_string_value(json_array_get(to, i)));
	if (json_array_size(to) == 0)
		credential_put("to", "nowhere: no rule names it");
	put_member("fetched", credential, "fetched");
	put_member("ends", credential, "ends");
	put_member("fingerprint", credential, "fingerprint");
	put_member("uses", credential, "uses");
	put_member("last used", credential, "last_used");
	put_member("fetches", credential, "fetches");
	put_member("failures", credential, "failures");
	put_member("last error", credential, "error");
	put_member("failed", credential, "failed");
}
