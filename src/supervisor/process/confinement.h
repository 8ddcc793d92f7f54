/* SPDX-License-Identifier: Apache-2.0 */
/* confinement: asks every running role how it is confined (`vethguard doctor --roles`). */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_CONFINEMENT_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_CONFINEMENT_H

#include "supervisor/supervisor.h"

/* Time limit since the last answer: thousands of roles take a while. A role that hangs is reported
 * without an answer. */
#define CONFINEMENT_PATIENCE_MS 2000

struct confinement_report {
	char label[ROLE_LABEL_MAX]; /* "the supervisor", "the keeper", "the worker of x" */
	pid_t pid;
	char *text; /* owned: jail_describe(); NULL: no answer */
};

/* reports: the supervisor's own is the first. Valid during the call. */
typedef void (*roles_told)(
        void *context, uint64_t id, const struct confinement_report *reports, size_t count);

/* Asks all roles. told is called once with id, from the loop or by confinement_fini(). Returns 0;
 * -EBUSY: another query is open; -ENOMEM. */
int confinement_ask(struct supervisor *sv, uint64_t id, roles_told told, void *context);
/* Ends an open query: told is called without any report. */
void confinement_fini(struct supervisor *sv);

#endif
