/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: the keeper as the supervisor sees it, and its health. */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_KEEPER_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_KEEPER_H

#include "vethguard/loop/loop.h"

struct ipc_message;
struct source_result;
struct sources;
struct supervisor;

/* Persistent: restarts of the keeper within KEEPER_RESTARTS_MS; further ones wait. */
#define KEEPER_RESTARTS_MAX 4
#define KEEPER_RESTARTS_MS 60000
/* Persistent: interval of the keeper's health check. */
#define KEEPER_HEALTH_MS 3000
/* Unanswered checks in a row after which the keeper is killed. */
#define KEEPER_HEALTH_MISSED_MAX 3

struct keeper_health {
	struct loop_timer timer;
	pid_t pid;       /* keeper that was asked last; 0: none */
	uint64_t id;     /* id of the question that is not answered yet; or 0 */
	unsigned missed; /* unanswered checks in a row */
};

/* What the supervisor knows about its keepers, of which one runs at a time. */
struct keeper_life {
	bool ready; /* a keeper was ready once: the root CA's file is valid */
	int64_t deaths_ms[KEEPER_RESTARTS_MAX];
	size_t death_count;
	struct loop_timer timer; /* until the next keeper is started */
	struct keeper_health health;
	/* Set by the daemon; called if a keeper dies before any was ready. */
	void (*on_lost)(struct supervisor *sv, const char *how);
};

/* process/keeper.c. Returns 0 or -errno. */
int keeper_start(struct supervisor *sv);
/* Answers the keeper's request id with the descriptor or error of its source (sources.h). */
void supervisor_on_source(struct sources *sources, uint64_t id, const struct source_result *result);
/* process/keeper_health.c: starts the health check; persistent only. Returns 0 or -errno. */
int keeper_health_start(struct supervisor *sv);
/* Handles the keeper's answer. Returns 0 or -EBADMSG. */
int keeper_health_answered(struct supervisor *sv, struct ipc_message *message);

#endif
