/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers which signatures of callbacks were used, by the SHA-256 of what is signed, until
 * they expire. An expired one is refused. If there is no room for another one, its callback is
 * refused. Each gateway process remembers only the signatures that it has taken itself.
 */
#include <stdlib.h>

#include "gateway/gateway.h"
#include "vethguard/base/clock.h"

static void forget(struct gateway *g, struct used_signature *u)
{
	HASH_DEL(g->used, u);
	free(u);
}

/* Forgets expired signatures, the oldest first, up to the first one that has not expired. */
static void sweep(struct gateway *g)
{
	const int64_t now_ms = clock_real_ms();
	struct used_signature *u, *next;

	HASH_ITER(hh, g->used, u, next)
	{
		if (u->until_ms > now_ms)
			break;
		forget(g, u);
	}
}

bool replay_take(struct gateway *g, const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], int64_t until_ms)
{
	struct used_signature *u;

	if (until_ms <= clock_real_ms()) /* it has expired while its body came */
		return false;
	sweep(g);
	HASH_FIND(hh, g->used, hash, MESSAGE_TOKEN_HASH_BYTES, u);
	if (u || HASH_COUNT(g->used) >= GATEWAY_USED_SIGNATURES_MAX)
		return false;
	u = calloc(1, sizeof(*u));
	if (!u)
		return false;
	memcpy(u->hash, hash, sizeof(u->hash));
	u->until_ms = until_ms;
	HASH_ADD(hh, g->used, hash, sizeof(u->hash), u);
	if (u->hh.tbl)
		return true;
	free(u);
	return false;
}

void replay_free(struct gateway *g)
{
	struct used_signature *u, *next;

	HASH_ITER(hh, g->used, u, next)
	forget(g, u);
}
