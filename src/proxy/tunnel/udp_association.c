/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An association has a UDP socket of its own, and each datagram on it a header (wire/socks5.h) that
 * names the other end. Datagrams that do not come from the client are dropped, as are those whose
 * header is wrong. Once the client's port is known, the socket is connected to the client, and the
 * kernel drops what others send.
 *
 * The client gets answers under the destination that it has named, so that it may send its next
 * datagram to where an answer came from. An answer that does not fit behind a header is lost.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/tunnel/private.h"
#include "vethguard/base/clock.h"
#include "vethguard/policy/url.h"
#include "vethguard/wire/socks5.h"

struct udp_association *udp_association_new(
        struct udp_relay *relay, int fd, const struct ip *client, uint16_t port)
{
	struct udp_association *a = calloc(1, sizeof(*a));

	if (!a) {
		close(fd);
		return NULL;
	}
	a->client = *client;
	a->number = ++relay->last_association;
	a->used_ms = clock_monotonic_ms();
	a->socket.association = a;
	if (udp_relay_open_socket(relay, &a->socket, fd, 0) != 0) {
		free(a);
		return NULL;
	}
	list_append(&relay->associations, &a->list);
	if (port && !udp_association_connect(a, port)) {
		udp_association_free(a);
		return NULL;
	}
	return a;
}

void udp_association_free(struct udp_association *a)
{
	if (!a)
		return;
	list_remove(&a->list);
	udp_relay_close_socket(&a->socket);
	free(a);
}

int64_t udp_association_used_ms(const struct udp_association *a)
{
	return a->used_ms;
}

bool udp_association_connect(struct udp_association *a, uint16_t port)
{
	struct sockaddr_storage to;
	socklen_t n = ip_to_sockaddr(&a->client, port, &to);

	if (connect(a->socket.fd, (struct sockaddr *)&to, n) < 0)
		return false;
	a->client_port = port;
	return true;
}

/* Sets the destination that the header names. Returns false if it names none. An address literal
 * that is sent as a name is an address. */
static bool set_destination(struct udp_flow_key *key, const struct socks5_header *header)
{
	char host[POLICY_HOST_MAX + 1];
	size_t n;

	key->dst = header->address;
	key->dst_port = header->port;
	if (!header->name.n || ip_parse(header->name, &key->dst))
		return true;
	if (!url_canonical_host(header->name, host, &n))
		return false;
	memcpy(key->host, host, n);
	key->host_n = (uint16_t)n;
	return true;
}

/* True if the datagram comes from the client. The first one with a valid header tells the client's
 * port. */
static bool is_clients(struct udp_association *a, const struct udp_flow_key *key)
{
	if (!ip_equals(&key->src, &a->client))
		return false;
	return a->client_port ? key->src_port == a->client_port
	                      : udp_association_connect(a, key->src_port);
}

ssize_t udp_association_receive(
        struct udp_association *a, uint8_t *p, struct udp_flow_key *key, size_t *header_n)
{
	struct sockaddr_storage from = {0};
	socklen_t from_n = sizeof(from);
	struct socks5_header header;
	ssize_t n = recvfrom(
	        a->socket.fd, p, DATAGRAM_MAX, MSG_DONTWAIT, (struct sockaddr *)&from, &from_n);

	*header_n = 0;
	if (n < 0)
		return -1;
	key->src = ip_from_sockaddr((struct sockaddr *)&from, &key->src_port);
	key->association = a->number;
	if (!ip_equals(&key->src, &a->client) || !socks5_header_parse(p, (size_t)n, &header) ||
	        !set_destination(key, &header) || !is_clients(a, key)) {
		*header_n = (size_t)n;
		return 0;
	}
	a->used_ms = clock_monotonic_ms();
	*header_n = header.used;
	return n;
}

bool udp_association_send(
        struct udp_association *a, const struct udp_flow_key *key, const uint8_t *p, size_t n)
{
	uint8_t header[SOCKS5_HEADER_MAX];
	struct iovec parts[2] = {{.iov_base = header}, {(void *)(uintptr_t)p, n}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

	parts[0].iov_len = socks5_header_write(
	        slice_of(key->host, key->host_n), &key->dst, key->dst_port, header);
	a->used_ms = clock_monotonic_ms();
	return sendmsg(a->socket.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}
