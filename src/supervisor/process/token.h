/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: the process that speaks to the PKCS #11 module of the configuration's CA (src/token), as
 * the supervisor sees it. Persistent only. There is none unless the configuration names a token.
 *
 * A process that ends is followed by another one after a pause, which grows. Not so where the token
 * has been given the PIN and did not answer that it is right: it would lock itself. Then nothing
 * happens before a reload of all.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_TOKEN_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_TOKEN_H

#include "supervisor/config/sources.h"
#include "supervisor/process/role.h"
#include "vethguard/policy/config.h"

#define TOKEN_START_MS 20000 /* until the key is found */
#define TOKEN_PAUSE_FIRST_MS 1000
#define TOKEN_PAUSE_MOST_MS 60000

enum token_state {
	TOKEN_NONE,     /* none is configured */
	TOKEN_PIN,      /* a program is giving the PIN */
	TOKEN_STARTING, /* the process looks for the key */
	TOKEN_READY,
	TOKEN_PAUSED,  /* it ended; another one is started later */
	TOKEN_REFUSED, /* only a reload starts another one */
};

struct supervisor;

struct token_process {
	enum token_state state;
	struct config_token config;
	struct role role;
	struct sources pin;      /* of a program that gives the PIN */
	struct loop_timer timer; /* STARTING: it is late; PAUSED: it is over */
	int64_t pause_ms;
	bool gave_pin;                  /* and it is not known to be right */
	char problem[MESSAGE_WHAT_MAX]; /* why it is not READY */
};

/* The configuration was read: starts, replaces or ends the process. One that failed is started
 * anew.
 */
void token_configure(struct supervisor *sv, const struct config_token *config);
/* Gives this keeper a pair to the token, if the token is ready. */
void token_meet_keeper(struct supervisor *sv);
/* What the keeper says of it (KEEPER_TOKEN_SAYS). Returns 0 or -EBADMSG. */
int token_told(struct supervisor *sv, struct ipc_message *message);
/* Why no CA can sign because of the token, or NULL. */
const char *token_problem(const struct supervisor *sv);
/* True while it is not known yet whether the token can be used. */
bool token_is_pending(const struct supervisor *sv);
void token_end(struct supervisor *sv);

#endif
