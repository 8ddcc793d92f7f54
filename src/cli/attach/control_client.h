/* SPDX-License-Identifier: Apache-2.0 */
/* control_client: calls of the control API by a command, with messages on stderr. */
#ifndef VETHGUARD_SRC_CLI_ATTACH_CONTROL_CLIENT_H
#define VETHGUARD_SRC_CLI_ATTACH_CONTROL_CLIENT_H

#include "vethguard/adapter/control_client.h"

/* Exit statuses of the commands that talk to the daemon. */
#define CONTROL_REFUSED 1
#define CONTROL_UNREACHABLE 3

/* path: below "/v1". body: an object or NULL (borrowed). Returns 0 with an answer of 200 or 201,
 * which the caller frees; else an exit status, after a message on stderr that says what to do next.
 */
int control_call(const char *socket_path, const char *method, const char *path, const json_t *body,
        struct control_answer *answer);
/* The same, but an answer with other_status (0: none) is not a failure either: no message is
 * printed, and answer->status tells which answer came. */
int control_call_or(const char *socket_path, const char *method, const char *path,
        const json_t *body, unsigned other_status, struct control_answer *answer);

#endif
