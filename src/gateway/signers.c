/* SPDX-License-Identifier: Apache-2.0 */
/* The public keys of those who may sign tokens, as the supervisor sends them. */
#include <errno.h>
#include <stdlib.h>

#include "gateway/gateway.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

_Static_assert(MESSAGE_KEY_SET_MAX == KEY_SET_KEYS_MAX && MESSAGE_KEY_ID_MAX == PUBLIC_KEY_ID_MAX &&
                       MESSAGE_PUBLIC_KEY_MAX == PUBLIC_KEY_BYTES_MAX &&
                       MESSAGE_SIGNED_TOKEN_MAX == SIGNED_TOKEN_MAX,
        "what fits into a message fits into a key set");

static void release(struct signers *signers)
{
	while (signers->count) {
		struct token_signer *s = signers->items[--signers->count];

		key_set_fini(&s->keys);
		free(s);
	}
}

/* Texts of messages are no longer than their room, and have no NUL. */
static void copy_text(char *out, struct slice text)
{
	memcpy(out, text.p, text.n);
	out[text.n] = '\0';
}

static int add_key(struct key_set *set, const struct message_public_key *m)
{
	struct public_key key = {.algorithm = m->algorithm,
	        .id_n = m->id.n,
	        .n = m->bytes.n,
	        .exponent = m->exponent};

	memcpy(key.id, m->id.p, m->id.n);
	memcpy(key.bytes, m->bytes.p, m->bytes.n);
	return key_set_add(set, &key);
}

static struct token_signer *make(const struct message_gateway_signer *m)
{
	struct token_signer *s = calloc(1, sizeof(*s));
	struct config_terms *terms = s ? &s->terms : NULL;

	if (!s)
		return NULL;
	copy_text(terms->issuer, m->issuer);
	terms->audience_count = m->audience_count;
	for (size_t i = 0; i < m->audience_count; i++)
		copy_text(terms->audiences[i], m->audiences[i]);
	terms->algorithms = m->algorithms;
	terms->lifetime_s = m->lifetime_s;
	terms->callbacks = m->callbacks;
	for (size_t i = 0; i < m->key_count; i++)
		if (add_key(&s->keys, &m->keys[i]) != 0)
			log_error("a public key of %s cannot be used", terms->issuer);
	return s;
}

/* They take the place of those before when all are there. */
int signers_take(struct gateway *g, const struct message_gateway_signer *m)
{
	struct signers *coming = &g->coming;

	if (m->index == 0)
		release(coming);
	if (m->count) {
		if (m->index != coming->count)
			return -EBADMSG;
		coming->items[coming->count] = make(m);
		if (!coming->items[coming->count])
			return -ENOMEM;
		coming->count++;
	}
	if (coming->count < m->count)
		return 0;
	release(&g->signers);
	g->signers = *coming;
	coming->count = 0;
	tokens_forget_all(g);
	return 0;
}

bool signers_know(const struct gateway *g, struct slice text)
{
	const struct signers *s = &g->signers;
	struct signed_claims claims;
	const char *why;

	if (signed_token_check(text, (const struct token_signer *const *)s->items, s->count,
	            clock_real_ms() / 1000, &claims, &why) < 0) {
		log_debug("a token is refused: %s", why);
		return false;
	}
	signed_claims_fini(&claims);
	return true;
}

void signers_free(struct gateway *g)
{
	release(&g->signers);
	release(&g->coming);
}
