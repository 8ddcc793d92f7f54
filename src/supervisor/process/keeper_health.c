/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper that dies is replaced at once; one that hangs is as good as dead, and nobody would
 * notice: workers wait for it in vain. So it is asked from time to time whether it is there, and
 * one that owes the answer for long, and says nothing else either, is killed. What follows is what
 * follows its death.
 */
#include <errno.h>

#include "supervisor/supervisor.h"

static void ask(struct supervisor *sv)
{
	uint8_t message[64];

	sv->keeper_look_id = supervisor_next_id(sv);
	role_send(&sv->keeper, message,
	        message_empty(message, sizeof message, MESSAGE_KEEPER_LOOK, sv->keeper_look_id),
	        NULL, 0);
}

static void on_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, keeper_look);
	struct role *keeper = &sv->keeper;

	loop_timer_set(timer, KEEPER_LOOK_MS);
	if (keeper->pid != sv->keeper_looked_at)
		sv->keeper_look_id = 0; /* the one before owes nothing any more */
	sv->keeper_owes = sv->keeper_look_id ? sv->keeper_owes + 1 : 0;
	sv->keeper_looked_at = keeper->pid;
	if (!role_runs(keeper) || keeper->stopping)
		return;
	if (sv->keeper_owes >= KEEPER_OWES_MAX)
		role_kill(keeper, "it does not answer any more");
	else if (!sv->keeper_look_id)
		ask(sv);
}

int supervisor_keeper_is_here(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body) || !sv->keeper_look_id ||
	        message->head.id != sv->keeper_look_id)
		return -EBADMSG;
	sv->keeper_look_id = 0;
	return 0;
}

int supervisor_look_at_keeper(struct supervisor *sv)
{
	int error = loop_timer_open(sv->loop, &sv->keeper_look, on_time);

	if (!error)
		loop_timer_set(&sv->keeper_look, KEEPER_LOOK_MS);
	return error;
}
