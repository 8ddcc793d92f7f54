/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spare worker: it serves no sandbox yet and waits for START. It gets in advance what it can: its
 * pair to the keeper, and from the keeper its CA. Both peers are polled without a loop, because
 * nothing else is going on. If START overtakes the CA, the CA comes in the loop (keeper.c).
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "worker/worker.h"

enum { SUPERVISOR, KEEPER, SIDES };
/* Bound on a message with a CA. */
#define CA_BYTES_MAX (128 + (2 + MESSAGE_CHAIN_MAX) * MESSAGE_CERTIFICATE_MAX + MESSAGE_KEY_MAX)

static const char unexpected[] = "the supervisor's first message is not the one expected";

int worker_take_fd(struct ipc_message *m)
{
	int fd = m->fds[0];

	m->fds[0] = -1;
	return fd;
}

/* The keeper has gone; another one may take over. */
static void leave_keeper(struct worker *w)
{
	if (w->keeper_fd >= 0)
		close(w->keeper_fd);
	w->keeper_fd = -1;
}

static int meet_keeper(struct worker *w, struct ipc_message *m)
{
	if (!reader_done(&m->body) || m->fd_count != 1)
		return -EBADMSG;
	leave_keeper(w);
	w->keeper_fd = worker_take_fd(m);
	return keeper_ask_ca(w->keeper_fd);
}

static void hear_keeper(struct worker *w)
{
	struct ipc_message m;
	int rc = ipc_receive_blocking(w->keeper_fd, -1, w->start_message, &m);

	if (rc == -EPIPE) {
		leave_keeper(w);
		return;
	}
	if (rc == 0)
		rc = m.fd_count || m.head.type != MESSAGE_CA ? -EBADMSG : keeper_read_ca(w, &m);
	secret_wipe(w->start_message, CA_BYTES_MAX);
	if (rc < 0)
		die(WORKER_EXIT_FAILED, "a message of the keeper cannot be decoded: %s",
		        strerror(-rc));
}

static void take_start(struct worker *w, struct ipc_message *m)
{
	if (message_worker_start_decode(&m->body, &w->start) < 0)
		die(WORKER_EXIT_FAILED, "%s", unexpected);
	if (m->fd_count != MESSAGE_WORKER_FDS_BEFORE_LISTENERS + w->start.listener_count)
		die(WORKER_EXIT_FAILED, "the supervisor's first message came with %zu descriptors",
		        m->fd_count);
	memcpy(w->fds, m->fds, sizeof(w->fds));
	w->start_id = m->head.id;
}

/* Handles a message of the supervisor. True: it was START. */
static bool hear_supervisor(struct worker *w)
{
	struct ipc_message m;
	int rc = ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, w->start_message, &m);

	if (rc < 0)
		die(WORKER_EXIT_FAILED, "no message from the supervisor: %s", strerror(-rc));
	if (m.head.type == MESSAGE_WORKER_START) {
		take_start(w, &m);
		return true;
	}
	if (m.head.type == MESSAGE_WORKER_KEEPER)
		rc = meet_keeper(w, &m);
	else if (m.head.type == MESSAGE_WORKER_LIMITS)
		rc = worker_take_limits(w, &m);
	else if (m.head.type == MESSAGE_WORKER_TEAM)
		rc = worker_take_team(w, &m);
	else if (m.head.type == MESSAGE_WORKER_TOOLS)
		rc = worker_take_tools(w, &m);
	else if (m.head.type == MESSAGE_WORKER_GRANT)
		rc = worker_take_grant(w, &m);
	else if (m.head.type == MESSAGE_WORKER_PROPOSED)
		rc = worker_take_proposed(w, &m);
	else
		rc = m.fd_count ? -EBADMSG : worker_be_quiet(w, &m);
	if (rc < 0)
		die(WORKER_EXIT_FAILED, "%s", unexpected);
	return false;
}

void worker_await_start(struct worker *w)
{
	bool begun = false;

	w->keeper_fd = -1;
	w->start_message = malloc(MESSAGE_BYTES_MAX);
	if (!w->start_message)
		die(WORKER_EXIT_FAILED, "no memory");
	while (!begun) {
		struct pollfd sides[SIDES] = {
		        [SUPERVISOR] = {.fd = IPC_SUPERVISOR_FD, .events = POLLIN},
		        [KEEPER] = {.fd = w->keeper_fd, .events = POLLIN}};

		if (poll(sides, SIDES, -1) < 0)
			continue;
		if (sides[KEEPER].revents)
			hear_keeper(w);
		if (sides[SUPERVISOR].revents)
			begun = hear_supervisor(w);
	}
}
