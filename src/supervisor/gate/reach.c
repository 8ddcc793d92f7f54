/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections into a sandbox, for ports that its policy exposes. They come from the gate's own
 * address. The sockets are transparent, because the fence gives every packet of the sandbox to a
 * transparent socket. So an answer of the sandbox reaches its connection before any listener
 * (kernel documentation, networking/tproxy), and the fence needs no rule for it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/gate/private.h"

struct reach {
	const struct gate *gate;
	uint16_t port;
	int *fds;
	size_t wanted, count;
};

static int set_transparent(int fd, int family)
{
	const int one = 1;
	int rc = family == 4 ? setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof(one))
	                     : setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &one, sizeof(one));

	return rc < 0 ? -errno : 0;
}

static int bind_and_connect(int fd, const struct ip *from, const struct ip *to, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(from, 0, &ss);

	if (bind(fd, (struct sockaddr *)&ss, n) < 0)
		return -errno;
	n = ip_to_sockaddr(to, port, &ss);
	if (connect(fd, (struct sockaddr *)&ss, n) < 0 && errno != EINPROGRESS)
		return -errno;
	return 0;
}

const struct ip *gate_reached(const struct gate *gate)
{
	return gate->sandbox4.family ? &gate->sandbox4 : &gate->sandbox6;
}

static int reach_one(const struct gate *gate, uint16_t port)
{
	const struct ip *to = gate_reached(gate);
	bool ipv4 = to->family == 4;
	int fd, rc;

	fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = set_transparent(fd, to->family);
	if (!rc)
		rc = bind_and_connect(fd, ipv4 ? &gate->gate4 : &gate->gate6, to, port);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int in_gate(void *context)
{
	struct reach *r = context;

	while (r->count < r->wanted) {
		int fd = reach_one(r->gate, r->port);

		if (fd < 0)
			return fd;
		r->fds[r->count++] = fd;
	}
	return 0;
}

const char *gate_cannot_reach(const struct gate *gate)
{
	if (gate->kind == GATE_SOCKET)
		return "a sandbox whose only way is a Unix socket has no address to connect to";
	if (gate->kind == GATE_SHARED)
		return "a sidecar has no right to make connections into its group, whose ports are "
		       "reached at the group's own address";
	if (!gate->sandbox4.family && !gate->sandbox6.family)
		return "it is not known which of a network's addresses the port belongs to: attach "
		       "the one container or machine with --address";
	return NULL;
}

int gate_reach(const struct gate *gate, uint16_t port, int *fds, size_t count, size_t *made)
{
	struct reach r = {.gate = gate, .port = port, .wanted = count};
	int rc;

	r.fds = fds;
	*made = 0;
	if (gate_cannot_reach(gate) || gate->netns < 0)
		return -EOPNOTSUPP;
	rc = netns_run(gate->netns, in_gate, &r);
	*made = r.count;
	return r.count ? 0 : rc;
}
