/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a listener that TPROXY may hand other hosts' packets to has to be
 * transparent. Its getsockname() (TCP) or a control message (UDP) then tells where the sandbox
 * wanted to go.
 */
#include "vethguard/fence/fence.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

struct option {
	int level, name;
};

static int switch_on(int fd, const struct option *options, size_t count)
{
	int one = 1;

	for (size_t i = 0; i < count; i++)
		if (setsockopt(fd, options[i].level, options[i].name, &one, sizeof(one)) < 0)
			return -errno;
	return 0;
}

static int set_options(int fd, int family, bool stream)
{
	static const struct option tcp4[] = {{SOL_SOCKET, SO_REUSEADDR}, {SOL_SOCKET, SO_REUSEPORT},
	        {IPPROTO_IP, IP_TRANSPARENT}};
	static const struct option udp4[] = {{SOL_SOCKET, SO_REUSEPORT},
	        {IPPROTO_IP, IP_TRANSPARENT}, {IPPROTO_IP, IP_RECVORIGDSTADDR},
	        {IPPROTO_IP, IP_PKTINFO}};
	static const struct option tcp6[] = {{SOL_SOCKET, SO_REUSEADDR}, {SOL_SOCKET, SO_REUSEPORT},
	        {IPPROTO_IPV6, IPV6_V6ONLY}, {IPPROTO_IPV6, IPV6_TRANSPARENT}};
	static const struct option udp6[] = {{SOL_SOCKET, SO_REUSEPORT},
	        {IPPROTO_IPV6, IPV6_V6ONLY}, {IPPROTO_IPV6, IPV6_TRANSPARENT},
	        {IPPROTO_IPV6, IPV6_RECVORIGDSTADDR}, {IPPROTO_IPV6, IPV6_RECVPKTINFO}};

	if (family == 4)
		return stream ? switch_on(fd, tcp4, 3) : switch_on(fd, udp4, 4);
	return stream ? switch_on(fd, tcp6, 4) : switch_on(fd, udp6, 5);
}

int fence_bind(int fd, int family, uint16_t port)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int rc = family == 4 ? bind(fd, (struct sockaddr *)&a4, sizeof(a4))
	                     : bind(fd, (struct sockaddr *)&a6, sizeof(a6));

	return rc < 0 ? -errno : 0;
}

int fence_socket(int family, bool stream)
{
	int type = (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd, rc;

	if (family != 4 && family != 6)
		return -EAFNOSUPPORT;
	fd = socket(family == 4 ? AF_INET : AF_INET6, type, 0);
	if (fd < 0)
		return -errno;
	rc = set_options(fd, family, stream);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int fence_listen(int family, bool stream, uint16_t port, int backlog)
{
	int fd = fence_socket(family, stream), rc;

	if (fd < 0)
		return fd;
	rc = fence_bind(fd, family, port);
	if (rc == 0 && stream && listen(fd, backlog) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}
