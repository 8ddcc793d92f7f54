/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate's listening sockets, before a worker has them. Until then, clients wait in their queues,
 * and nothing they send is read. So a gate that is taken over listens at once, before anything else
 * of it is verified, and its owner is told when a client waits.
 *
 * A gate that dozes has its seven sockets already, and none of them listens. To wake it takes eight
 * short calls, and none of them enters its namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/gate/private.h"

#define BACKLOG 1024

static int listen_on(struct gate *gate, enum message_listener kind, bool stream, uint16_t port)
{
	static const int families[] = {4, 6};

	for (size_t i = 0; i < 2; i++) {
		if (gate->listener_count >= MESSAGE_LISTENERS_MAX)
			return -ENOSPC;
		int fd = fence_listen(families[i], stream, port, BACKLOG);
		if (fd < 0)
			return fd;
		gate->listeners[gate->listener_count++] = (struct gate_listener){kind, port, fd, 0};
	}
	return 0;
}

int gate_listen_always(struct gate *gate)
{
	int rc = 0;

	STEP("listening for connections",
	        listen_on(gate, MESSAGE_LISTEN_TCP, true, gate->tcp_port));
	STEP("listening for names", listen_on(gate, MESSAGE_LISTEN_DNS_UDP, false, GATE_DNS_PORT));
	STEP("listening for names", listen_on(gate, MESSAGE_LISTEN_DNS_TCP, true, GATE_DNS_PORT));
	return rc;
}

int gate_listen_udp(struct gate *gate)
{
	int rc = 0;

	for (size_t i = 0; i < gate->udp_port_count; i++)
		STEP("listening for datagrams",
		        listen_on(gate, MESSAGE_LISTEN_UDP, false, gate->udp_ports[i]));
	return rc;
}

static int in_gate_listen(void *context)
{
	struct gate *gate = context;
	int rc = gate_listen_always(gate);

	return rc ? rc : gate_listen_udp(gate);
}

/* All workers of a gate accept from the one queue of its socket, whose file is bound once: a
 * sandbox may hold the file itself, not its path. */
static int share_entrance(struct gate *gate)
{
	int fd = gate->entrance < 0 ? -1 : fcntl(gate->entrance, F_DUPFD_CLOEXEC, 0);

	gate->step = "sharing the socket";
	if (gate->entrance < 0) /* the gateway passes connections to the worker */
		return 0;
	if (fd < 0)
		return -errno;
	gate->listeners[gate->listener_count++] = (struct gate_listener){
	        .kind = gate->cid ? MESSAGE_LISTEN_VSOCK : MESSAGE_LISTEN_UNIX,
	        .fd = fd,
	        .cid = gate->cid};
	return 0;
}

int gate_listen(struct gate *gate)
{
	gate_close_handed_out(gate);
	if (gate->kind == GATE_SOCKET)
		return share_entrance(gate);
	/* The step until in_gate_listen() sets its own. */
	gate->step = "entering the gate's namespace";
	int rc = gate->kind == GATE_SHARED ? gate_listen_shared(gate)
	                                   : netns_run(gate->netns, in_gate_listen, gate);

	if (rc)
		gate_close_handed_out(gate);
	return rc;
}

static int in_gate_listen_further(void *context)
{
	struct gate *gate = context;
	int rc = 0;

	STEP("listening for connections",
	        listen_on(gate, MESSAGE_LISTEN_TCP, true, gate->tcp_port));
	return rc;
}

int gate_listen_further(struct gate *gate)
{
	gate_close_handed_out(gate);
	gate->step = "entering the gate's namespace";
	int rc = netns_run(gate->netns, in_gate_listen_further, gate);

	if (rc)
		gate_close_handed_out(gate);
	return rc;
}

void gate_sleep(struct gate *gate)
{
	gate_close_handed_out(gate);
	if (gate->packets >= 0)
		close(gate->packets);
	gate->packets = -1;
}

static bool is_stream(const struct gate_listener *l)
{
	return l->kind == MESSAGE_LISTEN_TCP || l->kind == MESSAGE_LISTEN_DNS_TCP;
}

/* make_ready() makes a socket of each kind for IPv4, then one for IPv6. */
static int family_of(const struct gate *gate, const struct gate_listener *l)
{
	return (l - gate->listeners) % 2 ? 6 : 4;
}

