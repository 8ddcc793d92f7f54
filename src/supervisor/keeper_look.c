/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper that dies is replaced at once; one that hangs is as good as dead, and nobody would
 * notice: workers wait for it in vain. So it is asked something from time to time (how it is
 * confined, which every role can tell), and one that owes the answer for long, and says nothing
 * else either, is killed. What follows is what follows its death.
 */
#include "supervisor/supervisor.h"

static void nobody_asks(struct role *role, struct slice text)
{
	(void)role;
	(void)text;
}

static void on_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, keeper_look);
	struct role *keeper = &sv->keeper;

	loop_timer_set(timer, KEEPER_LOOK_MS);
	if (keeper->pid != sv->keeper_looked_at || keeper->descriptions == 0)
		sv->keeper_owes = 0;
	else
		sv->keeper_owes++;
	sv->keeper_looked_at = keeper->pid;
	if (!role_runs(keeper) || keeper->stopping)
		return;
	if (sv->keeper_owes >= KEEPER_OWES_MAX)
		role_kill(keeper, "it does not answer any more");
	else if (keeper->descriptions == 0 && !sv->roles)
		role_ask(keeper, supervisor_next_id(sv), nobody_asks);
}

int supervisor_look_at_keeper(struct supervisor *sv)
{
	int error = loop_timer_open(sv->loop, &sv->keeper_look, on_time);

	if (!error)
		loop_timer_set(&sv->keeper_look, KEEPER_LOOK_MS);
	return error;
}
