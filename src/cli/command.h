/* SPDX-License-Identifier: Apache-2.0 */
/* command: tables of the words that may follow `vethguard`, or one of its commands (`vethguard
 * policy`). */
#ifndef VETHGUARD_SRC_CLI_COMMAND_H
#define VETHGUARD_SRC_CLI_COMMAND_H

#include <stdio.h>

#define COMMANDS_MAX 32

struct command {
	const char *name;                  /* NULL ends a table */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit
	                                      status */
	const char *help;
};

/* Returns NULL if there is no such command. */
const struct command *command_find(const struct command *table, const char *name);
/* Prints on stderr that there is no such command, which one was probably meant (meant; NULL: the
 * one spelled most alike), and where to read on. of: the words before. Returns CLI_USAGE. */
int command_unknown(
        const struct command *table, const char *of, const char *name, const char *meant);
/* Prints one line for each command. */
void command_list(const struct command *table, FILE *out);
/* Runs the command that argv[1] names. Without one, or with --help, prints the usage. of: the words
 * before. Returns the exit status. */
int command_choose(const struct command *table, const char *of, void (*usage)(FILE *out), int argc,
        char **argv);

#endif
