/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: the messages between `vethguard run` and its supervisor (vethguardd --run). */
#ifndef VETHGUARD_SRC_CLI_RUN_SUPERVISOR_H
#define VETHGUARD_SRC_CLI_RUN_SUPERVISOR_H

#include "vethguard/adapter/environment.h"
#include "cli/run/privilege.h"
#include "cli/run/options.h"
#include "vethguard/ipc/peer.h"

struct run_supervisor {
	pid_t pid; /* of the supervisor */
	int pidfd;
	int control;     /* our end of the pair */
	uint8_t *buffer; /* MESSAGE_BYTES_MAX bytes: the last message, from which decoded structs
	                    borrow */
	char *refusal;   /* owned: the supervisor's complete message when it failed, or NULL */
	struct message_names wiped; /* names of env: sources; owned copies */
};

/* Starts the supervisor. Returns 0, or -errno with a text. */
int run_supervisor_open(
        struct run_supervisor *s, const struct privilege *p, struct failure *failure);
/* Asks the supervisor to guard the network namespace, and answers its questions for variables until
 * it is ready. ready borrows from the struct's buffer until the next receive. Returns 0, or -errno
 * with a text. */
int run_supervisor_start(struct run_supervisor *s, const struct run_options *options,
        const struct privilege *privilege, int netns, struct message_run_ready *ready,
        struct failure *failure);
/* A sidecar's guard: asks for the policy's file, as it is now, to be put in force. Returns 0 with
 * ready as above; 1: the policy before stays in force, and run_supervisor_print_refusal() says why,
 * or else the text; or -errno with a text: the guard is gone. */
int run_supervisor_reload(struct run_supervisor *s, const struct run_options *options,
        const struct privilege *privilege, struct message_run_ready *ready,
        struct failure *failure);
/* Call this when a message comes while the command runs, which always means a failure. Sets the
 * text. */
void run_supervisor_broken(struct run_supervisor *s, struct failure *failure);
/* Logs the supervisor's refusal line by line. Returns false if there is none. */
bool run_supervisor_print_refusal(const struct run_supervisor *s);
/* Asks how each role is confined, between start and end. Calls tell once per role; its argument is
 * valid during the call. Returns 0, or -errno with a text. */
int run_supervisor_roles(struct run_supervisor *s,
        void (*tell)(void *context, const struct message_role *role), void *context,
        struct failure *failure);
/* Reports the command's exit and waits for the summary. Returns 0, or -errno with a text. */
int run_supervisor_end(struct run_supervisor *s, int status, struct message_summary *summary,
        struct failure *failure);
/* Waits until the supervisor is gone; kills it if that takes too long. */
void run_supervisor_close(struct run_supervisor *s);

#endif
