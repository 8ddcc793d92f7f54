/* SPDX-License-Identifier: Apache-2.0 */
/* authority: a CA of this keeper, whose key never leaves it, and what it signs. */
#ifndef VETHGUARD_SRC_KEEPER_AUTHORITY_H
#define VETHGUARD_SRC_KEEPER_AUTHORITY_H

#include "vethguard/ipc/peer.h"
#include "vethguard/tls/ca_papers.h"

/* A CA that signs sandboxes' intermediates: a root, or an intermediate below an operator's root. */
struct authority {
	unsigned refs;
	enum message_ca_origin origin;
	struct ca *ca;
	struct ca_papers chain; /* between it and its root */
	struct ca_papers root;  /* one certificate */
	struct ca_description described, root_described;
};

/* Takes ca. chain, root: copied; root NULL: ca is the root. Returns one reference, or NULL: no
 * memory. */
struct authority *authority_of(struct ca *ca, enum message_ca_origin origin,
        const struct ca_papers *chain, const struct ca_papers *root);
struct authority *authority_get(struct authority *authority);
void authority_put(struct authority *authority); /* NULL is allowed */
/* Makes a new root "vethguard sandbox CA RANDOM". Returns NULL if there is no memory or no
 * randomness. */
struct authority *authority_new(void);
/* Makes an intermediate "vethguard intermediate CA RANDOM" for a worker. Returns NULL as above, or
 * if the CA's time is over. names: what it may sign for (tls/ca_names.h); NULL: anything. */
struct ca *authority_intermediate(const struct authority *authority, const char *names);
/* The same for a CA whose key is in a token (ca_key_is_elsewhere()): done is called later. Returns
 * NULL with why if it will not be called. */
struct token_job;
struct token;
struct token_job *authority_intermediate_later(const struct authority *authority,
        struct token *token, const char *names,
        void (*done)(void *context, struct ca *made, const char *why), void *context,
        char why[CA_WHY_MAX]);
/* True if less than a fifth of the CA's time is left. */
bool authority_ends_soon(const struct authority *authority, int64_t now_s);
/* Answers MESSAGE_CA_GET. Returns 0 or -errno. */
int authority_send(const struct authority *authority, const struct ca *intermediate,
        struct ipc_peer *peer, uint64_t id);

#endif
