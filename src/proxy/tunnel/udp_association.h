/* SPDX-License-Identifier: Apache-2.0 */
/* udp_association: datagrams of a client of SOCKS5 (RFC 1928 section 7), over a UDP socket that
 * only this client may use. They become flows as a sandbox's own datagrams do. */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_UDP_ASSOCIATION_H
#define VETHGUARD_SRC_PROXY_TUNNEL_UDP_ASSOCIATION_H

#include "vethguard/base/ip.h"

struct udp_association;
struct udp_relay;

/* Serves fd, a UDP socket, to the client with this address. port: from which it sends; 0: from the
 * port of its first datagram that has a valid header. Takes fd. Returns NULL without memory, or if
 * the port cannot be used. */
struct udp_association *udp_association_new(
        struct udp_relay *relay, int fd, const struct ip *client, uint16_t port);
/* Records and ends its flows, and closes the socket. NULL is allowed. */
void udp_association_free(struct udp_association *a);
/* When it has last carried a datagram: clock_monotonic_ms(). */
int64_t udp_association_used_ms(const struct udp_association *a);

#endif
