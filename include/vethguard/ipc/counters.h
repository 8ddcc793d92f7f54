/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters: what has passed within the last period, in shared memory that outlives the worker that counts. A worker
 * adds; the supervisor makes the memory, gives each counter its place, and keeps the memory while workers come and go.
 *
 * A counter never forgets an added amount too early: no more than the maximum is added within any span as long as its
 * period. It may remember an amount for up to a sixtieth of the period too long. Several workers may add at the same
 * time.
 *
 * The memory is a memfd of sealed size, or a file below /run, which outlives every process. Readers trust nothing in
 * it: they bound what they read. Times are of clock_boot_ms(), so a file of another boot is not used.
 */
#ifndef VETHGUARD_IPC_COUNTERS_H
#define VETHGUARD_IPC_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTERS_MAX 512 /* counters of one memory */
#define COUNTERS_KEY 16  /* bytes that name a counter */
#define COUNTERS_AMOUNT_MAX ((UINT64_C(1) << 40) - 1)
#define COUNTERS_NONE UINT32_MAX

struct counters {
	struct counters_memory *memory; /* the mapping; NULL: none */
};

/* Makes a memory without counters as a memfd whose size is sealed. Returns a descriptor that the caller owns, or
 * -errno. */
int counters_create(void);
/* Does the same with a new file (mode 0600) in a directory. Returns the descriptor, -EEXIST or another -errno. */
int counters_create_at(int directory, const char *name);
/* Opens such a file. Returns the descriptor; -ENOENT; -EBADMSG: it is damaged, of another version or another boot, of
 * another user, or writable by others; or another -errno. */
int counters_open_at(int directory, const char *name);

/* Maps the memory and closes fd in any case: the mapping lasts. Returns 0 or -errno (-EBADMSG: an invalid size). */
int counters_open(struct counters *counters, int fd);
void counters_close(struct counters *counters);
/* Returns true if nothing is mapped, or the memory has vanished under the mapping: the amounts are not known then. */
bool counters_are_lost(const struct counters *counters);

/* Finds the counter of this key and period. Returns COUNTERS_NONE if there is none. */
uint32_t counters_find(const struct counters *counters, const uint8_t key[COUNTERS_KEY], uint64_t period_ms);
/* Finds the counter, or gives it a place: a free one, else that of a counter without amount for which is_kept()
 * returns false (NULL: all are kept). Raises its amount to at_least, or to the most that one counter of this key,
 * whatever its own period, has got within period_ms, if that is more. Only the supervisor calls this. Returns
 * COUNTERS_NONE if there is no place. */
uint32_t counters_place(struct counters *counters, const uint8_t key[COUNTERS_KEY], uint64_t period_ms,
        uint64_t at_least, int64_t now_ms, bool (*is_kept)(void *context, const uint8_t *key, uint64_t period_ms),
        void *context);

/* What was added within the last period. */
uint64_t counters_used(const struct counters *counters, uint32_t index, int64_t now_ms);
/* Adds the amount if no more than max is used then. For amount 0, adds nothing and asks whether less than max is used
 * now. Returns false, with nothing added, otherwise. */
bool counters_add(const struct counters *counters, uint32_t index, int64_t now_ms, uint64_t amount, uint64_t max);
/* Subtracts an amount that counters_add() has added at added_ms. Other sixtieths of the period keep what they have. */
void counters_take_back(const struct counters *counters, uint32_t index, int64_t added_ms, uint64_t amount);
/* Milliseconds until counters_add() may succeed if nobody adds anything meanwhile; -1: it never will. */
int64_t counters_wait_ms(
        const struct counters *counters, uint32_t index, int64_t now_ms, uint64_t amount, uint64_t max);

#endif