static int make_ready(struct gate *gate, enum message_listener kind, uint16_t port)
{
	for (size_t i = 0; i < 2; i++) {
		struct gate_listener *l = &gate->listeners[gate->listener_count];
		int rc = 0;

		*l = (struct gate_listener){.kind = kind, .port = port};
		l->fd = fence_socket(family_of(gate, l), is_stream(l));
		if (l->fd < 0)
			return l->fd;
		gate->listener_count++;
		if (is_stream(l))
			rc = fence_bind(l->fd, family_of(gate, l), port);
		if (rc)
			return rc;
	}
	return 0;
}

static int in_gate_doze(void *context)
{
	struct gate *gate = context;
	int rc = make_ready(gate, MESSAGE_LISTEN_TCP, gate->tcp_port);

	if (!rc)
		rc = make_ready(gate, MESSAGE_LISTEN_DNS_UDP, GATE_DNS_PORT);
	if (!rc)
		rc = make_ready(gate, MESSAGE_LISTEN_DNS_TCP, GATE_DNS_PORT);
	if (rc)
		return rc;
	gate->packets = fence_nflog_socket();
	return gate->packets < 0 ? gate->packets : 0;
}

void gate_doze(struct gate *gate)
{
	gate_sleep(gate);
	gate->dozes = netns_run(gate->netns, in_gate_doze, gate) == 0;
	if (!gate->dozes)
		gate_sleep(gate);
}

static int rouse(struct gate *gate)
{
	int rc = 0;

	STEP("listening for dropped packets", fence_nflog_bind(gate->packets, FENCE_NFLOG_GROUP));
	for (size_t i = 0; i < gate->listener_count && !rc; i++) {
		struct gate_listener *l = &gate->listeners[i];

		gate->step = l->kind == MESSAGE_LISTEN_TCP ? "listening for connections"
		                                           : "listening for names";
		if (!is_stream(l))
			rc = fence_bind(l->fd, family_of(gate, l), l->port);
		else if (listen(l->fd, BACKLOG) < 0)
			rc = -errno;
	}
	gate->dozes = false;
	return rc;
}

static int in_gate_wake(void *context)
{
	struct gate *gate = context;
	int rc = 0;

	STEP("listening for dropped packets", gate_open_packets(gate));
	return rc ? rc : in_gate_listen(gate);
}

static int open_all(struct gate *gate)
{
	gate_sleep(gate);
	gate->step = "entering the gate's namespace";
	return netns_run(gate->netns, in_gate_wake, gate);
}

int gate_wake(struct gate *gate)
{
	int rc = gate->dozes ? rouse(gate) : open_all(gate);

	if (rc)
		gate_sleep(gate);
	return rc;
}

/* Waiting for clients. */

struct knock {
	struct loop_io io;
	struct gate_door *door;
};

struct gate_door {
	struct gate *gate;
	void (*on_knock)(struct gate *gate);
	size_t count;
	struct knock knocks[];
};

void gate_await_end(struct gate *gate)
{
	struct gate_door *door = gate->door;

	if (!door)
		return;
	gate->door = NULL;
	for (size_t i = 0; i < door->count; i++)
		loop_io_close(&door->knocks[i].io);
	free(door);
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct gate_door *door = container_of(io, struct knock, io)->door;
	void (*on_knock)(struct gate * gate) = door->on_knock;
	struct gate *gate = door->gate;

	(void)events;
	gate_await_end(gate);
	on_knock(gate);
}

int gate_await(struct gate *gate, struct loop *loop, void (*on_knock)(struct gate *gate))
{
	size_t count = gate->listener_count;
	struct gate_door *door = calloc(1, sizeof(*door) + count * sizeof(door->knocks[0]));
	int rc = door ? 0 : -ENOMEM;

	gate_await_end(gate);
	if (rc)
		return rc;
	door->gate = gate;
	door->on_knock = on_knock;
	gate->door = door;
	while (!rc && door->count < count) {
		struct knock *knock = &door->knocks[door->count];

		knock->door = door;
		rc = loop_io_open_level(
		        loop, &knock->io, gate->listeners[door->count].fd, LOOP_READ, on_ready);
		door->count += !rc;
	}
	if (rc)
		gate_await_end(gate);
	return rc;
}

void gate_close_handed_out(struct gate *gate)
{
	gate_await_end(gate);
	for (size_t i = 0; i < gate->listener_count; i++)
		close(gate->listeners[i].fd);
	gate->listener_count = 0;
	gate->dozes = false;
}
