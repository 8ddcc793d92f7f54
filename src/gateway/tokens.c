/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signed tokens that the supervisor has accepted, by the hash of their text: the next request with
 * one costs what it costs with a session's own token. A token is forgotten when it expires, with
 * its session, and with every change of the signers; then it is verified and asked about again.
 */
#include <errno.h>
#include <stdlib.h>

#include "gateway/gateway.h"
#include "vethguard/base/clock.h"

#define TOKENS_OF_SESSION 16 /* the newest ones */

static void forget(struct gateway *g, struct token *t)
{
	HASH_DEL(g->tokens, t);
	list_remove(&t->of_session);
	t->session->token_count--;
	free(t);
}

void tokens_forget(struct gateway *g, struct session *s)
{
	while (!list_is_empty(&s->tokens))
		forget(g, container_of(s->tokens.next, struct token, of_session));
}

void tokens_forget_all(struct gateway *g)
{
	struct token *t, *next;

	HASH_ITER(hh, g->tokens, t, next)
	forget(g, t);
}

int tokens_add(struct gateway *g, const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], struct session *s,
        int64_t expires_ms)
{
	struct token *t;

	HASH_FIND(hh, g->tokens, hash, MESSAGE_TOKEN_HASH_BYTES, t);
	if (t)
		forget(g, t);
	if (s->token_count == TOKENS_OF_SESSION)
		forget(g, container_of(s->tokens.next, struct token, of_session));
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	memcpy(t->hash, hash, sizeof(t->hash));
	t->session = s;
	t->expires_ms = expires_ms;
	HASH_ADD(hh, g->tokens, hash, sizeof(t->hash), t);
	if (!t->hh.tbl) {
		free(t);
		return -ENOMEM;
	}
	list_append(&s->tokens, &t->of_session);
	s->token_count++;
	return 0;
}

struct session *tokens_find(struct gateway *g, const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES])
{
	struct session *s;
	struct token *t;

	HASH_FIND(hh, g->tokens, hash, MESSAGE_TOKEN_HASH_BYTES, t);
	if (!t)
		return NULL;
	s = t->session;
	if (t->expires_ms > clock_real_ms())
		return s;
	forget(g, t);
	return NULL;
}
