/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_client: one call of the daemon's control API per connection. The daemon's answers have a
 * Content-Length and are never chunked, so a socket and the head parser that daemon and client
 * share (vethguard/wire/control_http.h) are enough; a command takes a millisecond.
 */
#ifndef VETHGUARD_SRC_CLI_ATTACH_CONTROL_CLIENT_H
#define VETHGUARD_SRC_CLI_ATTACH_CONTROL_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#define CONTROL_SOCKET_DEFAULT "/run/vethguard/control.sock"
#define CONTROL_TIMEOUT_S 120 /* for one call; attaching may wait for credentials' programs */

/* Exit statuses of the commands that talk to the daemon. */
#define CONTROL_REFUSED 1
#define CONTROL_UNREACHABLE 3

struct control_answer {
	unsigned status;
	json_t *json; /* owned; NULL: none */
};

/* path: below "/v1". body: an object or NULL (borrowed). Returns 0 with an answer of 2xx, which the
 * caller frees; else an exit status, after a message on stderr that says what to do next. */
int control_call(const char *socket_path, const char *method, const char *path, const json_t *body,
        struct control_answer *answer);
/* The same, but an answer with other_status (0: none) is not a failure either: no message is
 * printed, and answer->status tells which answer came. */
int control_call_or(const char *socket_path, const char *method, const char *path,
        const json_t *body, unsigned other_status, struct control_answer *answer);
void control_answer_free(struct control_answer *answer);

#endif
