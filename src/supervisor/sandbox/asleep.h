/* SPDX-License-Identifier: Apache-2.0 */
/* asleep: a session without a connection has no worker. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_ASLEEP_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_ASLEEP_H

#include "vethguard/wire/message.h"

struct instance;
struct sandbox;

/* Number of looks at a worker within keep_worker, and number of looks in a row that find nothing
 * open before the worker is ended. So the worker is ended when nothing was open for 1 to 1.5 times
 * keep_worker. */
#define SANDBOX_IDLE_LOOKS 2
#define SANDBOX_IDLE_IN_A_ROW (SANDBOX_IDLE_LOOKS + 1)
/* STARTING: how often the sandbox checks whether keeper and recorder are ready. */
#define SANDBOX_READY_LOOK_MS 20

struct sandbox_sleep {
	int64_t ready_until_ms; /* STARTING: the time limit */
	uint64_t question;      /* id of the last look; 0: it was answered */
	uint64_t entered;       /* gateway.entered at the last look */
	unsigned idle;          /* looks in a row that found nothing open */
	bool waking;            /* its worker is being started because of a connection */
	/* Sums of the counters of workers that were ended because they were idle, under the present
	 * generation. The figures of what was open are not used. */
	struct message_worker_stats past;
};

/* Learns from the keeper's CAs what the sandbox is to trust. Returns 0; -EAGAIN: the keeper has not
 * told them yet; or -ENOKEY, with the sandbox's failure filled in. */
int sandbox_know_root(struct sandbox *s);
/* Call when a worker has begun to serve: the supervisor looks at it from now on. */
void sandbox_begin_looking(struct sandbox *s);
/* Takes a worker's figures. Returns false if they do not answer the last look. */
bool sandbox_take_look(
        struct sandbox *s, struct instance *i, uint64_t id, const struct message_worker_stats *m);
/* Adds the counters of workers that were ended before to m. */
void sandbox_add_past(const struct sandbox *s, struct message_worker_stats *m);
/* sources_examine() for the present generation, also without a worker. */
void sandbox_examine_sources(
        const struct sandbox *s, void (*tell)(void *context, const char *fault), void *context);

#endif
