/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: for each gauge a seat has one word, which only the worker of the seat
 * changes. A worker adds first, and then compares the sum of all seats with the maximum. So two
 * workers that ask at the same time may both be refused, but never both exceed the maximum.
 */
#include "vethguard/ipc/team.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ipc/private.h"

struct team_memory {
	_Atomic uint64_t guessed; /* bit i: credential i */
	_Alignas(64) _Atomic uint32_t open[TEAM_GAUGES][TEAM_SEATS];
};
_Static_assert(TEAM_CREDENTIALS == 64, "a bit for each credential");
_Static_assert(TEAM_SEATS >= 2 * TEAM_WORKERS_MAX, "seats for workers that are ending, too");

int team_create(void)
{
	return ipc_memory_new("vethguard-team", sizeof(struct team_memory));
}

int team_open(struct team *team, int fd, uint32_t seat)
{
	int rc = -EBADMSG;

	*team = (struct team){.seat = seat};
	if (seat < TEAM_SEATS)
		team->memory = ipc_memory_map(fd, sizeof(struct team_memory), &rc);
	close(fd);
	return rc;
}

void team_close(struct team *team)
{
	if (team->memory)
		ipc_memory_unmap(team->memory, sizeof(struct team_memory));
	team->memory = NULL;
}

uint64_t team_open_count(const struct team *team, uint32_t gauge)
{
	uint64_t all = 0;

	for (size_t i = 0; i < TEAM_SEATS; i++)
		all += atomic_load(&team->memory->open[gauge][i]);
	return all;
}

bool team_enter(const struct team *team, uint32_t gauge, uint64_t max)
{
	atomic_fetch_add(&team->memory->open[gauge][team->seat], 1);
	if (team_open_count(team, gauge) <= max)
		return true;
	team_leave(team, gauge);
	return false;
}

/* Another worker may have written anything to the word, so it is not decremented below zero. */
void team_leave(const struct team *team, uint32_t gauge)
{
	_Atomic uint32_t *place = &team->memory->open[gauge][team->seat];

	if (atomic_load(place) > 0)
		atomic_fetch_sub(place, 1);
}

void team_clear(const struct team *team)
{
	for (size_t i = 0; i < TEAM_GAUGES; i++)
		atomic_store(&team->memory->open[i][team->seat], 0);
}

void team_note_guess(const struct team *team, uint32_t credential)
{
	atomic_fetch_or(&team->memory->guessed, UINT64_C(1) << credential);
}

bool team_is_guessed(const struct team *team, uint32_t credential)
{
	return atomic_load(&team->memory->guessed) >> credential & 1;
}
