/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit show`: prints the audit log as a table, or its lines unchanged. */
#include <jansson.h>

#include "cli/audit/audit.h"
#include "cli/commands.h"
#include "cli/screen.h"

#define STRANGE_SHOWN_MAX 3 /* lines that are no events: so many are named, others counted */

static const struct option_spec specs[] = {
        {"denied", 'd', NULL, "only what was denied or dropped"},
        {"sandbox", 's', "NAME", "only this sandbox (name or id)"},
        AUDIT_SPEC_SINCE,
        {"event", 'e', "ID",
                "only the event with this id, which a denial tells the\nagent, and findings about "
                "it"},
        {"json", 'j', NULL, "print the matching lines unchanged, not as a table"},
        AUDIT_SPEC_SOCKET,
        {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

struct show {
	struct audit_pick pick;
	bool plain_output; /* standard output is a terminal: only ASCII is written */
	struct audit_table table;
	unsigned long strange;
	bool found; /* an event that was asked for was found */
};

static void help(void)
{
	fputs("Usage: vethguard audit show [FILE] [OPTIONS]\n"
	      "\n"
	      "Shows an audit log as a table: FILE ('-' is standard input), or without FILE the "
	      "log\n"
	      "that the daemon writes now. Times are local; with TZ=UTC they are those of the "
	      "log.\n"
	      "\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  sudo vethguard audit show --denied --sandbox agent-7\n"
	      "  vethguard audit show vethguard.jsonl --denied --since 1h\n"
	      "  vethguard audit show vethguard.jsonl --event 0ef28f6900000006 --json | jq .\n"
	      "  tail -f vethguard.jsonl | vethguard audit show - --sandbox agent-7\n",
	        stdout);
}

static bool wanted(const struct show *show, const json_t *event, const struct audit_row *row)
{
	return audit_pick_wants(&show->pick, event) && (row->refused || !show->pick.denied);
}

/* An id stands in its line unescaped, and usually only one event of very many is asked for: lines
 * without the id are not even parsed. */
static bool cannot_be_wanted(
        const struct show *show, const struct audit_reader *reader, struct slice line)
{
	const char *id = show->pick.event;

	return id && !reader->too_long && !reader->torn && !memmem(line.p, line.n, id, strlen(id));
}

static void print_json(const struct show *show, const json_t *event, struct slice line)
{
	/* A program gets the bytes as they are; a terminal gets no bytes that it could take for
	 * commands. */
	if (show->plain_output)
		json_dumpf(event, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	else
		fwrite(line.p, 1, line.n, stdout);
	putchar('\n');
}

static void print_event(
        struct show *show, const json_t *event, const struct audit_row *row, struct slice line)
{
	show->found = true;
	if (show->pick.json)
		print_json(show, event, line);
	else
		audit_table_print(&show->table, row);
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

	if (cannot_be_wanted(show, reader, line))
		return;
	if (!reader->too_long)
		event = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!event)
		complain(show, reader, reader->torn ? "a torn line" : "not JSON");
	else if (!audit_row_read(event, &row))
		complain(show, reader, "not an event of vethguard");
	else if (wanted(show, event, &row))
		print_event(show, event, &row, line);
	json_decref(event);
}

static int run(struct show *show)
{
	struct audit_reader reader;
	struct slice line;
	int rc = audit_reader_open(&reader, show->pick.path);

	if (rc == 0) {
		while ((rc = audit_reader_next(&reader, &line)) == 1) {
			show_line(show, &reader, line);
			/* Somebody may be watching: rows appear as they arrive. */
			if (reader.file == stdin)
				fflush(stdout);
		}
		audit_reader_close(&reader);
	}
	if (rc < 0) {
		audit_source_unreadable(show->pick.path, -rc, audit_pick_asked(&show->pick));
		return CLI_USAGE;
	}
	if (!show->found && !show->strange && !show->pick.json)
		audit_pick_note_none(&show->pick);
	if (show->strange > STRANGE_SHOWN_MAX)
		fprintf(stderr, "vethguard: warning: %lu lines in all are not events\n",
		        show->strange);
	return fflush(stdout) != 0 ? CLI_USAGE : show->strange ? 1 : 0;
}

int audit_show(int argc, char **argv)
{
	struct show show = {0};
	int width = screen_width(), status;

	(void)argc;
	status = audit_pick_parse(&show.pick, "vethguard audit show", specs, argv + 1);
	if (status != 0)
		return status;
	if (show.pick.help) {
		help();
		return 0;
	}
	show.plain_output = width > 0;
	audit_table_init(&show.table, stdout, width, screen_has_color());
	return run(&show);
}
