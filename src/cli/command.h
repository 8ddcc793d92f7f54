/* SPDX-License-Identifier: Apache-2.0 */
/* command: tables of what the word behind `vethguard`, `vethguard policy` or `vethguard audit` may
 * be. */
#ifndef VETHGUARD_SRC_CLI_COMMAND_H
#define VETHGUARD_SRC_CLI_COMMAND_H

#include <stdio.h>

#define COMMANDS_MAX 32

struct command {
	const char *name;                  /* NULL ends a table */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; the exit status */
	const char *help;
};

/* NULL: there is none. */
const struct command *command_find(const struct command *table, const char *name);
/* Says on stderr that there is none, what was probably meant (NULL: what is spelled most alike),
 * and where to read on. of: the words before. CLI_USAGE. */
int command_unknown(
        const struct command *table, const char *of, const char *name, const char *meant);
/* A line for each. */
void command_list(const struct command *table, FILE *out);

#endif
