/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit show`: the audit log as a table, or its lines as they are. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vethguard/base/clock.h"

#include "audit_commands.h"
#include "commands.h"
#include "options.h"

#define STRANGE_SHOWN_MAX 3 /* lines that are no events: so many are named, the rest is counted */

enum { OPTION_DENIED, OPTION_SANDBOX, OPTION_SINCE, OPTION_EVENT, OPTION_JSON, OPTION_HELP };

static const struct option_spec specs[] = {
        {"denied", 'd', NULL, "only what was denied or dropped"},
        {"sandbox", 's', "NAME", "only this sandbox (name or id)"},
        {"since", 'S', "WHEN",
                "only from then on: 30s, 10m, 2h, 1d ago,\nor RFC 3339: 2026-11-20T16:33:36Z"},
        {"event", 'e', "ID",
                "only the event with this id, which a denial tells the\nagent, and findings about "
                "it"},
        {"json", 'j', NULL, "the lines as they are instead of a table"},
        {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

struct show {
	const char *path;
	bool denied, json, help;
	const char *sandbox, *event;
	int64_t since_ms;
	bool plain_output; /* a terminal: only ASCII reaches it */
	struct audit_table table;
	unsigned long strange;
};

static void help(void)
{
	fputs("Usage: vethguard audit show FILE [OPTIONS]\n\n"
	      "Shows the audit log as a table; FILE '-' is standard input. Times are local ones:\n"
	      "with TZ=UTC they are those of the log.\n\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard audit show vethguard.jsonl --denied --since 1h\n"
	      "  vethguard audit show vethguard.jsonl --event 0ef28f6900000006 --json | jq .\n"
	      "  tail -f vethguard.jsonl | vethguard audit show - --sandbox agent-7\n",
	        stdout);
}

static bool take_option(struct show *show, int option, const char *value)
{
	char escaped[128];

	switch (option) {
	case OPTION_DENIED:
		show->denied = true;
		return true;
	case OPTION_SANDBOX:
		show->sandbox = value;
		return true;
	case OPTION_EVENT:
		show->event = value;
		return true;
	case OPTION_JSON:
		show->json = true;
		return true;
	case OPTION_HELP:
		show->help = true;
		return true;
	default:
		if (audit_when_parse(value, clock_real_ms(), &show->since_ms))
			return true;
		fprintf(stderr,
		        "vethguard: error: --since %s is no time: use 10m, 2h, 1d or "
		        "2026-11-20T16:33:36Z\n",
		        slice_escape(slice_from_string(value), escaped, sizeof(escaped)));
		return false;
	}
}

/* Options may stand before and behind FILE. */
static bool parse(struct show *show, char **argv)
{
	struct options o;
	int option;

	options_init(&o, "vethguard audit show", specs, argv);
	for (;;) {
		while ((option = options_next(&o)) >= 0)
			if (!take_option(show, option, o.value))
				return false;
		if (option == OPTIONS_WRONG)
			return false;
		if (!*o.argv)
			break;
		if (show->path) {
			fputs("vethguard: error: one FILE at a time\n", stderr);
			return false;
		}
		show->path = *o.argv++;
	}
	if (show->path || show->help)
		return true;
	fputs("vethguard: error: which FILE? See 'vethguard audit show --help'.\n", stderr);
	return false;
}

static bool wanted(const struct show *show, const json_t *event, const struct audit_row *row)
{
	if (show->event && !audit_row_is_about(event, show->event))
		return false;
	if (show->denied && !row->refused)
		return false;
	if (row->time_ms < show->since_ms)
		return false;
	return !show->sandbox || strcmp(show->sandbox, row->sandbox) == 0 ||
	       strcmp(show->sandbox, row->sandbox_uid) == 0;
}

static void print_json(const struct show *show, const json_t *event, struct slice line)
{
	/* As bytes for a program; for a terminal without what a terminal could obey. */
	if (show->plain_output)
		json_dumpf(event, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	else
		fwrite(line.p, 1, line.n, stdout);
	putchar('\n');
}

static void complain(struct show *show, const struct audit_reader *reader, const char *why)
{
	if (++show->strange <= STRANGE_SHOWN_MAX)
		fprintf(stderr, "vethguard: warning: %s:%lu: %s\n", reader->name, reader->number,
		        why);
}

static void show_line(struct show *show, const struct audit_reader *reader, struct slice line)
{
	json_error_t error;
	json_t *event = NULL;
	struct audit_row row;

	if (!reader->too_long)
		event = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!event)
		complain(show, reader, reader->torn ? "a torn line" : "not JSON");
	else if (!audit_row_read(event, &row))
		complain(show, reader, "not an event of vethguard");
	else if (wanted(show, event, &row) && show->json)
		print_json(show, event, line);
	else if (wanted(show, event, &row))
		audit_table_print(&show->table, &row);
	json_decref(event);
}

static int terminal_width(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return columns && atoi(columns) > 0 ? atoi(columns) : 80;
}

static int run(struct show *show)
{
	struct audit_reader reader;
	struct slice line;
	int rc = audit_reader_open(&reader, show->path);

	if (rc == 0) {
		while ((rc = audit_reader_next(&reader, &line)) == 1) {
			show_line(show, &reader, line);
			/* Somebody watches: rows appear as they come. */
			if (reader.file == stdin)
				fflush(stdout);
		}
		audit_reader_close(&reader);
	}
	if (rc < 0) {
		fprintf(stderr, "vethguard: error: cannot read %s: %s\n", show->path,
		        strerror(-rc));
		return CLI_USAGE;
	}
	if (show->strange > STRANGE_SHOWN_MAX)
		fprintf(stderr, "vethguard: warning: %lu lines in all are not events\n",
		        show->strange);
	return fflush(stdout) != 0 ? CLI_USAGE : show->strange ? 1 : 0;
}

int audit_show(char **argv)
{
	struct show show = {.since_ms = INT64_MIN};
	int width = terminal_width();
	const char *no_colour = getenv("NO_COLOR");

	if (!parse(&show, argv))
		return CLI_USAGE;
	if (show.help) {
		help();
		return 0;
	}
	show.plain_output = width > 0;
	audit_table_init(&show.table, stdout, width, width > 0 && !(no_colour && *no_colour));
	return run(&show);
}
