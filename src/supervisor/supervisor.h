/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: what all sandboxes share: the loop, keeper and recorder, the registry. */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include "supervisor/sandbox.h"

#define SUPERVISOR_STOP_MS 2000

struct supervisor {
	struct loop *loop;
	struct role keeper, recorder;
	bool log_given, recorder_ready, finishing;
	struct sandbox *sandboxes; /* registry, by id */
	uint64_t last_id;          /* of sandboxes and of requests */
	int status;                /* exit status */
};

/* Starts keeper and recorder. 0 or -errno with what failed in *step. */
int supervisor_start(struct supervisor *sv, struct loop *loop, const char **step);
/* Gives the recorder its log (the callee's descriptor stays the caller's). 0 or -errno. */
int supervisor_start_log(struct supervisor *sv, const char *path, int fd);
/* Stops keeper and recorder; the loop ends when both are gone. */
void supervisor_finish(struct supervisor *sv, int status);
void supervisor_fini(struct supervisor *sv);
/* Answers the keeper's request id with what its source gave (sources.h). */
void supervisor_on_source(struct sources *sources, uint64_t id, int fd, const char *error);
uint64_t supervisor_next_id(struct supervisor *sv);

/* records.c: events of the supervisor's own, through the recorder. Nothing happens where it is
 * gone. */
void record_lifecycle(struct supervisor *sv, const struct sandbox *s, enum event_lifecycle what);
void record_finding(struct supervisor *sv, const struct sandbox *s, enum event_finding finding,
        const char *text);

#endif
