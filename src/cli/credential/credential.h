/* SPDX-License-Identifier: Apache-2.0 */
/* credential: `vethguard credential ...`: what is known of sandboxes' credentials. */
#ifndef VETHGUARD_SRC_CLI_CREDENTIAL_CREDENTIAL_H
#define VETHGUARD_SRC_CLI_CREDENTIAL_CREDENTIAL_H

#include "cli/attach/commands.h"

int cli_credential(int argc, char **argv);

int credential_list_command(int argc, char **argv);
int credential_show_command(int argc, char **argv);
int credential_check_command(int argc, char **argv);
int credential_rotate_command(int argc, char **argv);
int credential_revoke_command(int argc, char **argv);

/* A command of `credential`: its texts. All take --socket, --json and --help. */
struct credential_usage {
	const char *command, *words, *text, *examples;
};
/* Reads the command line. Returns -1: go on; or the exit status. least, most: how many words it
 * takes. */
int credential_line_read(const struct credential_usage *usage, char **argv, size_t least,
        size_t most, struct control_line *line);

/* print.c: prints for people. A row of the table for each credential of each answer of the list;
 * all about one credential; a "key   text" line. */
void credential_print_list(const json_t *answers);
void credential_print(const char *sandbox, const json_t *credential);
void credential_put(const char *key, const char *text);

#endif
