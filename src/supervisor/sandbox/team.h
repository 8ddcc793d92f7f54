/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team: several workers of one sandbox (workers: of the configuration). The first one, s->current,
 * is what any sandbox has: only it answers names, relays datagrams and serves exposed ports.
 * Further ones serve TCP connections besides, at listeners of their own, under the same generation.
 * They are started once the first one serves, and retire with it. The sandbox's table of states
 * does not know them: while one of them is missing, the others serve.
 *
 * Sandboxes with one worker have no team, and nothing of this costs them anything.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_TEAM_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_TEAM_H

#include "vethguard/ipc/team.h"
#include "vethguard/wire/message.h"

struct generation;
struct instance;
struct sandbox;
struct sandbox_team;

/* How many workers serve the sandbox under that generation: what the configuration says, or 1 if
 * the sandbox or its policy can have only one. */
uint32_t team_size(const struct sandbox *s, const struct generation *g);
/* Makes the memory that the workers of the generation share, unless it is made already or there is
 * only one worker. Returns 0, or -errno with s->failure. */
int team_make_memory(struct sandbox *s, struct generation *g);
/* Gives the worker a seat and tells it, before its START. Does nothing if it is the only worker.
 * Returns 0, or -errno with s->failure. */
int team_tell(struct instance *i);
/* The worker is gone: nothing is open at its seat any more, and it answers no question. */
void team_forget(struct instance *i);

/* True if it is a further worker that serves, or will, under the generation in force. */
bool team_has(const struct sandbox *s, const struct instance *i);
/* Starts the next missing worker if the first one serves. Call this after every event of the
 * sandbox. */
void team_fill(struct sandbox *s);
/* A further worker under the generation in force has died; how completes "the worker %s". It is
 * freed already. */
void team_member_died(struct sandbox *s, const char *how);
/* How many further workers of the generation in force serve; up to max of their process ids are
 * written to pids. */
size_t team_serving(const struct sandbox *s, pid_t *pids, size_t max);
/* How many retired workers may finish their connections at a time. */
size_t team_retired_max(const struct sandbox *s);
/* Also drops all questions about figures. */
void team_free(struct sandbox *s);

/* Asks all serving workers for their figures. owner->stats is called with their sums and this id.
 * Returns 0 or -errno. */
int sandbox_ask_stats(struct sandbox *s, uint64_t id);
/* The worker answers no question any more: its figures are left out of the sums. */
void team_forget_questions(const struct instance *i);
/* Drops all questions; owner->stats is not called for them. */
void team_free_questions(struct sandbox *s);
/* Takes one worker's answer. Returns false if no sum with this id waits for the worker. */
bool team_take_stats(struct sandbox *s, const struct instance *i, uint64_t id,
        const struct message_worker_stats *m);

#endif
