/* SPDX-License-Identifier: Apache-2.0 */
/* authorities: the CAs of this keeper: the current one, those that are still trusted, and the key
 * of a request that waits for its certificate. */
#ifndef VETHGUARD_SRC_KEEPER_AUTHORITIES_H
#define VETHGUARD_SRC_KEEPER_AUTHORITIES_H

#include "keeper/authority.h"

#define AUTHORITIES_REQUEST_MAX 1024 /* bytes of a request's PEM, with NUL */

struct authorities {
	size_t count;
	/* References; the current one first, then the newest of those that it has replaced. */
	struct authority *list[MESSAGE_CAS_MAX];
	/* When each is dropped, seconds since the epoch; 0: never. */
	int64_t retires_s[MESSAGE_CAS_MAX];
	struct ca_request *request;                /* owned; NULL: none */
	char request_pem[AUTHORITIES_REQUEST_MAX]; /* as it was given out */
	struct ca_papers roots;                    /* of the configuration; empty: it names none */
	char problem[CA_WHY_MAX];                  /* why list[0] signs for no new sandbox; "" */
	char note[CA_WHY_MAX];                     /* on the current one; "" */
	uint8_t configured; /* the configuration's files (message_keeper_ca_ask); 0: none */
	bool fresh;         /* list has a root that was made just now, and nobody knows it yet */
};

/* Takes it. Puts a CA in front; those of its root are dropped, the others stay trusted until
 * retires_s. Returns 0, or -ENOSPC: too many are still trusted; -ENOMEM: authority is NULL. */
int authorities_lead(struct authorities *all, struct authority *authority, int64_t retires_s);
void authorities_drop(struct authorities *all, size_t i);
/* Returns the CA for a sandbox that knows this root (fingerprint; empty: it is new; zeros: the
 * oldest), or NULL: none. */
struct authority *authorities_find(const struct authorities *all, struct slice root);
bool authorities_have(const struct authorities *all, const uint8_t ca[CA_FINGERPRINT_BYTES]);
/* Appends the PEM of all roots that are to be trusted, first's root first (NULL: no preference).
 * Returns 0 or -errno. */
int authorities_trusted(
        const struct authorities *all, const struct authority *first, struct buf *out);
/* Another reference of each; the request's key is copied. Returns 0 or -ENOMEM. */
int authorities_copy(struct authorities *to, const struct authorities *from);
void authorities_fini(struct authorities *all);

/* authority_file.c. Loads from the file; an empty file is filled with a new root, which is on the
 * disk on return. fd stays the caller's. Returns 0, or -EIO with *why, a text for people. */
int authorities_open(struct authorities *all, int fd, const char **why);
/* Writes into an empty file, which is on the disk on return. Returns 0 or -errno. */
int authorities_save(const struct authorities *all, int fd);

#endif
