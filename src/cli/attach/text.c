/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the daemon's answers for people. Names and labels may contain anything that the person who
 * attached the sandbox wrote, so every text is escaped before it reaches a terminal. Columns are as
 * wide as their contents; they are narrower if the terminal is too narrow.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/attach/commands.h"
#include "cli/screen.h"
#include "vethguard/base/slice.h"

#define CELL_MAX 1024
#define COLUMN_MIN 8 /* no column becomes narrower */
#define SHORT_ID 12
#define KEY_WIDTH 13 /* "  connections" */

static const char *escaped(const char *text, char *out, size_t out_size)
{
	return slice_escape(slice_from_string(text), out, out_size);
}

void control_print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
	putchar('\n');
}

void control_print_lines(FILE *out, const char *prefix, const json_t *lines)
{
	char text[1024];
	const json_t *line;
	size_t i;

	for (i = 0; i < json_array_size(lines); i++) {
		line = json_array_get(lines, i);
		const char *value = json_string_value(line);

		if (value)
			fprintf(out, "%s%s\n", prefix,
			        slice_escape_controls(
			                slice_from_string(value), text, sizeof(text)));
	}
}

/* Writes "docker web", "pid 77", "interface veth1", "netns /run/netns/x". */
static void where(const json_t *sandbox, char *out, size_t out_size)
{
	const json_t *a = json_object_get(sandbox, "attachment");
	const json_t *container = json_object_get(a, "container");
	const char *kind = control_text(a, "kind");
	char name[CELL_MAX];

	if (json_is_object(container)) {
		const char *shown = control_text(container, "name");
		char id[SHORT_ID + 1], engine[CELL_MAX];

		snprintf(id, sizeof(id), "%s", control_text(container, "id"));
		escaped(*shown ? shown : id, name, sizeof(name));
		escaped(control_text(container, "engine"), engine, sizeof(engine));
		snprintf(out, out_size, "%.16s %s", engine, name);
	} else if (strcmp(kind, "pid") == 0) {
		snprintf(out, out_size, "pid %lld",
		        (long long)json_integer_value(json_object_get(a, "pid")));
	} else if (strcmp(kind, "session") == 0) {
		const json_t *from = json_object_get(a, "from");
		const char *first = json_string_value(json_array_get(from, 0));

		snprintf(out, out_size, "gateway%s%s%s", first ? ", from " : "",
		        first ? escaped(first, name, sizeof(name)) : "",
		        json_array_size(from) > 1 ? " and others" : "");
	} else {
		snprintf(out, out_size, "%.16s %s", kind,
		        escaped(control_text(a, kind), name, sizeof(name)));
	}
}

enum { NAME, STATE, ATTACHED, POLICY, CREATED, EXPIRES, COLUMNS };

struct row {
	char cells[COLUMNS][CELL_MAX];
};

/* Writes "2026-11-20T17:29:58.123Z" without the fraction. */
static void put_time(char *out, const char *text)
{
	size_t n = strcspn(text, ".");

	snprintf(out, CELL_MAX, "%.*s%s", (int)(n < 24 ? n : 24), text, *text ? "Z" : "never");
}

static void fill(struct row *row, const json_t *sandbox)
{
	const json_t *policy = json_object_get(sandbox, "policy");
	char name[CELL_MAX - 24];

	escaped(control_text(sandbox, "name"), row->cells[NAME], CELL_MAX);
	escaped(control_text(sandbox, "state"), row->cells[STATE], CELL_MAX);
	where(sandbox, row->cells[ATTACHED], CELL_MAX);
	escaped(control_text(policy, "name"), name, sizeof(name));
	snprintf(row->cells[POLICY], CELL_MAX, "%s (%lld)", name,
	        (long long)json_integer_value(json_object_get(policy, "generation")));
	put_time(row->cells[CREATED], control_text(sandbox, "created"));
	put_time(row->cells[EXPIRES], control_text(sandbox, "expires"));
}

static void widen(int widths[COLUMNS], const struct row *row)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if ((int)strlen(row->cells[i]) > widths[i])
			widths[i] = (int)strlen(row->cells[i]);
}

static void put_row(const int widths[COLUMNS], const struct row *row)
{
	for (size_t i = 0; i + 1 < COLUMNS; i++)
		printf("%-*s  ", widths[i], row->cells[i]);
	printf("%s\n", row->cells[COLUMNS - 1]);
}

/* Prints a row on a terminal, without columns of width 0. */
static void put_fitted(const int widths[COLUMNS], const struct row *row)
{
	struct screen_cell cells[COLUMNS];
	size_t n = 0;

	for (size_t i = 0; i < COLUMNS; i++)
		if (widths[i] > 0)
			cells[n++] = (struct screen_cell){row->cells[i], widths[i], NULL, NULL};
	screen_row(stdout, cells, n, 0);
}

