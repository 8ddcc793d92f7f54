/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions, found by the hash of the token. An expired or revoked session is not in the table,
 * so its token takes the same steps and gets the same answer as one that never existed. An attacker
 * chooses tokens and not hashes, so the time of a lookup reveals nothing about an existing token.
 */
#include <errno.h>
#include <stdlib.h>

#include "gateway/visitor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/secret.h"

#define ENTERS_PER_S 500 /* of one session; the worker has its own, configured bound */
#define ENTERS_BURST_S 2

struct session *sessions_get(const struct gateway *g, uint64_t id)
{
	struct session *s;

	HASH_FIND(by_id, g->by_id, &id, sizeof(id), s);
	return s;
}

static void leave(struct gateway *g, struct session *s)
{
	if (s->by_hash.tbl)
		HASH_DELETE(by_hash, g->by_hash, s);
	s->by_hash.tbl = NULL;
	list_remove(&s->by_address);
	s->by_address = (struct list){0};
}

static struct session *add(struct gateway *g, uint64_t id)
{
	struct session *s =
	        HASH_CNT(by_id, g->by_id) < GATEWAY_SESSIONS_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->id = id;
	list_init(&s->visitors);
	list_init(&s->tokens);
	rate_init(&s->enters, ENTERS_PER_S, ENTERS_BURST_S, clock_monotonic_ms());
	HASH_ADD(by_id, g->by_id, id, sizeof(s->id), s);
	if (s->by_id.tbl)
		return s;
	free(s);
	return NULL;
}

int sessions_set(struct gateway *g, const struct message_gateway_session *m)
{
	struct session *s = sessions_get(g, m->sandbox_id), *other;

	if (!s)
		s = add(g, m->sandbox_id);
	if (!s)
		return -ENOMEM;
	leave(g, s);
	s->from_count = m->from_count;
	memcpy(s->from, m->from, sizeof(s->from));
	s->by_signed = m->token_hash.n == 0 && !m->by_address;
	s->callback = m->callback;
	s->admission = m->admission;
	if (m->by_address)
		list_append(&g->by_address, &s->by_address);
	if (m->token_hash.n == 0)
		return 0;
	memcpy(s->token_hash, m->token_hash.p, sizeof(s->token_hash));
	HASH_FIND(by_hash, g->by_hash, s->token_hash, sizeof(s->token_hash), other);
	if (!other)
		HASH_ADD(by_hash, g->by_hash, token_hash, sizeof(s->token_hash), s);
	if (s->by_hash.tbl)
		return 0;
	sessions_end(g, s->id);
	return other ? -EEXIST : -ENOMEM;
}

void sessions_end(struct gateway *g, uint64_t id)
{
	struct session *s = sessions_get(g, id);

	if (!s)
		return;
	leave(g, s);
	HASH_DELETE(by_id, g->by_id, s);
	tokens_forget(g, s);
	while (!list_is_empty(&s->visitors))
		visitor_cut(container_of(s->visitors.next, struct visitor, of_session));
	free(s);
}

void sessions_free(struct gateway *g)
{
	struct session *s, *next;

	HASH_ITER(by_id, g->by_id, s, next)
	sessions_end(g, s->id);
}

static bool may_come_from(const struct session *s, const struct ip *source)
{
	bool may = s->from_count == 0;

	for (size_t i = 0; i < s->from_count; i++)
		may = may || ip_in_prefix(source, &s->from[i]);
	return may;
}

/* Takes the same time wherever the two differ. */
static bool are_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
	volatile uint8_t difference = 0;

	for (size_t i = 0; i < n; i++)
		difference = difference | (a[i] ^ b[i]);
	return difference == 0;
}

static struct session *find(
        struct gateway *g, struct slice token, const struct ip *source, bool callback)
{
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	struct session *s = NULL;

	if (digest_sha256(&g->digest, &token, 1, hash) != 0)
		return NULL;
	HASH_FIND(by_hash, g->by_hash, hash, sizeof(hash), s);
	if (s && !are_equal(hash, s->token_hash, sizeof(hash)))
		s = NULL;
	if (!s)
		s = tokens_find(g, hash);
	if (s && (s->callback != callback || !may_come_from(s, source)))
		s = NULL;
	secret_wipe(hash, sizeof(hash));
	return s;
}

struct session *sessions_find(struct gateway *g, struct slice token, const struct ip *source)
{
	return find(g, token, source, false);
}

struct session *sessions_find_asking(struct gateway *g, struct slice token, const struct ip *source)
{
	return find(g, token, source, true);
}

/* Hashes of tokens and of certificates share one table. No token is a certificate: a token has only
 * visible ASCII, and a certificate's DER has other bytes. */
struct session *sessions_find_certificate(struct gateway *g,
        const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], const struct ip *source, bool callback)
{
	struct session *s;

	HASH_FIND(by_hash, g->by_hash, hash, MESSAGE_TOKEN_HASH_BYTES, s);
	return s && s->callback == callback && may_come_from(s, source) ? s : NULL;
}

/* Sessions by address are few. The supervisor makes sure that no two of them share an address. */
struct session *sessions_find_address(struct gateway *g, const struct ip *source)
{
	for (struct list *l = g->by_address.next; l != &g->by_address; l = l->next) {
		struct session *s = container_of(l, struct session, by_address);

		if (s->from_count && may_come_from(s, source))
			return s;
	}
	return NULL;
}
