/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generations: the recording set of each daemon, that is the directory of its rings, events and
 * journal. Without any upgrade it is the state directory itself, set 0. A daemon that takes over
 * from one that still finishes has its own set beside it, in "upgrade-N". The set with the highest
 * number is that of the daemon that answers, or answered last.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_GENERATIONS_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_GENERATIONS_H

#include "supervisor/supervisor.h"

/* Opens the set to continue with if no other daemon runs. Returns its directory (the caller's) or
 * -errno. */
int journal_generation_last(int state, uint64_t *number);
/* The same for a new set. */
int journal_generation_new(int state, uint64_t *number);
/* Adopts what is in a set whose processes have all ended, and removes it. */
void journal_generation_adopt(struct supervisor *sv, int state, uint64_t number);
/* The same for all sets but own. */
void journal_generation_adopt_others(struct supervisor *sv, int state, uint64_t own);

#endif
