/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about prepared namespaces. Their exit status is that of the commands in
 * cli/attach/commands.h; 3 also means that the caller may not make network namespaces. */
#ifndef VETHGUARD_SRC_CLI_PREPARE_COMMANDS_H
#define VETHGUARD_SRC_CLI_PREPARE_COMMANDS_H

int cli_prepare(int argc, char **argv);
int cli_claim(int argc, char **argv);
int cli_release(int argc, char **argv);

#endif
