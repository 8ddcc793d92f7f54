/* SPDX-License-Identifier: Apache-2.0 */
/* udp_socket: datagrams with both of their addresses, over sockets that receive for other
 * addresses. */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_UDP_SOCKET_H
#define VETHGUARD_SRC_PROXY_TUNNEL_UDP_SOCKET_H

#include <sys/types.h>

#include "vethguard/base/ip.h"

/* Receives the next datagram, its sender and its destination; the socket needs IP_RECVORIGDSTADDR
 * or IPV6_RECVORIGDSTADDR. dst->family is 0 if the socket does not tell. Returns the datagram's
 * bytes, or -1 if there is none. */
ssize_t udp_socket_receive(int fd, uint8_t *p, size_t max, struct ip *src, uint16_t *src_port,
        struct ip *dst, uint16_t *dst_port);
/* Sends one datagram from an address that need not be the socket's (IP_PKTINFO, ip(7)); both
 * addresses are of one family. False: it is lost. */
bool udp_socket_send(int fd, const struct ip *from, const struct ip *to, uint16_t to_port,
        const uint8_t *p, size_t n);

#endif
