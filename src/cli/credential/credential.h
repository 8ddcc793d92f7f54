/* SPDX-License-Identifier: Apache-2.0 */
/* credential: `vethguard credential ...`: shows and changes the credentials of sandboxes. */
#ifndef VETHGUARD_SRC_CLI_CREDENTIAL_CREDENTIAL_H
#define VETHGUARD_SRC_CLI_CREDENTIAL_CREDENTIAL_H

#include "cli/attach/commands.h"

int cli_credential(int argc, char **argv);

int credential_list_command(int argc, char **argv);
int credential_show_command(int argc, char **argv);
int credential_check_command(int argc, char **argv);
int credential_rotate_command(int argc, char **argv);
int credential_revoke_command(int argc, char **argv);

/* The options of each `credential` command. */
extern const struct option_spec credential_specs[];
/* Reads the command line. least, most: how many words the command takes. Returns -1 to go on, or
 * the exit status. */
int credential_line_read(const struct control_usage *usage, char **argv, size_t least, size_t most,
        struct control_line *line);

/* print.c: print for people. credential_print_list(): one table row for each credential of each
 * answer in the list; credential_print(): everything about one credential; credential_put(): a "key
 * text" line. */
void credential_print_list(const json_t *answers);
void credential_print(const char *sandbox, const json_t *credential);
void credential_put(const char *key, const char *text);

#endif
