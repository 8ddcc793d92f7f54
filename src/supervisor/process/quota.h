/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota: the supervisor's side of the process that asks the server of budgets which several hosts
 * share (src/quota). It exists only in the daemon, and only if the configuration names a server.
 * One that dies is replaced after a pause; workers have what is left of their leases meanwhile.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_QUOTA_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_QUOTA_H

#include "supervisor/process/role.h"
#include "vethguard/policy/config.h"

#define QUOTA_PAUSE_FIRST_MS 100
#define QUOTA_PAUSE_MOST_MS 5000
/* It says something only when the server comes or goes. */
#define QUOTA_BURST 128
#define QUOTA_PER_S 64

struct supervisor;

struct quota_life {
	struct role role;
	struct config_quota config; /* host empty: there is no server */
	bool open;                  /* it is meant to run */
	bool answers;               /* the server does */
	int bell;                   /* eventfd that workers ring; -1: none yet */
	struct loop_timer again;
	int64_t pause_ms;
	char problem[MESSAGE_WHAT_MAX]; /* why the server cannot be asked; empty: not known */
	/* Tells a new process of all memories of quotas (quota_tell()). Set by the supervisor. */
	void (*on_start)(struct supervisor *sv);
};

/* Takes the configuration; a changed server replaces the process. */
void quota_configure(struct supervisor *sv, const struct config_quota *config);
/* Starts the process if a server is configured; may be called again. */
void quota_open(struct supervisor *sv);
static inline bool quota_is_configured(const struct quota_life *life)
{
	return life->config.host[0];
}
/* The bell for workers: a descriptor that stays the supervisor's, or -errno. */
int quota_bell(struct supervisor *sv);
/* Tells the process of budgets in a memory (fd: a copy is sent). Does nothing while none runs. */
void quota_tell(struct supervisor *sv, const struct message_quota_budgets *budgets, int fd);
void quota_forget(struct supervisor *sv, uint64_t memory);
/* Ends the process: with the supervisor, or because another daemon has taken over. */
void quota_stop(struct supervisor *sv);
void quota_close(struct supervisor *sv);

#endif
