/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_token: the proof of a session: a random text that its client shows to the gateway. The
 * text is told once, to the caller who made the session; only its hash is kept. 256 random bits
 * need neither salt nor a slow hash, because nobody can guess them.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_SESSION_TOKEN_H
#define VETHGUARD_SRC_SUPERVISOR_OS_SESSION_TOKEN_H

#include "vethguard/wire/message.h"

#define SESSION_TOKEN_PREFIX "vgs_" /* so that scanners find a token that leaked into code */
#define SESSION_TOKEN_TEXT (sizeof(SESSION_TOKEN_PREFIX) - 1 + 43) /* base64url of 32 bytes */

struct session_token {
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES]; /* SHA-256 of the text, unless is_signed */
	bool by_certificate;                    /* of a request: hash is a certificate's (DER) */
	bool by_address;   /* the client's address proves it: no hash, and from_count is above 0 */
	bool callback;     /* only listen_callbacks serves it */
	size_t from_count; /* 0: from anywhere */
	struct ip_prefix from[MESSAGE_FROM_MAX];
	/* Its clients show signed tokens. hash: of the policy, variables, labels and networks that
	 * the first of them stood for; the others have to stand for the same. */
	bool is_signed;
	uint8_t id[MESSAGE_TOKEN_HASH_BYTES]; /* of who signed it, and the claim that names it */
	uint32_t lifetime_s;                  /* no token is valid for longer */
};

/* Makes a text and its hash; leaves token->from as it is. Returns 0 or -errno. The caller wipes the
 * text. */
int session_token_make(struct session_token *token, char text[SESSION_TOKEN_TEXT + 1]);

#endif
