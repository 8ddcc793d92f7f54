/* SPDX-License-Identifier: Apache-2.0 */
/* policy_commands: `vethguard policy check`, `explain`, `diff` and `new`. */
#ifndef VETHGUARD_SRC_CLI_POLICY_POLICY_H
#define VETHGUARD_SRC_CLI_POLICY_POLICY_H

#include <stdio.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/diag.h"
#include "vethguard/policy/load.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/json.h"
#include "cli/policy/resolve.h"

#define POLICY_EXIT_GOOD 0   /* check: every file is right; explain: allowed; diff: the same */
#define POLICY_EXIT_DENIED 1 /* explain: denied; diff: different; check: a name leads nowhere */
#define POLICY_EXIT_BAD 2    /* usage, or a policy that does not load */

/* Runs "policy SUBCOMMAND ...": argv[0] is the word "policy". Returns the exit status. */
int cli_policy(int argc, char **argv);

/* policy/sources.c: an each_source of policy_load(); context is the struct diag_list that gets a
 * note where whoever runs this has no value of the credential now. Reads no value. */
void policy_note_source(void *context, const struct policy_credential *credential, const char *file,
        unsigned line, unsigned column);

int policy_check_command(int argc, char **argv);
int policy_explain_command(int argc, char **argv);
int policy_diff_command(int argc, char **argv);
int policy_new_command(int argc, char **argv);

/* A loaded and opened policy. */
struct policy_loaded {
	struct policy policy;
	uint8_t *image; /* owned */
};

/* What stands on a command line besides words. */
struct policy_options {
	bool json, help;
	bool quiet; /* no notes: a variable may be for another file */
	struct diag_list
	        *notes;        /* where they go instead of stderr; with those that only check has */
	bool resolve;          /* names are asked for */
	const char *config;    /* or NULL */
	struct resolve *hosts; /* gets the hosts that the policy names; NULL: nobody asks */
	struct policy_variable variables[POLICY_VARIABLES_MAX];
	size_t variable_count;
};

/* Notes (of a variable that is not used) go to stderr, unless options says otherwise. 0 or -errno;
 * diags say why. policy_unload() in either case. */
int policy_load_file(const char *path, const struct policy_options *options,
        struct policy_loaded *out, struct diag_list *diags);
void policy_unload(struct policy_loaded *loaded);

#define POLICY_WORDS 3 /* that a command has beside its options, at most */

struct policy_usage {
	const char *command;             /* "vethguard policy check" */
	const char *words[POLICY_WORDS]; /* what has to be given */
	bool more;                       /* the last of them may be repeated */
	bool resolves;                   /* takes --resolve and --config */
	const char *text, *examples;     /* of --help: whole lines */
};

/* Sorts argv, the command's name first: options anywhere, the words in order, from argv[0] on.
 * Returns how many there are, 0 after --help was answered, or -1 after a message. */
int policy_take_options(const struct policy_usage *usage, char **argv, struct policy_options *out);

/* Each "file:line:column: note: message", as far as there is a place, on stderr. */
void policy_print_notes(const struct diag_list *notes);
void policy_diags_json(struct json *j, const char *key, const struct diag_list *diags);
/* Prints what was built, and a line break. The exit status: bad where the text is not whole. */
int policy_print_json(struct json *j, struct buf *buf, int status);

#endif
