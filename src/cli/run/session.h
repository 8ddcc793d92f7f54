/* SPDX-License-Identifier: Apache-2.0 */
/* session: the conversation of `vethguard run` with its supervisor (vethguardd --session). */
#ifndef VETHGUARD_SRC_CLI_RUN_SESSION_H
#define VETHGUARD_SRC_CLI_RUN_SESSION_H

#include "cli/run/environment.h"
#include "cli/run/privilege.h"
#include "cli/run/options.h"
#include "vethguard/ipc/peer.h"

struct run_session {
	pid_t pid; /* of the supervisor */
	int pidfd;
	int control;     /* our end of the pair */
	uint8_t *buffer; /* MESSAGE_BYTES_MAX: the last message; what was decoded borrows from it */
	char *refusal;   /* owned: what the supervisor said when it failed, in full; or NULL */
	struct message_names wiped; /* names of env: sources; owned copies */
};

/* Starts the supervisor. 0 or -errno with a text. */
int run_session_open(struct run_session *s, const struct privilege *p, struct failure *failure);
/* Asks it to guard the network namespace; answers its questions for variables until it is ready.
 * ready borrows from the session's buffer until the next receive. 0 or -errno with a text. */
int run_session_start(struct run_session *s, const struct run_options *options,
        const struct privilege *privilege, int netns, struct message_session_ready *ready,
        struct failure *failure);
/* A message came while the command runs: always bad news. Sets the text. */
void run_session_broken(struct run_session *s, struct failure *failure);
/* Logs the supervisor's refusal, each of its lines on one of ours. False: there is none. */
bool run_session_print_refusal(const struct run_session *s);
/* Asks how each role is confined. Between start and end: tell is called once for each of them. What
 * it is given lives as long as the call. 0 or -errno with a text. */
int run_session_roles(struct run_session *s,
        void (*tell)(void *context, const struct message_role *role), void *context,
        struct failure *failure);
/* Tells the command's end and waits for the numbers. 0 or -errno with a text. */
int run_session_end(struct run_session *s, int status, struct message_summary *summary,
        struct failure *failure);
/* Waits until the supervisor is gone; ends it where it takes too long. */
void run_session_close(struct run_session *s);

#endif
