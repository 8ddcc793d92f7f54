/* SPDX-License-Identifier: Apache-2.0 */
/*
 * states: the handlers in the table of the sandbox's state machine (sandbox.c). Each handles one
 * event and returns the next state. Only the dispatcher calls them, or another handler as its last
 * step.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_STATES_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_STATES_H

#include "supervisor/sandbox/sandbox.h"

/* begin.c */
/* Asks the owner for the values of env: sources; without such sources, begins at once. */
enum sandbox_state sandbox_ask_or_begin(struct sandbox *s);
enum sandbox_state sandbox_begin(struct sandbox *s);
enum sandbox_state sandbox_serve_when_ready(struct sandbox *s);
enum sandbox_state sandbox_no_variables(struct sandbox *s); /* in time */
enum sandbox_state sandbox_too_late(struct sandbox *s);     /* to serve */

/* asleep.c, sessions only */
/* STARTING without a worker: checks whether keeper and recorder are ready. */
enum sandbox_state sandbox_sleep_when_ready(struct sandbox *s);
/* Starts a worker, because a connection or an operation waits for one. */
enum sandbox_state sandbox_wake(struct sandbox *s);
/* Asks the worker whether it has anything open. */
enum sandbox_state sandbox_look(struct sandbox *s);
/* Ends the worker, which has had nothing open for long. */
enum sandbox_state sandbox_fall_asleep(struct sandbox *s);
enum sandbox_state sandbox_pause_asleep(struct sandbox *s);

/* end.c */
/* Nothing of the sandbox was visible to anybody yet. */
enum sandbox_state sandbox_end_early(struct sandbox *s);
/* The workers finish what is open, for SANDBOX_STOP_MS at most. */
enum sandbox_state sandbox_stop_workers(struct sandbox *s);
/* Kills the workers at once; s->failure is recorded as a finding. */
enum sandbox_state sandbox_cut_off(struct sandbox *s);
/* No worker is left: the recorder writes the remaining events of this sandbox. */
enum sandbox_state sandbox_sum_up(struct sandbox *s);
enum sandbox_state sandbox_summed(struct sandbox *s);
enum sandbox_state sandbox_no_summary(struct sandbox *s); /* in time */
/* Not a handler: kills all workers, so that current is NULL; the log says why. */
void sandbox_kill_workers(struct sandbox *s, const char *why);

/* restart.c, persistent only */
/* The gate listens already. */
enum sandbox_state sandbox_adopt(struct sandbox *s);
/* The gate was prepared: clients wait at it from here on, and a worker is started. */
enum sandbox_state sandbox_claim(struct sandbox *s);
/* The worker died, as s->failure says: starts another one, unless deaths were too frequent. */
enum sandbox_state sandbox_restart(struct sandbox *s);
/* Starts a worker now, if there is no current one. */
enum sandbox_state sandbox_start_another(struct sandbox *s);
enum sandbox_state sandbox_serve_again(struct sandbox *s);
/* A worker under another generation serves. */
enum sandbox_state sandbox_took_over(struct sandbox *s);
/* No worker serves: the fence stands, nothing listens, so everything is refused. */
enum sandbox_state sandbox_close_down(struct sandbox *s);
/* sandbox_close_down() if persistent, else sandbox_cut_off(). */
enum sandbox_state sandbox_fail_closed(struct sandbox *s);

/* handoff.c, for an upgrade */
enum sandbox_state sandbox_hand_off(struct sandbox *s);
enum sandbox_state sandbox_roll_back(struct sandbox *s);
/* The workers have exited. */
enum sandbox_state sandbox_finish_hand_off(struct sandbox *s);
enum sandbox_state sandbox_fail_handed_off(struct sandbox *s);

/* pause.c: ends the workers that have served the sandbox; a new one, which has received nothing
 * from it, tells clients about the pause. */
enum sandbox_state sandbox_quiesced(struct sandbox *s);

#endif
