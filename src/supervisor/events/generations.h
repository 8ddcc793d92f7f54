/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_sets: where each daemon has its rings, events and journal. As long as there was no
 * upgrade that is the state directory itself, set 0. A daemon that takes over from one that still
 * finishes has a set of its own beside it, in "upgrade-N". The one with the highest number is that
 * of the daemon that answers, or answered last.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_GENERATIONS_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_GENERATIONS_H

#include "supervisor/supervisor.h"

/* The set to go on with where no other daemon runs: its directory (the caller's) or -errno. */
int journal_generation_last(int state, uint64_t *number);
/* A further one. */
int journal_generation_new(int state, uint64_t *number);
/* Takes over what is in the set, of which nothing runs any more, and removes it. */
void journal_generation_adopt(struct supervisor *sv, int state, uint64_t number);
/* All but own. */
void journal_generation_adopt_others(struct supervisor *sv, int state, uint64_t own);

#endif
