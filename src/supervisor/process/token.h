/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: the supervisor's side of a process that speaks to a PKCS #11 module (src/token): of the
 * configuration's CA (ca.token), or of a token with keys of client certificates (tokens;
 * key_tokens.h). They exist only in the daemon, and only if the configuration names tokens.
 *
 * A process that ends is replaced after a growing pause. There is one exception: if the token got
 * the PIN and did not confirm it, a second attempt could lock the token, so nothing is started
 * before a reload of everything.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_TOKEN_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_TOKEN_H

#include "supervisor/config/sources.h"
#include "supervisor/process/role.h"
#include "vethguard/policy/config.h"

#define TOKEN_START_MS 20000 /* time limit for finding the key */
#define TOKEN_PAUSE_FIRST_MS 1000
#define TOKEN_PAUSE_MOST_MS 60000

enum token_state {
	TOKEN_NONE,     /* none is configured */
	TOKEN_PIN,      /* a program is giving the PIN */
	TOKEN_STARTING, /* the process looks for the key */
	TOKEN_READY,
	TOKEN_PAUSED,  /* it ended; another process is started later */
	TOKEN_REFUSED, /* only a reload starts another process */
};

struct supervisor;

struct token_process {
	struct supervisor *supervisor;
	enum token_state state;
	struct config_token config; /* label: empty if it is the CA's */
	struct role role;
	struct sources pin;      /* runs the program that gives the PIN */
	struct loop_timer timer; /* STARTING: time limit; PAUSED: end of the pause */
	int64_t pause_ms;
	int64_t ready_ms;               /* READY: since when, loop_now_ms() */
	bool gave_pin;                  /* the token got the PIN and has not confirmed it */
	char problem[MESSAGE_WHAT_MAX]; /* why the token is not READY */
};

/* Starts or replaces the process, or ends it if the URI is empty. A process that failed is started
 * again. */
void token_process_configure(
        struct supervisor *sv, struct token_process *t, const struct config_token *config);
/* Gives the keeper a pair to the process if it is ready; otherwise tells it why a token with keys
 * of client certificates is not. */
void token_process_meet_keeper(struct token_process *t);
/* Ends the process; it is started again by token_process_configure(). */
void token_process_stop(struct token_process *t);
/* Ends the process for good, and frees what belongs to it. */
void token_process_end(struct token_process *t);

/* The CA's token. */
/* Call this when the configuration was read. */
void token_configure(struct supervisor *sv, const struct config_token *config);
/* Gives this keeper a pair to the token, if the token is ready. */
void token_meet_keeper(struct supervisor *sv);
/* Handles what the keeper says about the token (KEEPER_TOKEN_SAYS). Returns 0 or -EBADMSG. */
int token_told(struct supervisor *sv, struct ipc_message *message);
/* Why no CA can sign because of the token, or NULL. */
const char *token_problem(const struct supervisor *sv);
/* True while it is not known yet whether the token can be used. */
bool token_is_pending(const struct supervisor *sv);
void token_end(struct supervisor *sv);

#endif
