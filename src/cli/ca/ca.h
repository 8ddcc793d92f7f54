/* SPDX-License-Identifier: Apache-2.0 */
/* ca: `vethguard ca ...`: the CAs that sandboxes trust. */
#ifndef VETHGUARD_SRC_CLI_CA_CA_H
#define VETHGUARD_SRC_CLI_CA_CA_H

#include "cli/attach/commands.h"

int cli_ca(int argc, char **argv);

int ca_show_command(int argc, char **argv);
int ca_export_command(int argc, char **argv);
int ca_csr_command(int argc, char **argv);
int ca_install_command(int argc, char **argv);
int ca_rotate_command(int argc, char **argv);

/* Reads the command line. Returns -1: go on; or the exit status. words: how many it takes. */
int ca_line_read(const struct control_usage *usage, char **argv, size_t words,
        struct control_line *line,
        bool (*take)(void *context, const char *option, const char *value), void *context);
/* show.c: prints the CAs for people. */
void ca_print(const json_t *answer);

#endif
