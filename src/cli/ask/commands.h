/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about requests that wait for a person. */
#ifndef VETHGUARD_SRC_CLI_ASK_COMMANDS_H
#define VETHGUARD_SRC_CLI_ASK_COMMANDS_H

int cli_ask(int argc, char **argv);
int cli_approve(int argc, char **argv);
int cli_refuse(int argc, char **argv);

#endif
