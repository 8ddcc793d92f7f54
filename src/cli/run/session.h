/* SPDX-License-Identifier: Apache-2.0 */
/* session: the conversation of `vethguard run` with its supervisor (vethguardd --session). */
#ifndef VETHGUARD_SRC_CLI_RUN_SESSION_H
#define VETHGUARD_SRC_CLI_RUN_SESSION_H

#include "vethguard/adapter/environment.h"
#include "cli/run/privilege.h"
#include "cli/run/options.h"
#include "vethguard/ipc/peer.h"

struct run_session {
	pid_t pid; /* of the supervisor */
	int pidfd;
	int control;     /* our end of the pair */
	uint8_t *buffer; /* MESSAGE_BYTES_MAX bytes: the last message, from which decoded structs
	                    borrow */
	char *refusal;   /* owned: the supervisor's complete message when it failed, or NULL */
	struct message_names wiped; /* names of env: sources; owned copies */
};

/* Starts the supervisor. Returns 0, or -errno with a text. */
int run_session_open(struct run_session *s, const struct privilege *p, struct failure *failure);
/* Asks the supervisor to guard the network namespace, and answers its questions for variables until
 * it is ready. ready borrows from the session's buffer until the next receive. Returns 0, or -errno
 * with a text. */
int run_session_start(struct run_session *s, const struct run_options *options,
        const struct privilege *privilege, int netns, struct message_session_ready *ready,
        struct failure *failure);
/* A sidecar's guard: asks for the policy's file, as it is now, to be put in force. Returns 0 with
 * ready as above; 1: the policy before stays in force, and run_session_print_refusal() says why, or
 * else the text; or -errno with a text: the guard is gone. */
int run_session_reload(struct run_session *s, const struct run_options *options,
        const struct privilege *privilege, struct message_session_ready *ready,
        struct failure *failure);
/* Call this when a message comes while the command runs, which always means a failure. Sets the
 * text. */
void run_session_broken(struct run_session *s, struct failure *failure);
/* Logs the supervisor's refusal line by line. Returns false if there is none. */
bool run_session_print_refusal(const struct run_session *s);
/* Asks how each role is confined, between start and end. Calls tell once per role; its argument is
 * valid during the call. Returns 0, or -errno with a text. */
int run_session_roles(struct run_session *s,
        void (*tell)(void *context, const struct message_role *role), void *context,
        struct failure *failure);
/* Reports the command's exit and waits for the summary. Returns 0, or -errno with a text. */
int run_session_end(struct run_session *s, int status, struct message_summary *summary,
        struct failure *failure);
/* Waits until the supervisor is gone; kills it if that takes too long. */
void run_session_close(struct run_session *s);

#endif
