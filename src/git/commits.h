/* SPDX-License-Identifier: Apache-2.0 */
/* commits: those of a pack, by id and by place, and whether one descends from another. */
#ifndef VETHGUARD_SRC_GIT_COMMITS_H
#define VETHGUARD_SRC_GIT_COMMITS_H

#include "vethguard/base/hash.h"
#include "vethguard/policy/git.h"

struct commit {
	uint8_t id[POLICY_GIT_ID_MAX];
	size_t at;     /* where it begins in the pack */
	uint8_t *text; /* owned */
	size_t n;
	uint32_t seen; /* the last search that came by */
	bool ends;     /* the pusher's history ends here, and the parents are not known */
};

struct commits {
	struct commit *items; /* in the order of `at` */
	size_t count, room;
	uint32_t *slots; /* 1 + index, or 0; a power of two of them, at least twice the count */
	size_t slot_count;
	struct hash_key key;
	size_t id_n;  /* 20 or 32 */
	size_t bytes; /* of all texts */
	uint32_t searches;
	size_t steps; /* of all searches */
};

/* id_n: bytes of an id, 20 (SHA-1) or 32 (SHA-256). */
void commits_init(struct commits *c, size_t id_n);
void commits_fini(struct commits *c);
/* Adds a commit behind the others and takes its text, also on failure. Returns 0, -ENOBUFS (a bound
 * is reached), -ENOMEM or -EIO. */
int commits_add(struct commits *c, size_t at, uint8_t *text, size_t n);
/* Return NULL if there is none. */
struct commit *commits_at(const struct commits *c, size_t at);
struct commit *commits_find(const struct commits *c, const uint8_t *id);
/* True if the commits prove that `id` has `ancestor` among its ancestors. */
bool commits_descends(struct commits *c, const uint8_t *id, const uint8_t *ancestor);

#endif
