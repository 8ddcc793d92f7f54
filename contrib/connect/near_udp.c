/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP ASSOCIATE of programs that speak SOCKS5: each association of a program has one with the
 * gateway. Datagrams are passed on unchanged, because their headers mean the same on both sides;
 * those without a valid header are dropped. Only one socket of this machine is served: the one
 * whose port the program has announced, or else the one that the first valid datagram comes from.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "association.h"
#include "link.h"
#include "vethguard/base/log.h"
#include "vethguard/wire/socks5.h"

#define BATCH 32

struct near_udp {
	struct link *link;
	struct association *association;
	int fd; /* on loopback */
	struct ip address;
	uint16_t port;
	bool connected; /* to the program's socket */
	struct event *readable;
};

static bool connect_to(struct near_udp *u, const struct sockaddr *to, socklen_t n)
{
	u->connected = connect(u->fd, to, n) == 0;
	return u->connected;
}

static void on_datagram(evutil_socket_t fd, short what, void *context)
{
	static uint8_t in[DATAGRAM_MAX];
	struct near_udp *u = context;

	(void)what;
	for (unsigned i = 0; i < BATCH; i++) {
		struct sockaddr_storage from = {0};
		socklen_t from_n = sizeof(from);
		struct socks5_header header;
		const ssize_t n = recvfrom(
		        fd, in, sizeof(in), MSG_DONTWAIT, (struct sockaddr *)&from, &from_n);

		if (n < 0)
			return;
		if (!socks5_header_parse(in, (size_t)n, &header) ||
		        (!u->connected && !connect_to(u, (struct sockaddr *)&from, from_n)))
			continue;
		association_send(u->association, in, (size_t)n, NULL, 0);
	}
}

static void on_ready(void *context)
{
	struct near_udp *u = context;
	uint8_t answer[SOCKS5_ANSWER_MAX];

	bufferevent_write(
	        u->link->near, answer, socks5_answer_association(&u->address, u->port, answer));
	bufferevent_enable(u->link->near, EV_READ | EV_WRITE);
	link_enter(u->link, LINK_ASSOCIATED);
	event_add(u->readable, NULL);
}

static void on_received(void *context, const struct socks5_header *from, const uint8_t *p, size_t n)
{
	const struct near_udp *u = context;

	(void)from;
	if (u->connected)
		send(u->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void on_ended(void *context, enum association_end end, const char *why)
{
	struct link *l = ((struct near_udp *)context)->link;

	log_debug("link %p: the UDP association has ended: %s", (void *)l, why);
	if (end == ASSOCIATION_OVER) {
		link_free(l);
		return;
	}
	log_warn("no UDP association: %s", why);
	near_udp_free(l->udp);
	l->udp = NULL;
	near_refuse(l, end != ASSOCIATION_FAILED);
}

static bool open_socket(struct near_udp *u)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof(at);
	struct ip here;

	if (getsockname(bufferevent_getfd(u->link->near), (struct sockaddr *)&at, &n) < 0)
		return false;
	here = ip_from_sockaddr((struct sockaddr *)&at, NULL);
	n = ip_to_sockaddr(&here, 0, &at);
	u->fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0 || bind(u->fd, (struct sockaddr *)&at, n) < 0 ||
	        getsockname(u->fd, (struct sockaddr *)&at, &n) < 0)
		return false;
	u->address = ip_from_sockaddr((struct sockaddr *)&at, &u->port);
	u->readable =
	        event_new(u->link->connect->base, u->fd, EV_READ | EV_PERSIST, on_datagram, u);
	return u->readable;
}

bool near_udp_open(struct link *l, uint16_t announced_port)
{
	static const struct association_ops ops = {on_ready, on_received, on_ended};
	struct near_udp *u = calloc(1, sizeof(*u));
	struct sockaddr_storage to;

	if (!u)
		return false;
	u->link = l;
	u->fd = -1;
	l->udp = u;
	if (open_socket(u) && announced_port)
		connect_to(u, (struct sockaddr *)&to,
		        ip_to_sockaddr(&u->address, announced_port, &to));
	if (u->readable && (!announced_port || u->connected))
		u->association = association_open(l->connect, &ops, u);
	if (u->association)
		return true;
	near_udp_free(u);
	l->udp = NULL;
	return false;
}

void near_udp_free(struct near_udp *u)
{
	if (!u)
		return;
	association_free(u->association);
	if (u->readable)
		event_free(u->readable);
	if (u->fd >= 0)
		close(u->fd);
	free(u);
}
