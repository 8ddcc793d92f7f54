/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transparent UDP socket gets queries for any address. A control message tells which address was
 * asked (IP_RECVORIGDSTADDR, ip(7)), and another one makes the answer leave from it (IP_PKTINFO):
 * clients drop an answer that comes from elsewhere. What cannot be sent is dropped, as UDP allows.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "dns/private.h"

#define CONTROL_BYTES 256

union control {
	char bytes[CONTROL_BYTES];
	struct cmsghdr align;
};

/* The address and port to which a datagram was sent; family 0 if no control message tells. */
static struct ip asked_address(struct msghdr *m, uint16_t *port)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct sockaddr_storage ss = {0};
		size_t n = c->cmsg_len - CMSG_LEN(0);
		bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR;
		bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR;

		if (!v4 && !v6)
			continue;
		memcpy(&ss, CMSG_DATA(c), n < sizeof(ss) ? n : sizeof(ss));
		return ip_from_sockaddr((struct sockaddr *)&ss, port);
	}
	*port = 0;
	return (struct ip){0};
}

/* Adds the control message that makes the answer leave from the asked address. */
static void set_source(struct msghdr *m, union control *control, const struct ip *asked)
{
	struct cmsghdr *c;

	memset(control, 0, sizeof(*control));
	m->msg_control = control->bytes;
	m->msg_controllen = sizeof(control->bytes);
	c = CMSG_FIRSTHDR(m);
	if (asked->family == 4) {
		struct in_pktinfo info = {0};

		memcpy(&info.ipi_spec_dst, asked->bytes, sizeof(info.ipi_spec_dst));
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		m->msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		struct in6_pktinfo info = {0};

		memcpy(&info.ipi6_addr, asked->bytes, sizeof(info.ipi6_addr));
		c->cmsg_level = IPPROTO_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		m->msg_controllen = CMSG_SPACE(sizeof(info));
	}
}

static void send_answer(int fd, struct sockaddr_storage *to, socklen_t to_n, const struct ip *asked,
        uint8_t *answer, size_t n)
{
	union control control;
	struct iovec iov = {answer, n};
	struct msghdr m = {.msg_name = to, .msg_namelen = to_n, .msg_iov = &iov, .msg_iovlen = 1};

	if (asked->family)
		set_source(&m, &control, asked);
	if (sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("a DNS answer could not be sent: %s", strerror(errno));
}

/* Answers one datagram. False: there is none. */
static bool serve_one(struct responder_udp *u)
{
	uint8_t query[DNS_UDP_MAX];
	uint8_t answer[DNS_ANSWER_MAX];
	struct sockaddr_storage from;
	union control control;
	struct iovec iov = {query, sizeof(query)};
	struct msghdr m = {.msg_name = &from,
	        .msg_namelen = sizeof(from),
	        .msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = control.bytes,
	        .msg_controllen = sizeof(control.bytes)};
	struct responder_peer peer = {0};
	ssize_t n = recvmsg(u->io.fd, &m, MSG_DONTWAIT);
	size_t size;

	if (n < 0)
		return errno == EINTR;
	if (m.msg_flags & MSG_TRUNC) /* longer than any query that is read */
		return true;
	peer.client = ip_from_sockaddr((struct sockaddr *)&from, &peer.client_port);
	peer.asked = asked_address(&m, &peer.asked_port);
	size = responder_answer(u->responder, query, (size_t)n, &peer, answer, sizeof(answer));
	if (size)
		send_answer(u->io.fd, &from, m.msg_namelen, &peer.asked, answer, size);
	return true;
}

static void on_ready(struct loop_io *io, unsigned events);

static int watch(struct responder_udp *u)
{
	return loop_io_open_level(u->responder->config.loop, &u->io, u->io.fd, LOOP_READ, on_ready);
}

/* The kernel keeps what its buffer holds and drops the rest. */
static void stop_reading(struct responder *r)
{
	for (struct responder_udp *u = r->udp; u; u = u->next)
		loop_io_close(&u->io);
}

static void pause_reading(struct responder *r)
{
	r->paused = true;
	stop_reading(r);
	loop_timer_set(&r->pause, RESPONDER_PAUSE_MS);
}

/* If there is no memory to watch a socket, tries again later. */
void responder_udp_go_on(struct responder *r)
{
	for (struct responder_udp *u = r->udp; u && !r->paused && !r->held; u = u->next)
		if (!u->io.watch && watch(u) < 0)
			pause_reading(r);
}

void responder_udp_on_pause_over(struct loop_timer *timer)
{
	struct responder *r = container_of(timer, struct responder, pause);

	r->paused = false;
	responder_udp_go_on(r);
}

/* Level-triggered: the loop reports what is left in its next turn. */
static void on_ready(struct loop_io *io, unsigned events)
{
	struct responder_udp *u = container_of(io, struct responder_udp, io);

	(void)events;
	for (int i = 0; i < RESPONDER_TURN_QUERIES && !u->responder->held && serve_one(u); i++)
		;
	if (u->responder->held)
		stop_reading(u->responder);
	else if (responder_is_flooded(u->responder) && !u->responder->paused)
		pause_reading(u->responder);
}

static int ask_for_destination(int fd)
{
	struct sockaddr_storage self = {0};
	socklen_t self_n = sizeof(self);
	int on = 1;
	int rc;

	if (getsockname(fd, (struct sockaddr *)&self, &self_n) < 0)
		return -errno;
	if (self.ss_family == AF_INET6)
		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &on, sizeof(on));
	else
		rc = setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof(on));
	return rc < 0 ? -errno : 0;
}

int responder_serve_udp(struct responder *responder, int fd)
{
	struct responder_udp *u = calloc(1, sizeof(*u));
	int rc = u ? ask_for_destination(fd) : -ENOMEM;

	if (!rc) {
		u->responder = responder;
		u->io.fd = fd;
		rc = watch(u);
	}
	if (rc) {
		free(u);
		close(fd);
		return rc;
	}
	u->next = responder->udp;
	responder->udp = u;
	return 0;
}

void responder_udp_serve_rest(struct responder *responder)
{
	for (struct responder_udp *u = responder->udp; u; u = u->next)
		on_ready(&u->io, LOOP_READ);
}

void responder_udp_free_all(struct responder *responder)
{
	while (responder->udp) {
		struct responder_udp *u = responder->udp;
		int fd = u->io.fd;

		responder->udp = u->next;
		loop_io_close(&u->io);
		close(fd);
		free(u);
	}
}
