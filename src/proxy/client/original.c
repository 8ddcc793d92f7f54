/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a client was going to. A transparent socket has that address itself. Where the kernel has
 * rewritten the destination instead, its connection table keeps the original one
 * (SO_ORIGINAL_DST; ip6tables has the same number for IPv6). A client that connected to the
 * listener itself has that as its original destination.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "proxy/client/client.h"

#define ORIGINAL_DESTINATION 80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST */

bool client_dialed_address(int fd, bool rewritten, struct ip *out, uint16_t *port)
{
	struct sockaddr_storage own = {0}, original = {0};
	socklen_t n = sizeof(own), original_n = sizeof(original);
	const struct sockaddr *dialed = (struct sockaddr *)&own;

	if (getsockname(fd, (struct sockaddr *)&own, &n) < 0)
		return false;
	if (rewritten) {
		int level = own.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;

		if (getsockopt(fd, level, ORIGINAL_DESTINATION, &original, &original_n) < 0)
			return false;
		dialed = (struct sockaddr *)&original;
	}
	*out = ip_from_sockaddr(dialed, port);
	return out->family != 0;
}
