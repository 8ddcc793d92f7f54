/* SPDX-License-Identifier: Apache-2.0 */
/* policy_commands: `vethguard policy check`, `explain`, `diff`, `new` and `import`. */
#ifndef VETHGUARD_SRC_CLI_POLICY_POLICY_H
#define VETHGUARD_SRC_CLI_POLICY_POLICY_H

#include <stdio.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/diag.h"
#include "vethguard/policy/load.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/json.h"
#include "cli/policy/resolve.h"

#define POLICY_EXIT_GOOD 0   /* check: every file is valid; explain: allowed; diff: equal */
#define POLICY_EXIT_DENIED 1 /* explain: denied; diff: different; check: a name leads nowhere */
#define POLICY_EXIT_BAD 2    /* usage, or a policy that does not load */

/* Runs "policy SUBCOMMAND ...": argv[0] is the word "policy". Returns the exit status. */
int cli_policy(int argc, char **argv);

/* policy/sources.c: an each_source of policy_load(). context: the struct diag_list that gets a note
 * if the user who runs this has no value of the credential now. Reads no value. */
void policy_note_source(void *context, const struct policy_credential *credential, const char *file,
        unsigned line, unsigned column);

int policy_check_command(int argc, char **argv);
int policy_explain_command(int argc, char **argv);
int policy_diff_command(int argc, char **argv);
int policy_new_command(int argc, char **argv);
int policy_import_command(int argc, char **argv);

/* A loaded and opened policy. */
struct policy_loaded {
	struct policy policy;
	uint8_t *image; /* owned */
};

/* The options of a command line. */
#define POLICY_HEADERS_MAX 64 /* bound on the --header options of one command */

struct policy_options {
	bool json, help;
	bool quiet;              /* no notes: a variable may be for another file */
	struct diag_list *notes; /* get the notes instead of stderr, including those that only
	                            check has */
	bool resolve;            /* look names up */
	const char *config;      /* or NULL */
	const char *floor;       /* a path, or "none"; NULL: the usual one, if it exists */
	struct resolve *hosts;   /* gets the hosts that the policy names; NULL: not wanted */
	struct policy_variable variables[POLICY_VARIABLES_MAX];
	size_t variable_count;
	struct policy_field headers[POLICY_HEADERS_MAX]; /* header fields of the request that
	                                                    explain is asked about */
	size_t header_count;
	const char *body; /* a file with its body, or NULL */
};

/* Loads a policy. Notes (for example about an unused variable) go to stderr unless options says
 * otherwise. Returns 0, or -errno with diags. Call policy_unload() in either case. */
int policy_load_file(const char *path, const struct policy_options *options,
        struct policy_loaded *out, struct diag_list *diags);
void policy_unload(struct policy_loaded *loaded);

#define POLICY_WORDS 3 /* most words of a command besides options */

struct policy_usage {
	const char *command;             /* "vethguard policy check" */
	const char *words[POLICY_WORDS]; /* required words */
	bool more;                       /* the last word may be repeated */
	bool resolves;                   /* takes --resolve and --config */
	bool asks; /* takes --header and --body: the command is about one request */
	const char *text, *examples; /* for --help, whole lines */
};

/* Sorts argv, which begins with the command's name: options may stand anywhere; the words are moved
 * in order to argv[0] and on. Returns the number of words, 0 after --help was answered, or -1 after
 * a message. */
int policy_take_options(const struct policy_usage *usage, char **argv, struct policy_options *out);

#define POLICY_FLOOR_NONE "none"
/* policy/floor.c: adds notes about what the floor takes away from the policy, which was loaded from
 * path. */
void policy_note_floor(const char *path, const struct policy_options *with,
        const struct policy *policy, struct diag_list *notes);

/* policy/output.c: writes a text to a new file at path, or to the standard output if path is "-".
 * Returns false after a message. */
bool policy_write(const char *path, struct slice text);

/* Prints each note on stderr as "file:line:column: note: message", with the place as far as it is
 * known. */
void policy_print_notes(const struct diag_list *notes);
void policy_diags_json(struct json *j, const char *key, const struct diag_list *diags);
/* Prints the JSON that was built, and a line break. Returns the exit status: bad if the text is
 * incomplete. */
int policy_print_json(struct json *j, struct buf *buf, int status);

#endif
