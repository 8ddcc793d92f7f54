/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP sockets for clients of the gateway that ask by SOCKS5 for an association. A worker may bind
 * nothing, so this file opens the socket, at the address that the client's TCP connection has
 * reached. The worker names that address, and this file checks it: a worker gets sockets only at
 * addresses where the gateway listens.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/process/gateway.h"
#include "supervisor/supervisor.h"
#include "vethguard/base/hash.h"

#define BIND_TRIES_MAX (2 * GATEWAY_UDP_SOCKETS_MAX) /* a worker asks, and the supervisor waits */

static bool is_unspecified(const struct ip *address)
{
	return ip_classify(address) == IP_UNSPECIFIED;
}

/* True if a listener of the gateway takes connections at this address. A listener at the
 * unspecified address takes them at all addresses of the host; bind() fails for others. */
static bool listens_at(const struct gateway_life *life, const struct ip *at)
{
	if (is_unspecified(at))
		return false;
	for (size_t i = 0; i < life->config.listener_count; i++) {
		const struct ip *own = &life->config.listeners[i].address;

		if (ip_equals(own, at) || (own->family == at->family && is_unspecified(own)))
			return true;
	}
	return false;
}

/* Returns 0 or -errno. */
static int bind_to(int fd, const struct ip *at, uint16_t port)
{
	struct sockaddr_storage address;
	socklen_t n = ip_to_sockaddr(at, port, &address);

	return bind(fd, (struct sockaddr *)&address, n) < 0 ? -errno : 0;
}

/* Tries the ports of the configuration in turn, beginning with a random one. Without such ports the
 * kernel chooses. Returns 0 or -errno. */
static int bind_somewhere(const struct gateway_life *life, int fd, const struct ip *at)
{
	const uint32_t first = life->config.udp_first, count = life->config.udp_last - first + 1u;
	uint32_t begin = 0;
	int rc = -EADDRINUSE;

	if (!first)
		return bind_to(fd, at, 0);
	random_bytes(&begin, sizeof(begin));
	for (uint32_t i = 0; i < count && i < BIND_TRIES_MAX && rc == -EADDRINUSE; i++)
		rc = bind_to(fd, at, (uint16_t)(first + (begin % count + i) % count));
	return rc;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof(at);
	uint16_t port = 0;

	if (getsockname(fd, (struct sockaddr *)&at, &n) == 0)
		(void)ip_from_sockaddr((struct sockaddr *)&at, &port);
	return port;
}

/* Returns the address that the client is told: behind a NAT it is not the host's own. */
static struct ip address_for_client(const struct gateway_life *life, const struct ip *at)
{
	const struct ip *given =
	        at->family == 4 ? &life->config.udp_address4 : &life->config.udp_address6;

	return given->family ? *given : *at;
}

int gateway_udp_open(
        struct supervisor *sv, const struct ip *at, struct message_worker_associated *told)
{
	struct gateway_life *life = &sv->gateway;
	int fd, rc;

	*told = (struct message_worker_associated){.port = 0};

	if (!listens_at(life, at))
		return -EACCES;
	if (life->udp_sockets >= GATEWAY_UDP_SOCKETS_MAX)
		return -EMFILE;
	fd = socket(
	        at->family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = bind_somewhere(life, fd, at);
	told->port = rc ? 0 : port_of(fd);
	if (told->port) {
		told->address = address_for_client(life, at);
		life->udp_sockets++;
		return fd;
	}
	close(fd);
	return rc ? rc : -EADDRINUSE;
}

void gateway_udp_closed(struct supervisor *sv, size_t count)
{
	struct gateway_life *life = &sv->gateway;

	life->udp_sockets -= count < life->udp_sockets ? count : life->udp_sockets;
}
