/* SPDX-License-Identifier: Apache-2.0 */
/* roles: asking every role that serves how it is confined (vethguard doctor --roles). */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_CONFINEMENT_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_CONFINEMENT_H

#include "supervisor/supervisor.h"

/* Since the last answer: thousands take their time. A role that hangs is told of as one without. */
#define CONFINEMENT_PATIENCE_MS 2000

struct confinement_report {
	char label[ROLE_LABEL_MAX]; /* "the supervisor", "the keeper", "the worker of x" */
	pid_t pid;
	char *text; /* owned: jail_describe(); NULL: no answer */
};

/* reports: the supervisor's own is the first. Valid during the call. */
typedef void (*roles_told)(
        void *context, uint64_t id, const struct confinement_report *reports, size_t count);

/* Asks all of them; told is called once, from the loop or by confinement_fini(), with the same id.
 * 0; -EBUSY: somebody else's question is under way; -ENOMEM. */
int confinement_ask(struct supervisor *sv, uint64_t id, roles_told told, void *context);
/* Ends a question that is under way: told is called without any report. */
void confinement_fini(struct supervisor *sv);

#endif
