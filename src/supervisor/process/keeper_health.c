/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper that dies is replaced at once. A keeper that hangs would not be noticed, and workers
 * would wait for it in vain. So it is asked regularly. If it leaves KEEPER_HEALTH_MISSED_MAX
 * questions unanswered and sends nothing else either, it is killed. The rest is as for any death.
 */
#include <errno.h>

#include "supervisor/supervisor.h"

static void ask(struct supervisor *sv)
{
	uint8_t message[64];

	sv->keeper_life.health.id = supervisor_next_id(sv);
	role_send(&sv->keeper, message,
	        message_empty(
	                message, sizeof(message), MESSAGE_KEEPER_CHECK, sv->keeper_life.health.id),
	        NULL, 0);
}

static void on_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, keeper_life.health.timer);
	struct role *keeper = &sv->keeper;

	loop_timer_set(timer, KEEPER_HEALTH_MS);
	if (keeper->pid != sv->keeper_life.health.pid)
		sv->keeper_life.health.id = 0; /* the previous keeper will not answer */
	sv->keeper_life.health.missed =
	        sv->keeper_life.health.id ? sv->keeper_life.health.missed + 1 : 0;
	sv->keeper_life.health.pid = keeper->pid;
	if (!role_runs(keeper) || keeper->stopping)
		return;
	if (sv->keeper_life.health.missed >= KEEPER_HEALTH_MISSED_MAX)
		role_kill(keeper, "it does not answer any more");
	else if (!sv->keeper_life.health.id)
		ask(sv);
}

int keeper_health_answered(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body) || !sv->keeper_life.health.id ||
	        message->head.id != sv->keeper_life.health.id)
		return -EBADMSG;
	sv->keeper_life.health.id = 0;
	return 0;
}

int keeper_health_start(struct supervisor *sv)
{
	int rc = loop_timer_open(sv->loop, &sv->keeper_life.health.timer, on_time);

	if (!rc)
		loop_timer_set(&sv->keeper_life.health.timer, KEEPER_HEALTH_MS);
	return rc;
}
