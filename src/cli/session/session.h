/* SPDX-License-Identifier: Apache-2.0 */
/* session: `vethguard session ...`: sandboxes elsewhere that connect through the gateway with a
 * token. */
#ifndef VETHGUARD_SRC_CLI_SESSION_SESSION_H
#define VETHGUARD_SRC_CLI_SESSION_SESSION_H

#include "cli/attach/commands.h"

int cli_session(int argc, char **argv);

int session_create_command(int argc, char **argv);
int session_list_command(int argc, char **argv);
int session_show_command(int argc, char **argv);
int session_extend_command(int argc, char **argv);
int session_revoke_command(int argc, char **argv);
int session_certificate_command(int argc, char **argv);

/* Writes "/sessions/NAME" followed by tail. Returns false after a message if NAME is not a valid
 * name. */
bool session_path(char out[CONTROL_PATH_MAX], const char *name, const char *tail);
/* certificate.c: adds the hash of the certificate in the file `path` to the request body. Returns
 * 0, or the exit status after a message. */
int session_add_certificate(json_t *body, const char *path);

#endif
