/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team: what the workers of one sandbox under one policy know together, in shared memory: how much of each kind is
 * open at a time, and which credentials somebody may be guessing. Each worker has a seat, and writes what it has open
 * to the place of its seat only. The supervisor makes the memory and clears the seat of a worker that is gone.
 *
 * The memory is a memfd of sealed size. Readers trust nothing in it: a worker that was taken over can make the others
 * refuse too much or too little, as it could by itself, and can do nothing else.
 */
#ifndef VETHGUARD_IPC_TEAM_H
#define VETHGUARD_IPC_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#define TEAM_WORKERS_MAX 16 /* of one sandbox */
#define TEAM_SEATS 64       /* more than workers: those that are ending keep their seats */
#define TEAM_GAUGES 128     /* kinds of things that are open at a time */
#define TEAM_CREDENTIALS 64

struct team {
	struct team_memory *memory; /* the mapping; NULL: none */
	uint32_t seat;
};

/* Makes the memory, with nothing open. Returns a descriptor that the caller owns, or -errno. */
int team_create(void);
/* Maps it for the worker of that seat; closes fd in any case: the mapping lasts. Returns 0 or -errno (-EBADMSG: an
 * invalid size or seat). */
int team_open(struct team *team, int fd, uint32_t seat);
void team_close(struct team *team);

/* Counts one more that is open under the gauge (below TEAM_GAUGES). Returns false, with nothing counted, if more than
 * max would be open at all seats together. Of two workers that ask at the same time for the last place, both may get
 * false. */
bool team_enter(const struct team *team, uint32_t gauge, uint64_t max);
/* Takes back one that team_enter() has counted at this seat. */
void team_leave(const struct team *team, uint32_t gauge);
/* Returns how much is open under the gauge at all seats. */
uint64_t team_open_count(const struct team *team, uint32_t gauge);
/* Sets all counts of this seat to 0: its worker is gone. */
void team_clear(const struct team *team);

/* Notes that somebody may be guessing the credential (below TEAM_CREDENTIALS). The note stays as long as the memory. */
void team_note_guess(const struct team *team, uint32_t credential);
bool team_is_guessed(const struct team *team, uint32_t credential);

#endif
