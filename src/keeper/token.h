/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: gets signatures from the process that has the key of the configured CA in a PKCS #11 token
 * (token_queue.h). The signatures are verified here.
 *
 * The key of a CA is tried once for each such process, before anything depends on it: the trial
 * signs an intermediate that no sandbox gets.
 */
#ifndef VETHGUARD_SRC_KEEPER_TOKEN_H
#define VETHGUARD_SRC_KEEPER_TOKEN_H

#include "keeper/authority.h"
#include "keeper/token_queue.h"

struct token_job;
/* made: owned by the callee from now on; NULL: why says what is wrong. The job is freed afterwards.
 */
typedef void (*token_done)(void *context, struct ca *made, const char *why);

enum token_trial { TOKEN_UNTRIED, TOKEN_TRYING, TOKEN_TRIED };

struct token {
	struct ipc_peer *supervisor;
	struct token_queue queue;
	/* The trial of one certificate's key. */
	enum token_trial trial;
	uint8_t tried[CA_FINGERPRINT_BYTES];
	struct ca *trial_ca;  /* the CA, until the trial is over */
	struct ca *below;     /* the intermediate that was signed on trial, until it is taken */
	char why[CA_WHY_MAX]; /* TRIED: why the key cannot be used; "" */
};

void token_init(struct token *token, struct loop *loop, struct ipc_peer *supervisor);
/* Handles KEEPER_TOKEN. Returns 0 or -errno. */
int token_connect(struct token *token, struct ipc_message *message);
/* Makes an intermediate under a CA whose key is in the token. issuer is borrowed until done is
 * called, wanted is not. Returns NULL with why if there is no token or no memory; then done is not
 * called. */
struct token_job *token_sign(struct token *token, const struct ca *issuer,
        const struct ca_wanted *wanted, token_done done, void *context, char why[CA_WHY_MAX]);
void token_cancel(struct token_job *job); /* NULL is allowed */
/* Tries the key of this certificate, unless that was done before. Returns true once it was tried:
 * then token->why has the result, and *below is the intermediate made on trial, owned by the
 * caller. anew: makes another one if the first was taken before; without anew *below may be NULL.
 */
bool token_try(struct token *token, struct slice certificate, bool anew, struct ca **below);
void token_fini(struct token *token);

#endif
