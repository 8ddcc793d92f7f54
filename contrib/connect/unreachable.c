/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals of datagrams. The sandbox's kernel finds the program's socket by the header that the
 * ICMP message quotes. If the socket is connected, its next call fails (ip(7): EHOSTUNREACH; IPv6:
 * EACCES).
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "udp.h"

#define UDP_HEADER 8
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define ICMP_HEADER 8

static void put_u16(uint8_t *p, size_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/* RFC 1071. */
static void put_checksum(uint8_t *at, const uint8_t *p, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put_u16(at, ~sum & 0xffff);
}

static size_t put_ipv4(uint8_t *p, const struct endpoint *from, const struct endpoint *to, size_t n)
{
	p[0] = 0x45; /* version 4, five words */
	put_u16(p + 2, IPV4_HEADER + n);
	p[8] = 64; /* time to live */
	p[9] = IPPROTO_UDP;
	memcpy(p + 12, from->address.bytes, 4);
	memcpy(p + 16, to->address.bytes, 4);
	put_checksum(p + 10, p, IPV4_HEADER);
	return IPV4_HEADER;
}

static size_t put_ipv6(uint8_t *p, const struct endpoint *from, const struct endpoint *to, size_t n)
{
	p[0] = 0x60; /* version 6 */
	put_u16(p + 4, n);
	p[6] = IPPROTO_UDP;
	p[7] = 64; /* hop limit */
	memcpy(p + 8, from->address.bytes, 16);
	memcpy(p + 24, to->address.bytes, 16);
	return IPV6_HEADER;
}

size_t unreachable_write(const struct endpoint *client, const struct endpoint *destination,
        size_t n, uint8_t out[UNREACHABLE_MAX])
{
	const bool is_v6 = client->address.family == 6;
	const size_t udp = UDP_HEADER + n > UINT16_MAX ? UINT16_MAX : UDP_HEADER + n;
	size_t size = ICMP_HEADER;

	memset(out, 0, UNREACHABLE_MAX);
	out[0] = is_v6 ? 1 : 3;  /* destination unreachable */
	out[1] = is_v6 ? 1 : 13; /* communication administratively prohibited */
	size += is_v6 ? put_ipv6(out + size, client, destination, udp)
	              : put_ipv4(out + size, client, destination, udp);
	put_u16(out + size, client->port);
	put_u16(out + size + 2, destination->port);
	put_u16(out + size + 4, udp);
	size += UDP_HEADER;
	if (!is_v6)
		put_checksum(out + 2, out, size);
	return size;
}

void unreachable_send(const struct endpoint *client, const struct endpoint *destination, size_t n)
{
	const bool is_v6 = client->address.family == 6;
	const int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC,
	        is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	uint8_t message[UNREACHABLE_MAX];
	struct sockaddr_storage to;
	const socklen_t to_n = ip_to_sockaddr(&client->address, 0, &to);

	if (fd < 0)
		return;
	sendto(fd, message, unreachable_write(client, destination, n, message), MSG_DONTWAIT,
	        (struct sockaddr *)&to, to_n);
	close(fd);
}
