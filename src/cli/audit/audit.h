/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit show|suggest|verify`: reads what the recorder wrote. */
#ifndef VETHGUARD_SRC_CLI_AUDIT_AUDIT_H
#define VETHGUARD_SRC_CLI_AUDIT_AUDIT_H

#include <limits.h>
#include <stdio.h>

#include "vethguard/base/options.h"
#include "vethguard/base/slice.h"
#include "vethguard/policy/load.h"
#include "vethguard/wire/seal.h"

#include "cli/attach/control_client.h"

#define AUDIT_LINE_MAX (1u << 20) /* bytes of one line; the recorder's lines are much shorter */

/* argv[0] is "audit". Exit status: 0; 1: the log is not intact (verify), has lines that are not
 * events (show), or nothing can be suggested (suggest); 2: usage, or a file that cannot be read; 3:
 * no file was named, and the daemon cannot be asked for its own. */
int cli_audit(int argc, char **argv);
int audit_show(int argc, char **argv); /* argv[0] is "show" */
int audit_suggest(int argc, char **argv);
int audit_verify(int argc, char **argv);

/* audit/reader.c: reads a file line by line. */
struct audit_reader {
	FILE *file;
	const char *name; /* for messages */
	char *line;       /* owned */
	size_t n;
	unsigned long number; /* of the current line, from 1 */
	bool too_long;        /* the current line is cut at AUDIT_LINE_MAX */
	bool torn;            /* the current line has no end: the file stops in the middle of it */
};

/* path "-": standard input. Returns 0 or -errno. */
int audit_reader_open(struct audit_reader *reader, const char *path);
/* Returns 1 and the next line without its newline; 0 at the end; or -errno. */
int audit_reader_next(struct audit_reader *reader, struct slice *line);
void audit_reader_close(struct audit_reader *reader);

/* audit/source.c: finds the daemon's own log if no FILE is named. */
struct audit_source {
	char path[PATH_MAX];
	char fingerprint[SEAL_HASH_DIGITS + 1]; /* of the line that the daemon wrote last; "":
	                                           unknown */
};
/* socket: NULL means the default one. command: for messages, "vethguard audit show". Returns 0, or
 * CONTROL_UNREACHABLE after messages on stderr. */
int audit_source_ask(struct audit_source *source, const char *socket, const char *command);
/* Prints that the file cannot be read. asked: the daemon named the file. */
void audit_source_unreadable(const char *path, int error, bool asked);
bool audit_is_fingerprint(const char *text);

/* audit/when.c: converts "10m", "2h", "1d", "30s", or RFC 3339 ("2026-11-20T16:33:36Z", also with a
 * space, an offset, or only the date) to milliseconds since the epoch. now_ms: what the short forms
 * count back from. */
bool audit_when_parse(const char *text, int64_t now_ms, int64_t *out_ms);

/* audit/row.c: what the table shows for one event. All texts are printable ASCII. */
#define AUDIT_WHAT_MAX 8192 /* path and query have 2048 bytes each, some of them escaped */
#define AUDIT_WHY_MAX 4096
#define AUDIT_WORD_MAX 160
enum audit_decision {
	AUDIT_ALLOWED,
	AUDIT_DENIED,
	AUDIT_OBSERVED,
	AUDIT_DROPPED,
	AUDIT_FAILED,
	AUDIT_FINDING,
	AUDIT_STARTED,
	AUDIT_STOPPED,
	AUDIT_RESTARTED,
	AUDIT_PAUSED,
	AUDIT_RESUMED,
	AUDIT_CHANGED,
	AUDIT_OTHER,
	AUDIT_DECISION_COUNT
};
struct audit_row {
	int64_t time_ms;
	char sandbox[AUDIT_WORD_MAX];
	char what[AUDIT_WHAT_MAX];
	char why[AUDIT_WHY_MAX]; /* the rule, or why it was refused */
	enum audit_decision decision;
	bool refused; /* denied or dropped, for --denied */
	bool has_bytes;
	int64_t bytes;
};
struct json_t;
/* Classes, actions and dispositions of OCSF that are used. */
enum {
	CLASS_FINDING = 2004,
	CLASS_NETWORK = 4001,
	CLASS_HTTP = 4002,
	CLASS_DNS = 4003,
	CLASS_LIFECYCLE = 6002,
	CLASS_API = 6003
};
enum { ACTION_ALLOWED = 1, ACTION_DENIED = 2, ACTION_OBSERVED = 3 };
enum { DISPOSITION_DROPPED = 6, DISPOSITION_ERROR = 27 };
enum { DIRECTION_INBOUND = 1 };
/* The member at a path of object keys ("metadata.uid"): NULL, 0 or an empty slice if there is none
 * of that type. A text may contain any byte. */
const struct json_t *audit_member(const struct json_t *event, const char *path);
int64_t audit_number(const struct json_t *event, const char *path);
struct slice audit_text(const struct json_t *event, const char *path);
/* Fills a row. Returns false if event is not an event of the audit log. */
bool audit_row_read(const struct json_t *event, struct audit_row *row);
/* True for the event with this id (metadata.uid), and for a finding about it. */
bool audit_row_is_about(const struct json_t *event, const char *uid);
const char *audit_decision_name(enum audit_decision decision);

/* audit/pick.c: which events of which file. Texts are borrowed from argv. */
#define AUDIT_SPEC_SINCE                                                          \
	{                                                                         \
		"since", 'S', "WHEN",                                             \
		        "only from then on: 30s, 10m, 2h, 1d ago,\nor RFC 3339: " \
		        "2026-11-20T16:33:36Z"                                    \
	}
#define AUDIT_SPEC_SOCKET                                                                      \
	{                                                                                      \
		"socket", 0, "PATH",                                                           \
		        "without FILE: the daemon's socket; default:\n" CONTROL_SOCKET_DEFAULT \
	}
struct audit_pick {
	const char *path;            /* NULL only with help */
	const char *socket;          /* of the daemon; NULL: the default one */
	struct audit_source source;  /* the daemon's answer if no FILE was named */
	const char *sandbox, *event; /* NULL: any */
	int64_t since_ms;
	bool denied, json, help;
	const char *policy;                                     /* NULL: none */
	struct policy_variable variables[POLICY_VARIABLES_MAX]; /* of the policy */
	size_t variable_count;
};
/* Parses the command line. An option is recognized by its name, whatever its place in specs.
 * Options may stand before and after FILE; without FILE the daemon is asked. Returns 0, or an exit
 * status after a message on stderr. */
int audit_pick_parse(
        struct audit_pick *pick, const char *command, const struct option_spec *specs, char **argv);
/* True if the daemon named the file. */
bool audit_pick_asked(const struct audit_pick *pick);
/* Selects by sandbox, time and id; findings about the event with that id are selected too. Does not
 * check whether the event was denied. */
bool audit_pick_wants(const struct audit_pick *pick, const struct json_t *event);
/* Prints a note on stderr that no event was selected, and which options selected none. */
void audit_pick_note_none(const struct audit_pick *pick);

/* audit/table.c: prints rows in columns. */
struct audit_table {
	FILE *out;
	int time, sandbox, what, why; /* widths */
	bool wraps;                   /* a terminal: texts continue in the next line */
	bool stacked;                 /* the reason is printed below */
	bool color, head_done;
	char day[16]; /* day of the previous row, if rows show only the time of day */
};
/* width: columns of the terminal; 0: not a terminal, each row is one line. */
void audit_table_init(struct audit_table *table, FILE *out, int width, bool color);
void audit_table_print(struct audit_table *table, const struct audit_row *row);

#endif
