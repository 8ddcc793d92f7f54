/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that make one call of the daemon for each sandbox that they name. */
#ifndef VETHGUARD_SRC_CLI_ATTACH_NAMED_H
#define VETHGUARD_SRC_CLI_ATTACH_NAMED_H

#include "cli/attach/commands.h"

/* What the command's own options said. */
struct named_options {
	const char *policy, *reason;
	bool all, yes;
};

struct named_command {
	const char *name; /* "vethguard show" */
	const char *usage, *text, *examples;
	const struct option_spec *specs;
	/* One call about one name: 0, or an exit status after a message. NULL: it takes none. */
	int (*one)(const struct control_line *line, const struct named_options *options,
	        const char *name);
};

/* --socket, --json, --help: all that most of them have. */
extern const struct option_spec named_specs[];

/* The command as a whole, for names that have to be there. An exit status. */
int named_run(const struct named_command *command, char **argv);

/* The same in steps. named_begin(): -1: go on; else the exit status. */
int named_begin(const struct named_command *command, char **argv, struct control_line *line,
        struct named_options *options);
/* The names of the line: all of them, also where one fails; the first failure is the status. */
int named_each(const struct named_command *command, const struct control_line *line,
        const struct named_options *options);
/* Every sandbox of the daemon. */
int named_all(const struct named_command *command, const struct control_line *line,
        const struct named_options *options);
/* Says what is wrong with the command line: CLI_USAGE. */
int named_usage(const struct named_command *command, const char *what);

#endif
