/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about namespaces that are made ready. Exit status of each: as of those in
 * cli/attach/commands.h; 3 also: the caller may not make network namespaces. */
#ifndef VETHGUARD_SRC_CLI_PREPARE_COMMANDS_H
#define VETHGUARD_SRC_CLI_PREPARE_COMMANDS_H

int cli_prepare(int argc, char **argv);
int cli_claim(int argc, char **argv);
int cli_release(int argc, char **argv);

#endif
