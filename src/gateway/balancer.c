/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that a load balancer of the configuration passes on. Each begins, before TLS, with a
 * header that tells its client's address (wire/balancer_header.h). Once the header is read, the
 * connection counts as that client's. A balancer has to send the header, and nobody else may.
 */
#include <errno.h>
#include <sys/socket.h>

#include "gateway/visitor.h"
#include "vethguard/wire/balancer_header.h"

bool balancer_has(const struct gateway *g, const struct ip *source)
{
	for (size_t i = 0; i < g->start.balancer_count; i++)
		if (ip_in_prefix(source, &g->start.balancers[i]))
			return true;
	return false;
}

/* Takes the header's bytes, which were only peeked at so far, off the socket. */
static bool take(const struct visitor *c, size_t n)
{
	uint8_t bytes[BALANCER_HEADER_MAX];

	return recv(c->front.fd, bytes, n, MSG_DONTWAIT) == (ssize_t)n;
}

static bool go_on(struct visitor *c, const struct balancer_header *header)
{
	if (!take(c, header->used))
		return false;
	c->balanced = true;
	if (!header->local) {
		c->source = header->source;
		c->source_port = header->source_port;
	}
	c->address = address_begin(c->gateway, &c->source);
	if (!c->address)
		return false;
	visitor_enter(c, VISITOR_FIRST);
	return true;
}

bool visitor_balanced(struct visitor *c)
{
	uint8_t bytes[BALANCER_HEADER_MAX];
	struct balancer_header header;
	ssize_t n;

	do
		n = recv(c->front.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (n > 0) {
		switch (balancer_header_parse(bytes, (size_t)n, &header)) {
		case BALANCER_HEADER_MORE:
			return false;
		case BALANCER_HEADER_DONE:
			if (go_on(c, &header))
				return true;
			break;
		case BALANCER_HEADER_BAD:
			break;
		}
	}
	visitor_close(c);
	return false;
}
