/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GATE_SHARED: the listeners on the loopback addresses to which the fence of a shared namespace
 * (fence/shared.h) rewrites what the sandbox sends. Ordinary sockets, because this process may have
 * no right to make transparent ones. A namespace without IPv6 has no ::1, and no listener there.
 *
 * Datagrams to synthetic addresses are not rewritten: the addresses are local ones of the
 * namespace, so a socket that is bound to no address gets them, with the address in a control
 * message.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "supervisor/gate/private.h"

#define BACKLOG 1024

static const struct ip loopback4 = {.family = 4, .bytes = {127, 0, 0, 1}};
static const struct ip loopback6 = {.family = 6, .bytes = {[15] = 1}};

static int bind_to(int fd, const struct ip *address, bool stream, uint16_t port)
{
	struct sockaddr_storage at;
	socklen_t n = ip_to_sockaddr(address, port, &at);
	int one = 1;

	/* The next set of listeners opens while a worker still has this one. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
		return -errno;
	/* Otherwise bind() would fail while the kernel remembers connections of an earlier guard.
	 * Not for datagrams: it would let other programs bind beside this socket. */
	if (stream && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (address->family == 6 &&
	        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -errno;
	return bind(fd, (struct sockaddr *)&at, n) < 0 ? -errno : 0;
}

/* What tells where a datagram was going to, and lets the answer leave from there. */
static int tell_destination(int fd, int family)
{
	int one = 1;

	if (family == 4)
		return setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &one, sizeof(one)) < 0
		               ? -errno
		               : 0;
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &one, sizeof(one)) < 0 ||
	        setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one)) < 0)
		return -errno;
	return 0;
}

static int open_listener(const struct ip *address, bool stream, uint16_t port)
{
	int type = (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(address->family == 4 ? AF_INET : AF_INET6, type, 0), rc;

	if (fd < 0)
		return -errno;
	rc = bind_to(fd, address, stream, port);
	if (!rc && stream && listen(fd, BACKLOG) < 0)
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int listen_on(struct gate *gate, enum message_listener kind, bool stream, uint16_t port)
{
	const struct ip *addresses[] = {&loopback4, &loopback6};

	for (size_t i = 0; i < 2; i++) {
		int fd = open_listener(addresses[i], stream, port);

		if (i == 1 && (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT))
			continue;
		if (fd == -EADDRINUSE)
			snprintf(gate->why, sizeof(gate->why),
			        "port %u of the loopback address is in use by another program of "
			        "this pod or group: start the guard before it",
			        (unsigned)port);
		if (fd < 0)
			return fd;
		gate->listeners[gate->listener_count++] = (struct gate_listener){kind, port, fd, 0};
	}
	return 0;
}

/* Why a UDP port could not be bound. */
static void explain_udp(struct gate *gate, int rc, uint16_t port)
{
	if (rc == -EADDRINUSE)
		snprintf(gate->why, sizeof(gate->why),
		        "UDP port %u is in use by another program of this pod or group: the guard "
		        "needs it for the policy's udp:// rules: start the guard before it",
		        (unsigned)port);
	if (rc == -EACCES)
		snprintf(gate->why, sizeof(gate->why),
		        "UDP port %u may not be bound by this user: set the sysctl "
		        "net.ipv4.ip_unprivileged_port_start of this pod or group to %u or less",
		        (unsigned)port, (unsigned)port);
}

static int listen_udp(struct gate *gate, uint16_t port)
{
	static const struct ip any[] = {{.family = 4}, {.family = 6}};

	for (size_t i = 0; i < 2; i++) {
		int fd = open_listener(&any[i], false, port);
		int rc = fd < 0 ? fd : tell_destination(fd, any[i].family);

		if (i == 1 && fd == -EAFNOSUPPORT)
			continue;
		if (rc < 0) {
			explain_udp(gate, rc, port);
			if (fd >= 0)
				close(fd);
			return rc;
		}
		gate->listeners[gate->listener_count++] =
		        (struct gate_listener){MESSAGE_LISTEN_UDP, port, fd, 0};
	}
	return 0;
}

int gate_listen_shared(struct gate *gate)
{
	int rc = 0;

	STEP("listening for connections",
	        listen_on(gate, MESSAGE_LISTEN_REWRITTEN, true, gate->tcp_port));
	STEP("listening for names", listen_on(gate, MESSAGE_LISTEN_DNS_UDP, false, gate->dns_port));
	STEP("listening for names", listen_on(gate, MESSAGE_LISTEN_DNS_TCP, true, gate->dns_port));
	for (size_t i = 0; i < gate->udp_port_count; i++)
		STEP("listening for datagrams", listen_udp(gate, gate->udp_ports[i]));
	return rc;
}

int gate_open_shared(struct gate *gate, int packets)
{
	gate->kind = GATE_SHARED;
	gate->gate4 = loopback4;
	gate->gate6 = loopback6;
	gate->packets = packets;
	gate->why[0] = 0;
	return gate_listen_shared(gate);
}
