/* SPDX-License-Identifier: Apache-2.0 */
/*
 * states: the handlers of the sandbox's table (sandbox.c). Each does what an event asks for and
 * returns the next state; only the dispatcher calls them, or another handler that ends as they do.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_STATES_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_STATES_H

#include "supervisor/sandbox/sandbox.h"

/* begin.c */
/* Asks the owner for the values of env: sources; without such it begins. */
enum sandbox_state sandbox_ask_or_begin(struct sandbox *s);
enum sandbox_state sandbox_begin(struct sandbox *s);
enum sandbox_state sandbox_serve_when_ready(struct sandbox *s);
enum sandbox_state sandbox_no_variables(struct sandbox *s); /* in time */
enum sandbox_state sandbox_too_late(struct sandbox *s);     /* to serve */

/* end.c */
/* Nothing of it was seen by anybody. */
enum sandbox_state sandbox_end_early(struct sandbox *s);
/* Its workers finish what is under way, for SANDBOX_STOP_MS. */
enum sandbox_state sandbox_stop_workers(struct sandbox *s);
/* At once; s->failure is a finding. */
enum sandbox_state sandbox_cut_off(struct sandbox *s);
/* No worker is left: the recorder writes what is left of this sandbox. */
enum sandbox_state sandbox_sum_up(struct sandbox *s);
enum sandbox_state sandbox_summed(struct sandbox *s);
enum sandbox_state sandbox_no_summary(struct sandbox *s); /* in time */
/* No handler: none is current any more; why goes into the log. */
void sandbox_kill_workers(struct sandbox *s, const char *why);

/* restart.c, for those that last */
/* Its gate listens already. */
enum sandbox_state sandbox_adopt(struct sandbox *s);
/* Its worker died, as s->failure says: another one is started, unless that was too often. */
enum sandbox_state sandbox_restart(struct sandbox *s);
/* Now, if there is none yet. */
enum sandbox_state sandbox_start_another(struct sandbox *s);
enum sandbox_state sandbox_serve_again(struct sandbox *s);
/* A worker under another generation serves. */
enum sandbox_state sandbox_took_over(struct sandbox *s);
/* Nobody serves it: its fence stands, nothing listens, so everything is refused. */
enum sandbox_state sandbox_close_down(struct sandbox *s);
/* That, or cut off where it does not last. */
enum sandbox_state sandbox_fail_closed(struct sandbox *s);

/* sandbox/handoff.c, of an upgrade */
enum sandbox_state sandbox_hand_off(struct sandbox *s);
enum sandbox_state sandbox_roll_back(struct sandbox *s);
/* Its workers are gone. */
enum sandbox_state sandbox_finish_hand_off(struct sandbox *s);
enum sandbox_state sandbox_fail_handed_off(struct sandbox *s);

/* pause.c: whoever has worked for the sandbox ends; one that knows nothing of it explains. */
enum sandbox_state sandbox_quiesced(struct sandbox *s);

#endif
