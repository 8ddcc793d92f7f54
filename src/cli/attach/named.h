/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that make one call to the daemon for each sandbox named. */
#ifndef VETHGUARD_SRC_CLI_ATTACH_NAMED_H
#define VETHGUARD_SRC_CLI_ATTACH_NAMED_H

#include "cli/attach/commands.h"

/* The values of the command's own options. */
struct named_options {
	const char *policy, *reason;
	bool all, yes;
};

struct named_command {
	const char *name; /* "vethguard show" */
	const char *usage, *text, *examples;
	const struct option_spec *specs;
	/* Makes the call for one name. Returns 0, or an exit status after a message. NULL: the
	 * command takes no names. */
	int (*one)(const struct control_line *line, const struct named_options *options,
	        const char *name);
};

/* --socket, --json, --help: enough for most commands. */
extern const struct option_spec named_specs[];

/* Runs a command that requires names. Returns the exit status. */
int named_run(const struct named_command *command, char **argv);

/* The same in steps. Returns -1: go on; or the exit status. */
int named_begin(const struct named_command *command, char **argv, struct control_line *line,
        struct named_options *options);
/* Makes the call for every name of the line, even if one fails. Returns the first failure. */
int named_each(const struct named_command *command, const struct control_line *line,
        const struct named_options *options);
/* Makes the call for every sandbox of the daemon. */
int named_all(const struct named_command *command, const struct control_line *line,
        const struct named_options *options);
/* Reports what is wrong with the command line. Returns CLI_USAGE. */
int named_usage(const struct named_command *command, const char *what);

#endif
