/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker asks for the UDP socket of an association (SOCKS5), for a client that has come by the
 * gateway. The worker tells when it has closed the socket. Sockets that it holds at its end count
 * as closed then.
 */
#include <errno.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* Returns the descriptor with what the client is told, or -errno. */
static int open_socket(
        struct instance *i, const struct ip *at, struct message_worker_associated *told)
{
	int fd;

	if (i != i->sandbox->current || !i->sandbox->gateway.admitted)
		return -EACCES;
	if (i->udp_sockets >= INSTANCE_UDP_SOCKETS_MAX)
		return -EMFILE;
	fd = gateway_udp_open(i->supervisor, at, told);
	if (fd >= 0)
		i->udp_sockets++;
	return fd;
}

int instance_on_associate(struct instance *i, struct ipc_message *message)
{
	struct message_worker_associated answer = {0};
	struct message_worker_associate m;
	int fd, rc;

	if (message_worker_associate_decode(&message->body, &m) != 0 || message->fd_count)
		return -EBADMSG;
	fd = open_socket(i, &m.at, &answer);
	if (fd < 0)
		log_sandbox(LOG_LEVEL_INFO, i->sandbox->name,
		        "a client of the gateway gets no UDP socket: %s", strerror(-fd));
	rc = role_send(&i->worker, buffer,
	        message_worker_associated_encode(buffer, sizeof(buffer), MESSAGE_WORKER_ASSOCIATED,
	                message->head.id, &answer),
	        &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	if (rc)
		log_sandbox(LOG_LEVEL_WARN, i->sandbox->name, "its worker: %s", strerror(-rc));
	return 0;
}

int instance_on_associate_end(struct instance *i, struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->fd_count || !i->udp_sockets)
		return -EBADMSG;
	i->udp_sockets--;
	gateway_udp_closed(i->supervisor, 1);
	return 0;
}

void instance_forget_associations(struct instance *i)
{
	gateway_udp_closed(i->supervisor, i->udp_sockets);
	i->udp_sockets = 0;
}
