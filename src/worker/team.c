/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker does if its sandbox has several. The first worker answers names and gives addresses
 * to them; a further worker reads these names, and notes which of them its connections use. */
#include <errno.h>

#include "worker/worker.h"

_Static_assert(MESSAGE_SEATS_MAX == TEAM_SEATS, "a message can name each seat");
_Static_assert(POLICY_CREDENTIALS_MAX <= TEAM_CREDENTIALS, "a team knows each credential");

#define KEEP_NAMES_MS ((int64_t)RESPONDER_TTL_S * 1000)

int worker_take_team(struct worker *w, struct ipc_message *m)
{
	struct message_worker_team team;
	int fd;

	if (message_worker_team_decode(&m->body, &team) < 0 || m->fd_count != 1 || w->team.memory)
		return -EBADMSG;
	w->further = team.further;
	fd = m->fds[0];
	m->fds[0] = -1;
	return team_open(&w->team, fd, team.seat);
}

static void on_keep_names(struct loop_timer *timer)
{
	struct worker *w = container_of(timer, struct worker, keep_names);

	names_keep_held(w->names, loop_now_ms(w->loop));
	loop_timer_set(timer, KEEP_NAMES_MS);
}

int worker_share_names(struct worker *w, int fd, uint32_t *dropped)
{
	const int64_t now_ms = loop_now_ms(w->loop);
	int rc;

	if (!w->further)
		return names_share(w->names, fd, now_ms, dropped);
	rc = names_follow(w->names, fd, now_ms, dropped);
	if (rc == 0)
		rc = loop_timer_open(w->loop, &w->keep_names, on_keep_names);
	if (rc == 0)
		loop_timer_set(&w->keep_names, KEEP_NAMES_MS);
	return rc;
}
