/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's datagrams arrive at sockets that stand in for every destination. A control message
 * tells the address to which each was sent, and another one makes an answer leave from that
 * address.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/tunnel/udp_socket.h"

/* Reads the address to which the sandbox sent from the control message. */
static void original_destination(struct msghdr *m, struct ip *dst, uint16_t *port)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVORIGDSTADDR) ||
		        (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVORIGDSTADDR)) {
			struct sockaddr_storage ss = {0};
			size_t n = c->cmsg_len - CMSG_LEN(0);

			memcpy(&ss, CMSG_DATA(c), n < sizeof(ss) ? n : sizeof(ss));
			*dst = ip_from_sockaddr((struct sockaddr *)&ss, port);
			return;
		}
	}
}

ssize_t udp_socket_receive(int fd, uint8_t *p, size_t max, struct ip *src, uint16_t *src_port,
        struct ip *dst, uint16_t *dst_port)
{
	struct sockaddr_storage from = {0};
	union {
		char bytes[256];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = p, .iov_len = max};
	struct msghdr m = {.msg_name = &from,
	        .msg_namelen = sizeof(from),
	        .msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = control.bytes,
	        .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

	*dst = (struct ip){0};
	if (n < 0)
		return -1;
	*src = ip_from_sockaddr((struct sockaddr *)&from, src_port);
	original_destination(&m, dst, dst_port);
	return n;
}

bool udp_socket_send(int fd, const struct ip *from, const struct ip *to, uint16_t to_port,
        const uint8_t *p, size_t n)
{
	struct sockaddr_storage ss;
	union {
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	struct msghdr m = {
	        .msg_name = &ss, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	struct cmsghdr *c;

	m.msg_namelen = ip_to_sockaddr(to, to_port, &ss);
	if (from->family == 4) {
		struct in_pktinfo info = {0};

		memcpy(&info.ipi_spec_dst, from->bytes, 4);
		m.msg_controllen = CMSG_SPACE(sizeof(info));
		c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){.cmsg_level = IPPROTO_IP,
		        .cmsg_type = IP_PKTINFO,
		        .cmsg_len = CMSG_LEN(sizeof(info))};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	} else {
		struct in6_pktinfo info = {0};

		memcpy(&info.ipi6_addr, from->bytes, 16);
		m.msg_controllen = CMSG_SPACE(sizeof(info));
		c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){.cmsg_level = IPPROTO_IPV6,
		        .cmsg_type = IPV6_PKTINFO,
		        .cmsg_len = CMSG_LEN(sizeof(info))};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	}
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}
