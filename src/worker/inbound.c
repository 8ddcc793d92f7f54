/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's part in exposed ports: the supervisor opens the host's listeners and makes
 * connections into the sandbox; this file passes them to the proxy. It also asks the supervisor for
 * UDP sockets for clients of the gateway, and passes those to the proxy. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "worker/worker.h"

int worker_listen(struct worker *w, struct ipc_message *m)
{
	struct message_listen listen;

	if (message_listen_decode(&m->body, &listen) < 0 || m->fd_count != 1)
		return -EBADMSG;
	if (w->proxy)
		return proxy_serve_exposed(w->proxy, worker_take_fd(m), listen.port);
	if (w->exposed_count == POLICY_EXPOSES_MAX)
		return -EBADMSG;
	w->exposed[w->exposed_count].port = listen.port;
	w->exposed[w->exposed_count++].fd = worker_take_fd(m);
	return 0;
}

int worker_serve_exposed(struct worker *w)
{
	int rc = 0;

	for (size_t i = 0; i < w->exposed_count && rc == 0; i++)
		rc = proxy_serve_exposed(w->proxy, w->exposed[i].fd, w->exposed[i].port);
	w->exposed_count = 0;
	return rc;
}

int worker_reach(void *context, uint16_t port, uint32_t count)
{
	struct worker *w = context;
	const struct message_reach reach = {port, count};
	uint8_t message[64];

	return ipc_send(&w->supervisor, message,
	        message_reach_encode(message, sizeof(message), MESSAGE_WORKER_REACH, port, &reach),
	        NULL, 0);
}

int worker_reached(struct worker *w, struct ipc_message *m)
{
	struct message_reached reached;
	char why[256];

	if (message_reached_decode(&m->body, &reached) < 0 || !w->proxy)
		return -EBADMSG;
	slice_escape(reached.error, why, sizeof(why));
	return proxy_reached(w->proxy, reached.port, &reached.address, m->fds, m->fd_count,
	        why[0] ? why : "no connection into the sandbox can be made");
}

int worker_call(void *context, uint64_t id, struct slice sandbox, uint16_t port)
{
	struct worker *w = context;
	const struct message_call call = {sandbox, port};
	uint8_t message[512];

	return ipc_send(&w->supervisor, message,
	        message_call_encode(message, sizeof(message), MESSAGE_WORKER_CALL, id, &call), NULL,
	        0);
}

int worker_called(struct worker *w, struct ipc_message *m)
{
	if (!reader_done(&m->body) || m->fd_count > 1 || !w->proxy)
		return -EBADMSG;
	return proxy_called(w->proxy, m->head.id, m->fd_count ? worker_take_fd(m) : -1);
}

int worker_visited(struct worker *w, struct ipc_message *m)
{
	struct message_visit visit;

	if (message_visit_decode(&m->body, &visit) < 0 || m->fd_count != 1 || !w->proxy)
		return -EBADMSG;
	proxy_visited(w->proxy, visit.port, worker_take_fd(m), visit.sandbox, visit.labels);
	return 0;
}

int worker_associate(void *context, uint64_t id, const struct ip *at)
{
	struct worker *w = context;
	const struct message_worker_associate associate = {*at};
	uint8_t message[64];

	return ipc_send(&w->supervisor, message,
	        message_worker_associate_encode(
	                message, sizeof(message), MESSAGE_WORKER_ASSOCIATE, id, &associate),
	        NULL, 0);
}

void worker_associate_end(void *context)
{
	struct worker *w = context;
	uint8_t message[64];

	ipc_send(&w->supervisor, message,
	        message_empty(message, sizeof(message), MESSAGE_WORKER_ASSOCIATE_END, 0), NULL, 0);
}

int worker_associated(struct worker *w, struct ipc_message *m)
{
	struct message_worker_associated associated;

	if (message_worker_associated_decode(&m->body, &associated) < 0 || !w->proxy ||
	        m->fd_count != (associated.port ? 1 : 0))
		return -EBADMSG;
	proxy_associated(w->proxy, m->head.id, associated.port ? worker_take_fd(m) : -1,
	        &associated.address, associated.port);
	return 0;
}
