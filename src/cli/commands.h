/* SPDX-License-Identifier: Apache-2.0 */
/* commands: what `vethguard WORD` runs. Each gets the words from its own name on and returns the
 * exit status. */
#ifndef VETHGUARD_SRC_CLI_COMMANDS_H
#define VETHGUARD_SRC_CLI_COMMANDS_H

#define CLI_FAILED 125 /* of `run`: vethguard itself failed, as with env(1) and timeout(1) */
#define CLI_NOT_RUNNABLE 126
#define CLI_NOT_FOUND 127
#define CLI_USAGE 2 /* of the other commands */

#ifndef VETHGUARD_DATADIR
#define VETHGUARD_DATADIR "/usr/local/share/vethguard"
#endif

int cli_run(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_sidecar(int argc, char **argv);
int cli_probe(int argc, char **argv);

#endif
