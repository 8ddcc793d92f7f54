/* SPDX-License-Identifier: Apache-2.0 */
/* key_tokens: the processes of tokens with keys of client certificates (tokens of the
 * configuration). */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_KEY_TOKENS_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_KEY_TOKENS_H

#include "supervisor/process/token.h"

struct supervisor;
struct ipc_message;

/* Keeps the configuration of the daemon's start, before there are processes. */
void key_tokens_keep(struct supervisor *sv, const struct config *config);
/* A keeper was started: starts the processes if there are none yet, and gives the keeper what it
 * needs to reach them. */
void key_tokens_begin(struct supervisor *sv);
/* Call this when the configuration was read again. A process whose settings are the same goes on,
 * unless it has failed. */
void key_tokens_configure(struct supervisor *sv, const struct config *config);
/* Handles KEEPER_KEY_TOKEN_LATE. Returns 0 or -EBADMSG. */
int key_tokens_late(struct supervisor *sv, struct ipc_message *message);
void key_tokens_end(struct supervisor *sv);

#endif
