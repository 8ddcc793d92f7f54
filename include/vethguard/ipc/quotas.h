/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quotas: what this host may still take of budgets that several hosts share, in shared memory between workers, which
 * take, and vethguard-quota, which asks the server for more (src/quota). The supervisor makes the memory, gives each
 * quota its place, and keeps the memory while the other processes come and go.
 *
 * A quota has a lease: an amount that workers may take until a time. Its claims are what this host has got of the
 * budget, for each part (a sixtieth) of the budget's period: what was taken, and what is left of the lease. The server
 * is told all claims with each question, so it counts the same after it has lost its data, or an answer.
 *
 * The memory is a memfd of sealed size, or a file below /run. Readers trust nothing in it: they bound what they read.
 * Times are of clock_boot_ms(), so a file of another boot is not used.
 */
#ifndef VETHGUARD_IPC_QUOTAS_H
#define VETHGUARD_IPC_QUOTAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOTAS_MAX 128  /* quotas of one memory */
#define QUOTAS_KEY 16   /* bytes that name a quota, with its period and amount */
#define QUOTAS_ID 8     /* bytes that name the memory: no two hosts have the same, nor two boots */
#define QUOTAS_PARTS 60 /* of a period */
#define QUOTAS_CLAIMS 64
#define QUOTAS_AMOUNT_MAX ((UINT64_C(1) << 40) - 1)
#define QUOTAS_NONE UINT32_MAX
#define QUOTAS_BEAT_MS 5000 /* without a sign of life for this time, vethguard-quota counts as gone */

enum quota_state {
	QUOTA_ASKING = 0,  /* nothing is known yet */
	QUOTA_OPEN = 1,    /* the server has more */
	QUOTA_USED_UP = 2, /* the server has no more at the moment */
	QUOTA_AWAY = 3,    /* the server cannot be asked */
	QUOTA_STATE_COUNT
};

struct quotas {
	struct quotas_memory *memory; /* the mapping; NULL: none */
	int bell;                     /* eventfd that wakes vethguard-quota; -1: none */
};

/* Makes a memory without quotas as a memfd whose size is sealed. Returns a descriptor that the caller owns, or
 * -errno. */
int quotas_create(void);
/* Does the same with a new file (mode 0600) in a directory. Returns the descriptor, -EEXIST or another -errno. */
int quotas_create_at(int directory, const char *name);
/* Opens such a file. Returns the descriptor; -ENOENT; -EBADMSG: it is damaged, of another version or another boot, of
 * another user, or writable by others; or another -errno. */
int quotas_open_at(int directory, const char *name);
/* Maps the memory and closes fd in any case. bell: taken, also on failure. Returns 0 or -errno (-EBADMSG: an invalid
 * size). */
int quotas_open(struct quotas *quotas, int fd, int bell);
void quotas_close(struct quotas *quotas);
/* Returns true if nothing is mapped, or the memory has vanished under the mapping. */
bool quotas_are_lost(const struct quotas *quotas);

/* --- for the supervisor --- */

/* Gives the memory its name, if it has none, and says among how many hosts a budget is divided while the server is
 * away. Returns 0 or -errno. */
int quotas_prepare(struct quotas *quotas, uint32_t hosts);
/* Finds the quota, or gives it a free place, which it keeps. Returns QUOTAS_NONE if there is none. */
uint32_t quotas_place(struct quotas *quotas, const uint8_t key[QUOTAS_KEY], uint64_t period_ms, uint64_t amount);
/* What the server said last: what all hosts together have got within the last period. */
uint64_t quotas_used_by_all(const struct quotas *quotas, uint32_t index);
enum quota_state quotas_state(const struct quotas *quotas, uint32_t index);

/* --- for workers --- */

/* Finds the quota of this key, period and amount. Returns QUOTAS_NONE if there is none. */
uint32_t quotas_find(const struct quotas *quotas, const uint8_t key[QUOTAS_KEY], uint64_t period_ms, uint64_t amount);
/* Takes the amount from the lease, or for amount 0 asks whether the lease has anything left. Returns false, with
 * nothing taken, if it has not; vethguard-quota is told then, and also when little is left. */
bool quotas_take(const struct quotas *quotas, uint32_t index, int64_t now_ms, uint64_t amount);
/* Tells vethguard-quota that a worker wants this much. */
void quotas_want(const struct quotas *quotas, uint32_t index, uint64_t amount);
/* How much quotas_take() would give now. */
uint64_t quotas_left(const struct quotas *quotas, uint32_t index, int64_t now_ms);
/* Returns true if nobody can ask the server for more. */
bool quotas_are_away(const struct quotas *quotas, uint32_t index, int64_t now_ms);
/* Counts what passes without a lease; the server is told later. */
void quotas_owe(const struct quotas *quotas, uint32_t index, uint64_t amount);
/* Gives back what quotas_take() gave at taken_ms. If the lease is another one meanwhile, it stays counted. */
void quotas_give_back(const struct quotas *quotas, uint32_t index, int64_t taken_ms, uint64_t amount);
/* Milliseconds until the server may have more, by its last answer; at least 1000. */
int64_t quotas_wait_ms(const struct quotas *quotas, uint32_t index, int64_t now_ms);
/* Among how many hosts a budget is divided while the server is away; 0: not known. */
uint32_t quotas_hosts(const struct quotas *quotas);

/* --- for vethguard-quota --- */

/* A sign of life. From now on workers ring the bell again. */
void quotas_beat(const struct quotas *quotas, int64_t now_ms);
void quotas_id(const struct quotas *quotas, uint8_t out[QUOTAS_ID]);
/* Returns the largest amount that was not there when a worker wanted it, and forgets it. */
uint64_t quotas_take_wanted(const struct quotas *quotas, uint32_t index);
/* The sum of all that was ever taken; it comes around. */
uint64_t quotas_taken(const struct quotas *quotas, uint32_t index);

/* The lease: its part, its end, and how little is little. */
struct quota_lease {
	int64_t part;     /* number of the part in which it was got; server's time */
	int64_t since_ms; /* the lease before ended then */
	int64_t until_ms;
	uint64_t low;
};
void quotas_lease(const struct quotas *quotas, uint32_t index, struct quota_lease *out);
void quotas_set_lease(const struct quotas *quotas, uint32_t index, const struct quota_lease *lease);
void quotas_add(const struct quotas *quotas, uint32_t index, uint64_t amount);
/* Takes away what is left, except for `keep`. Returns how much that was. */
uint64_t quotas_withdraw(const struct quotas *quotas, uint32_t index, uint64_t keep);
/* used_by_all UINT64_MAX: as before. */
void quotas_set_state(
        const struct quotas *quotas, uint32_t index, enum quota_state state, int64_t retry_at_ms, uint64_t used_by_all);

/* What quotas_owe() has counted. Call quotas_owed_sub() after the claim has it: if this process dies in between, it is
 * claimed twice, and never not at all. */
uint64_t quotas_owed(const struct quotas *quotas, uint32_t index);
void quotas_owed_sub(const struct quotas *quotas, uint32_t index, uint64_t amount);

/* Claim number slot (below QUOTAS_CLAIMS): returns the amount, and the part's number in *part. */
uint64_t quotas_claim(const struct quotas *quotas, uint32_t index, size_t slot, int64_t *part);
void quotas_claim_add(const struct quotas *quotas, uint32_t index, int64_t part, uint64_t amount);
void quotas_claim_sub(const struct quotas *quotas, uint32_t index, int64_t part, uint64_t amount);

#endif
