/* SPDX-License-Identifier: Apache-2.0 */
/* commits: a table of a pack's commits, by id and by place. Tells if one descends from another. */
#ifndef VETHGUARD_SRC_GIT_COMMITS_H
#define VETHGUARD_SRC_GIT_COMMITS_H

#include "vethguard/base/hash.h"
#include "vethguard/policy/git.h"

struct commit {
	uint8_t id[POLICY_GIT_ID_MAX];
	size_t at;     /* where its object begins in the pack */
	uint8_t *text; /* owned */
	size_t n;
	uint32_t seen; /* number of the last search that met it */
	bool ends;     /* the pusher's history is shallow and ends here: its parents do not count */
};

struct commits {
	struct commit *items; /* in the order of `at` */
	size_t count, room;
	uint32_t *slots;   /* index + 1, or 0 */
	size_t slot_count; /* a power of two, four times the room */
	struct hash_key key;
	size_t id_n;  /* 20 or 32 */
	size_t bytes; /* of all texts */
	uint32_t searches;
	size_t steps; /* of all searches */
};

/* id_n: bytes of an id, 20 (SHA-1) or 32 (SHA-256). */
void commits_init(struct commits *c, size_t id_n);
void commits_fini(struct commits *c);
/* Adds a commit whose place is behind those of all others. Owns the text from then on, also on
 * failure. Returns 0, -ENOBUFS (a bound is reached), -ENOMEM or -EIO. */
int commits_add(struct commits *c, size_t at, uint8_t *text, size_t n);
/* Find the commit that begins at that place, or that has that id. Return NULL if there is none. */
struct commit *commits_at(const struct commits *c, size_t at);
struct commit *commits_find(const struct commits *c, const uint8_t *id);
/* True if the commits prove that `id` has `ancestor` among its ancestors. False also if the memory
 * or GIT_STEPS_MAX steps do not suffice. */
bool commits_descends(struct commits *c, const uint8_t *id, const uint8_t *ancestor);

#endif
