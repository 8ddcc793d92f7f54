/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrade: another daemon serves the sandbox, and its workers here finish their connections.
 * Nothing is given up until the other daemon is certain to stay. */
#include "vethguard/base/log.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

/* The other daemon's worker serves. */
enum sandbox_state sandbox_hand_off(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	gate_close_handed_out(&s->gate);
	sandbox_expose_close(s);
	sandbox_retire_all(s);
	return SANDBOX_HANDED_OFF;
}

enum sandbox_state sandbox_roll_back(struct sandbox *s)
{
	if (sandbox_resume_verifying(s) != 0)
		return sandbox_close_down(s);
	return s->session ? SANDBOX_ASLEEP : sandbox_start_another(s);
}

/* The workers here have finished. The sandbox ends here only once the other daemon is certain to
 * stay. */
enum sandbox_state sandbox_finish_hand_off(struct sandbox *s)
{
	return s->is_given ? sandbox_sum_up(s) : SANDBOX_HANDED_OFF;
}

enum sandbox_state sandbox_fail_handed_off(struct sandbox *s)
{
	log_sandbox(LOG_LEVEL_ERROR, s->name, "%s", s->failure);
	sandbox_kill_workers(s, "its sandbox is being cut off");
	return SANDBOX_HANDED_OFF;
}