static int total(const int widths[COLUMNS])
{
	int n = -SCREEN_GAP;

	for (size_t i = 0; i < COLUMNS; i++)
		if (widths[i] > 0)
			n += widths[i] + SCREEN_GAP;
	return n;
}

/* Fits the columns into the terminal: drops the least needed column first, then narrows the widest,
 * whose texts continue in further lines. */
static void fit(int widths[COLUMNS], int screen)
{
	if (total(widths) > screen)
		widths[CREATED] = 0;
	while (total(widths) > screen) {
		int *widest = &widths[0];

		for (size_t i = 0; i < COLUMNS; i++)
			if (i != STATE && i != EXPIRES && widths[i] > *widest)
				widest = &widths[i];
		if (*widest <= COLUMN_MIN)
			return;
		--*widest;
	}
}

void control_print_list(const json_t *sandboxes)
{
	static const struct row head = {
	        {"NAME", "STATE", "ATTACHED TO", "POLICY", "CREATED", "EXPIRES"}};
	const int screen = screen_width();
	void (*put)(const int widths[COLUMNS], const struct row *row) =
	        screen ? put_fitted : put_row;
	int widths[COLUMNS] = {0};
	const json_t *sandbox;
	struct row row;
	size_t i;

	widen(widths, &head);
	for (i = 0; i < json_array_size(sandboxes); i++) {
		sandbox = json_array_get(sandboxes, i);
		fill(&row, sandbox);
		widen(widths, &row);
	}
	if (screen)
		fit(widths, screen);
	put(widths, &head);
	for (i = 0; i < json_array_size(sandboxes); i++) {
		sandbox = json_array_get(sandboxes, i);
		fill(&row, sandbox);
		put(widths, &row);
	}
}

/* text has to be printable. */
static void put_shown(const char *key, const char *text)
{
	const int screen = screen_width();
	const struct screen_cell cells[] = {
	        {key, KEY_WIDTH, NULL, NULL}, {text, screen - KEY_WIDTH - SCREEN_GAP, NULL, NULL}};

	if (screen)
		screen_row(stdout, cells, sizeof(cells) / sizeof(cells[0]), 0);
	else
		printf("%-*s%*s%s\n", KEY_WIDTH, key, SCREEN_GAP, "", text);
}

static void put_line(const char *key, const char *text)
{
	char shown[4096];

	if (*text)
		put_shown(key, escaped(text, shown, sizeof(shown)));
}

static void put_number(const char *key, const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);
	char shown[32];

	snprintf(shown, sizeof(shown), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	if (json_is_integer(value))
		put_shown(key, shown);
}

static void put_pairs(const char *key, const json_t *pairs)
{
	const char *shown = key;
	char name[128], value[4096], pair[sizeof(name) + sizeof(value)];
	const char *member;
	json_t *text;

	for (void *at = json_object_iter((json_t *)(uintptr_t)pairs); at;
	        at = json_object_iter_next((json_t *)(uintptr_t)pairs, at)) {
		member = json_object_iter_key(at);
		text = json_object_iter_value(at);
		snprintf(pair, sizeof(pair), "%s=%s", escaped(member, name, sizeof(name)),
		        escaped(json_string_value(text) ? json_string_value(text) : "", value,
		                sizeof(value)));
		put_shown(shown, pair);
		shown = "";
	}
}

/* Prints the texts of a list, one per line. */
static void put_list(const char *key, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		put_line(key, text ? text : "");
		key = "";
	}
}

static void put_numbers(const char *key, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		char shown[24];

		snprintf(shown, sizeof(shown), "%" JSON_INTEGER_FORMAT,
		        json_integer_value(json_array_get(list, i)));
		put_line(key, shown);
		key = "";
	}
}

void control_print_sandbox(const json_t *sandbox)
{
	const json_t *policy = json_object_get(sandbox, "policy");
	const json_t *addresses = json_object_get(sandbox, "addresses");
	const json_t *worker = json_object_get(sandbox, "worker");
	char at[CELL_MAX * 2];

	where(sandbox, at, sizeof(at));
	put_line("name", control_text(sandbox, "name"));
	put_line("id", control_text(sandbox, "id"));
	put_line("state", control_text(sandbox, "state"));
	put_line("reason", control_text(sandbox, "reason"));
	put_shown("attached to", at); /* escaped already */
	put_line("policy", control_text(policy, "name"));
	put_line("  file", control_text(policy, "path"));
	put_line("  fingerprint", control_text(policy, "fingerprint"));
	put_number("  generation", policy, "generation");
	if (json_is_true(json_object_get(policy, "observe")))
		put_line("  mode", "observe: only what no policy can permit is refused");
	put_pairs("credentials", json_object_get(policy, "credentials"));
	put_list("exposes", json_object_get(policy, "exposes"));
	put_pairs("labels", json_object_get(sandbox, "labels"));
	put_pairs("vars", json_object_get(sandbox, "vars"));
	put_line("created", control_text(sandbox, "created"));
	put_line("expires", control_text(sandbox, "expires"));
	put_line("gate", control_text(addresses, "gate4"));
	put_line("", control_text(addresses, "gate6"));
	put_line("sandbox", control_text(addresses, "sandbox4"));
	put_line("", control_text(addresses, "sandbox6"));
	if (json_integer_value(json_object_get(sandbox, "proxy_port")))
		put_number("proxy port", sandbox, "proxy_port");
	put_number("worker", worker, "pid");
	put_numbers("  further", json_object_get(worker, "further"));
	put_number("  restarts", worker, "restarts");
	put_number("  retired", worker, "retired");
	put_number("fence mended", json_object_get(sandbox, "fence"), "mended");
}

