/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets towards programs, whose datagrams the kernel brings here with their destination unchanged
 * (kernel documentation, networking/tproxy). The first datagram of a flow arrives at a socket for
 * all destinations. From then on the flow has a socket of its own, which is bound to the
 * destination and connected to the program's socket: the kernel prefers it, and answers that it
 * sends come from where the program expects them. Both are transparent sockets, which need
 * CAP_NET_ADMIN.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "association.h"
#include "proxy/tunnel/udp_socket.h"
#include "udp.h"

#define BATCH 32

static int transparent_socket(int family)
{
	const int on = 1;
	int fd = socket(
	        family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool good;

	if (fd < 0)
		return -1;
	if (family == 6)
		good = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0 &&
		       setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &on, sizeof(on)) == 0;
	else
		good = setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) == 0;
	if (good)
		return fd;
	close(fd);
	return -1;
}

static bool bind_to(int fd, const struct endpoint *at)
{
	struct sockaddr_storage ss;
	const socklen_t n = ip_to_sockaddr(&at->address, at->port, &ss);

	return bind(fd, (struct sockaddr *)&ss, n) == 0;
}

int capture_open(int family, uint16_t *port)
{
	struct endpoint at = {.port = 0};
	struct sockaddr_storage here = {0};
	socklen_t n = sizeof(here);
	const int on = 1;
	int fd = transparent_socket(family);
	bool good;

	if (fd < 0)
		return -1;
	ip_parse(family == 6 ? SLICE("::1") : SLICE("127.0.0.1"), &at.address);
	if (family == 6)
		good = setsockopt(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &on, sizeof(on)) == 0;
	else
		good = setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof(on)) == 0;
	if (good && bind_to(fd, &at) && getsockname(fd, (struct sockaddr *)&here, &n) == 0) {
		ip_from_sockaddr((struct sockaddr *)&here, port);
		return fd;
	}
	close(fd);
	return -1;
}

void capture_read(struct udp *u, int fd)
{
	static uint8_t in[DATAGRAM_MAX];
	struct endpoint client, destination;

	for (unsigned i = 0; i < BATCH; i++) {
		const ssize_t n = udp_socket_receive(fd, in, sizeof(in), &client.address,
		        &client.port, &destination.address, &destination.port);

		if (n < 0)
			return;
		if (destination.address.family && client.address.family)
			udp_take(u, &client, &destination, in, (size_t)n);
	}
}

int capture_open_flow(const struct endpoint *client, const struct endpoint *destination)
{
	const int on = 1;
	int fd = transparent_socket(destination->address.family);
	struct sockaddr_storage to;
	const socklen_t n = ip_to_sockaddr(&client->address, client->port, &to);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	        bind_to(fd, destination) && connect(fd, (struct sockaddr *)&to, n) == 0)
		return fd;
	close(fd);
	return -1;
}

bool capture_read_flow(struct flow *f)
{
	static uint8_t in[DATAGRAM_MAX];

	for (unsigned i = 0; i < BATCH; i++) {
		const ssize_t n = recv(f->fd, in, sizeof(in), MSG_DONTWAIT);

		if (n < 0)
			return errno != ECONNREFUSED;
		udp_take_of(f, in, (size_t)n);
	}
	return true;
}

/* A socket without SO_REUSEADDR can be bound only where no other one is. */
bool capture_is_gone(const struct endpoint *client)
{
	const int fd = socket(
	        client->address.family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const bool is_gone = fd >= 0 && bind_to(fd, client);

	if (fd >= 0)
		close(fd);
	return is_gone;
}
