/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: asks the kernel in ways that send no packet. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/loop/own_address.h"

#define ANY_PORT 9
#define PROBE 0x10           /* the kernel's MSG_PROBE, which libc names differently */
#define LINK_BYTES_MAX 65535 /* no device except the loopback takes larger packets */
#define LOOPBACK_INDEX 1     /* in every network namespace */

/* A sender's own address, given in IP_PKTINFO, has to be delivered locally, and the kernel checks
 * that first. (The source address that the kernel would choose by itself tells less: among several
 * addresses in one network it takes the first for all.) Since the message is empty and only a
 * probe, nothing is sent even if the address is accepted. */
static bool is_own_ipv4(int fd, const struct ip *address)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo)),
	                     .cmsg_level = IPPROTO_IP,
	                     .cmsg_type = IP_PKTINFO}};
	struct sockaddr_storage to;
	struct in_pktinfo info = {0};
	struct msghdr message = {.msg_name = &to,
	        .msg_namelen = ip_to_sockaddr(address, ANY_PORT, &to),
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};

	memcpy(&info.ipi_spec_dst, address->bytes, sizeof(info.ipi_spec_dst));
	memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
	return sendmsg(fd, &message, MSG_CONFIRM | PROBE) == 0 ||
	       (errno != EINVAL && errno != ENETUNREACH);
}

/* True if a route goes over the loopback: the whole network is local (ip-route(8), type local).
 * Nothing is sent, as above. */
static bool leads_over_loopback(int fd, const struct ip *address)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(struct in6_pktinfo)),
	                     .cmsg_level = IPPROTO_IPV6,
	                     .cmsg_type = IPV6_PKTINFO}};
	const struct in6_pktinfo info = {.ipi6_ifindex = LOOPBACK_INDEX};
	struct sockaddr_storage to;
	struct msghdr message = {.msg_name = &to,
	        .msg_namelen = ip_to_sockaddr(address, ANY_PORT, &to),
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
	return sendmsg(fd, &message, MSG_CONFIRM | PROBE) == 0 || errno == ENOMEM ||
	       errno == ENOBUFS;
}

/* Connecting a datagram socket sends nothing and shows which source address the kernel would use:
 * the address itself, if it is assigned to this host (RFC 6724 section 5, rule 1). The route of a
 * local network may name another device, although packets go over the loopback; then the packet
 * size shows it. */
static bool is_own_ipv6(int fd, const struct ip *address)
{
	struct sockaddr_storage to, local;
	socklen_t n = ip_to_sockaddr(address, ANY_PORT, &to), local_n = sizeof(local);
	int mtu = 0;
	socklen_t mtu_n = sizeof(mtu);
	struct ip source;

	if (leads_over_loopback(fd, address))
		return true;
	if (connect(fd, (struct sockaddr *)&to, n) < 0)
		return false; /* no route to it */
	if (getsockname(fd, (struct sockaddr *)&local, &local_n) < 0 ||
	        getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &mtu_n) < 0)
		return true;
	source = ip_from_sockaddr((struct sockaddr *)&local, NULL);
	return ip_equals(&source, address) || mtu > LINK_BYTES_MAX;
}

bool own_address(const struct ip *address)
{
	bool ipv4 = address->family == 4, own;
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return true;
	own = ipv4 ? is_own_ipv4(fd, address) : is_own_ipv6(fd, address);
	close(fd);
	return own;
}
