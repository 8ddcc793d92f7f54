/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters: what has passed within the last period, in shared memory that outlives the worker that counts. A worker
 * adds; the supervisor makes the memory, gives each counter its place, and keeps the memory while workers come and go.
 *
 * A counter never forgets too early: in no span of the length of its period more than the maximum is ever added. It
 * may remember an amount for up to a sixtieth of the period too long. Several workers may add at the same time.
 *
 * The memory is a memfd of sealed size, or a file (of /run), which outlives every process. Whatever it holds is
 * bounded when it is read. Times are of clock_boot_ms(), so a file of another boot is not used.
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
/* The same as a new file (0600) of a directory. -EEXIST, -errno. */
int counters_create_at(int directory, const char *name);
/* Opens such a file. -ENOENT; -EBADMSG: it is damaged, of another version or another boot, or writable by others;
 * -errno. */
int counters_open_at(int directory, const char *name);

/* Maps it and takes ownership of fd (closed in any case: the mapping lasts). Returns 0 or -errno (-EBADMSG: an invalid
 * size). */
int counters_open(struct counters *counters, int fd);
void counters_close(struct counters *counters);
/* Returns true if the memory has vanished under the mapping: then nothing is known any more. */
bool counters_are_lost(const struct counters *counters);

/* Finds the counter of this key and period. Returns COUNTERS_NONE if there is none. */
uint32_t counters_find(const struct counters *counters, const uint8_t key[COUNTERS_KEY], uint64_t period_ms);
/* Finds it or gives it a place: that of a counter without amount that is_kept() does not keep, if none is free. It
 * then has what counters of the same key and other periods have got within its own period, or `at_least`, if that is
 * more. Only the supervisor calls this. Returns COUNTERS_NONE if there is no place. is_kept may be NULL: all are kept.
 */
uint32_t counters_place(struct counters *counters, const uint8_t key[COUNTERS_KEY], uint64_t period_ms,
        uint64_t at_least, int64_t now_ms, bool (*is_kept)(void *context, const uint8_t *key, uint64_t period_ms),
        void *context);

/* What was added within the last period. */
uint64_t counters_used(const struct counters *counters, uint32_t index, int64_t now_ms);
/* Adds the amount if no more than max is used then, and (amount 0) if less than max is used now. Returns false, with
 * nothing added, otherwise. */
bool counters_add(const struct counters *counters, uint32_t index, int64_t now_ms, uint64_t amount, uint64_t max);
/* Takes an amount back that was added not long ago, as far as its place in time is not over yet. */
void counters_take_back(const struct counters *counters, uint32_t index, int64_t now_ms, uint64_t amount);
/* Milliseconds until counters_add() may succeed if nobody adds anything meanwhile; -1: it never will. */
int64_t counters_wait_ms(
        const struct counters *counters, uint32_t index, int64_t now_ms, uint64_t amount, uint64_t max);

#endif
