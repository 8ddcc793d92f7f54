/* SPDX-License-Identifier: Apache-2.0 */
/* key_tokens: the PKCS #11 tokens with keys of client certificates. Each has a process of its own
 * (src/token), which the supervisor starts and connects. */
#ifndef VETHGUARD_SRC_KEEPER_KEY_TOKENS_H
#define VETHGUARD_SRC_KEEPER_KEY_TOKENS_H

#include "keeper/token_queue.h"
#include "vethguard/policy/config.h"

#define KEY_TOKENS_WHY_MAX 512

struct key_token {
	struct key_tokens *all;
	struct token_queue queue;
	char label[MESSAGE_LABEL_MAX + 1]; /* empty: the place is free */
	char why[KEY_TOKENS_WHY_MAX];      /* why there is no process, as the supervisor says */
};

struct key_tokens {
	struct ipc_peer *supervisor;
	struct key_token list[CONFIG_TOKENS_MAX];
};

void key_tokens_init(struct key_tokens *all, struct loop *loop, struct ipc_peer *supervisor);
/* Handles MESSAGE_KEEPER_KEY_TOKEN. Takes the descriptor. Returns 0 or -errno. */
int key_tokens_told(struct key_tokens *all, struct ipc_message *message);
/* Asks the token for a signature by the key with this URI. Returns true: question->on_answer
 * follows. False: the token is not asked, and why says why. */
bool key_tokens_sign(struct key_tokens *all, const struct message_token_key_sign *wanted,
        struct token_question *question, char why[KEY_TOKENS_WHY_MAX]);
void key_tokens_fini(struct key_tokens *all);

#endif