/* Prints what was dropped above a limit. */
static void put_beyond(const char *key, const json_t *stats, const char *what, const char *limit)
{
	const json_t *count = json_object_get(json_object_get(stats, "beyond_limits"), what);
	const json_t *bound = json_object_get(json_object_get(stats, "limits"), limit);

	char shown[96];

	snprintf(shown, sizeof(shown),
	        "%" JSON_INTEGER_FORMAT " beyond %" JSON_INTEGER_FORMAT " a second",
	        json_integer_value(count), json_integer_value(bound));
	if (json_is_integer(count) && json_is_integer(bound))
		put_shown(key, shown);
}

/* Prints one line for each limit over a period: "used 3000000 of 10000000 in 3600 s". */
static void put_policy_limits(const json_t *stats, const json_t *worker)
{
	const json_t *limits = json_object_get(stats, "policy_limits"), *limit;
	size_t i;

	if (json_array_size(limits) == 0)
		return;
	put_number("limits met", worker, "limits_met");
	json_array_foreach(limits, i, limit)
	{
		const char *rule = control_text(limit, "rule"),
		           *quota = control_text(limit, "quota");
		char key[64], shown[256];
		int n;

		snprintf(key, sizeof(key), "  %s", control_text(limit, "kind"));
		n = snprintf(shown, sizeof(shown),
		        "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
		        " in %" JSON_INTEGER_FORMAT " s, %s%s",
		        json_integer_value(json_object_get(limit, "used")),
		        json_integer_value(json_object_get(limit, "amount")),
		        json_integer_value(json_object_get(limit, "period_s")),
		        rule && rule[0] ? "rule " : "the policy", rule ? rule : "");
		if (quota && n > 0 && (size_t)n < sizeof(shown))
			snprintf(shown + n, sizeof(shown) - (size_t)n,
			        "; all hosts %" JSON_INTEGER_FORMAT ", %s",
			        json_integer_value(json_object_get(limit, "used_by_hosts")), quota);
		put_shown(key, shown);
	}
}

void control_print_stats(const json_t *stats)
{
	static const char *const kinds[] = {"requests", "tunnels", "queries", "visits"};
	static const struct {
		const char *key, *member;
	} numbers[] = {
	        {"findings", "findings"},
	        {"bytes out", "bytes_out"},
	        {"bytes in", "bytes_in"},
	        {"connections", "connections"},
	        {"  open", "connections_open"},
	        {"names", "names_kept"},
	        {"memory bytes", "heap_bytes"},
	};
	const json_t *worker = json_object_get(stats, "worker");

	put_line("name", control_text(stats, "name"));
	put_line("state", control_text(stats, "state"));
	for (size_t i = 0; json_is_object(worker) && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const json_t *kind = json_object_get(worker, kinds[i]);

		char shown[128];

		snprintf(shown, sizeof(shown),
		        "%" JSON_INTEGER_FORMAT " allowed, %" JSON_INTEGER_FORMAT
		        " denied, %" JSON_INTEGER_FORMAT " failed",
		        json_integer_value(json_object_get(kind, "allowed")),
		        json_integer_value(json_object_get(kind, "denied")),
		        json_integer_value(json_object_get(kind, "failed")));
		put_shown(kinds[i], shown);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		put_number(numbers[i].key, worker, numbers[i].member);
	put_number("dropped", stats, "packets_dropped");
	put_beyond("  connections", stats, "connections", "connections_per_s");
	put_beyond("  queries", stats, "queries", "dns_queries_per_s");
	put_beyond("  datagrams", stats, "datagrams", "udp_datagrams_per_s");
	put_number("  refused", worker, "queries_refused");
	put_number("delayed", worker, "refusals_delayed");
	put_policy_limits(stats, worker);
	put_number("restarts", stats, "restarts");
	put_number("mended", stats, "mended");
}
