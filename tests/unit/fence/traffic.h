/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic: what is sent from a world's sandbox, and what has to become of it: taken by a listener
 * of the gate, relayed there and back, or refused.
 */
#ifndef VETHGUARD_TESTS_UNIT_FENCE_TRAFFIC_H
#define VETHGUARD_TESTS_UNIT_FENCE_TRAFFIC_H

#include "world.h"

struct open_socket {
	int family, type, protocol, fd;
};

static inline int open_in_namespace(void *context)
{
	struct open_socket *o = context;

	o->fd = socket(o->family, o->type | SOCK_CLOEXEC | SOCK_NONBLOCK, o->protocol);
	return o->fd < 0 ? -errno : 0;
}

static inline int open_socket(int netns, int family, int type, int protocol)
{
	struct open_socket o = {family, type, protocol, -1};

	assert_int_equal(netns_run(netns, open_in_namespace, &o), 0);
	return o.fd;
}

/* A socket in the sandbox that was told to connect. 0, or the error that came within the time, or
 * ETIMEDOUT. */
static inline int connect_from_sandbox(
        struct world *w, int type, const char *address, uint16_t port, int *fd)
{
	struct ip ip = world_ip(address);
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&ip, port, &ss);
	struct pollfd p = {.events = POLLOUT};
	int error = 0;

	*fd = open_socket(w->sandbox, ip.family == 4 ? AF_INET : AF_INET6, type, 0);
	if (connect(*fd, (struct sockaddr *)&ss, n) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	p.fd = *fd;
	if (poll(&p, 1, WORLD_TIMEOUT_MS) != 1)
		return ETIMEDOUT;
	n = sizeof(error);
	assert_int_equal(getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &n), 0);
	return error;
}

static inline void assert_address(
        const struct sockaddr_storage *ss, const char *address, uint16_t port)
{
	uint16_t got_port;
	struct ip got = ip_from_sockaddr((const struct sockaddr *)ss, &got_port);
	char text[IP_TEXT_MAX];

	assert_string_equal(ip_format(&got, text), address);
	assert_int_equal(got_port, port);
}

static inline void assert_intercepted(
        struct world *w, int listener, const char *address, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	int client, server;
	char byte = 0;

	assert_int_equal(connect_from_sandbox(w, SOCK_STREAM, address, port, &client), 0);
	assert_true(world_readable(listener, WORLD_TIMEOUT_MS));
	server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(server >= 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&ss, &n), 0);
	assert_address(&ss, address, port);
	n = sizeof(ss);
	assert_int_equal(getpeername(client, (struct sockaddr *)&ss, &n), 0);
	assert_address(&ss, address, port);
	assert_int_equal(write(server, "x", 1), 1);
	assert_true(world_readable(client, WORLD_TIMEOUT_MS));
	assert_int_equal(read(client, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(client);
	close(server);
}

/* The control message that tells where a datagram was meant to go. */
static inline void original_destination(struct msghdr *m, struct sockaddr_storage *ss)
{
	memset(ss, 0, sizeof(*ss));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
			memcpy(ss, CMSG_DATA(c), sizeof(struct sockaddr_in));
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)
			memcpy(ss, CMSG_DATA(c), sizeof(struct sockaddr_in6));
	}
}

static inline void put_source(struct msghdr *m, char *control, const struct ip *source)
{
	struct cmsghdr *c;

	m->msg_control = control;
	if (source->family == 4) {
		struct in_pktinfo info = {0};

		memcpy(&info.ipi_spec_dst, source->bytes, 4);
		m->msg_controllen = CMSG_SPACE(sizeof(info));
		c = CMSG_FIRSTHDR(m);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(info)), IPPROTO_IP, IP_PKTINFO};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	} else {
		struct in6_pktinfo info = {0};

		memcpy(&info.ipi6_addr, source->bytes, 16);
		m->msg_controllen = CMSG_SPACE(sizeof(info));
		c = CMSG_FIRSTHDR(m);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(info)), IPPROTO_IPV6, IPV6_PKTINFO};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	}
}

static inline void answer_from(
        int fd, const struct ip *source, struct sockaddr_storage *to, socklen_t to_len)
{
	char answer[] = "answer";
	struct iovec iov = {answer, 6};
	struct msghdr m = {.msg_name = to, .msg_namelen = to_len, .msg_iov = &iov, .msg_iovlen = 1};
	_Alignas(struct cmsghdr) char control[128] = {0};

	put_source(&m, control, source);
	assert_int_equal(sendmsg(fd, &m, 0), 6);
}

/* A datagram arrives with its destination, and the answer comes back from there: a connected socket
 * takes no other. */
static inline void assert_relayed(struct world *w, int listener, const char *address, uint16_t port)
{
	char data[16] = "";
	_Alignas(struct cmsghdr) char control[256];
	struct iovec iov = {data, sizeof(data)};
	struct sockaddr_storage from, to;
	struct msghdr m = {.msg_name = &from,
	        .msg_namelen = sizeof(from),
	        .msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = control,
	        .msg_controllen = sizeof(control)};
	struct ip source = world_ip(address);
	int client;

	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, address, port, &client), 0);
	assert_int_equal(send(client, "question", 8, 0), 8);
	assert_true(world_readable(listener, WORLD_TIMEOUT_MS));
	assert_int_equal(recvmsg(listener, &m, 0), 8);
	original_destination(&m, &to);
	assert_address(&to, address, port);
	answer_from(listener, &source, &from, m.msg_namelen);
	assert_true(world_readable(client, WORLD_TIMEOUT_MS));
	assert_int_equal(recv(client, data, sizeof(data), 0), 6);
	close(client);
}

/* The error of a datagram that was refused: at once, or the test fails. */
static inline int refusal(struct world *w, const char *address, uint16_t port)
{
	int fd, error = 0;
	socklen_t n = sizeof(error);
	struct pollfd p = {.events = POLLIN};

	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, address, port, &fd), 0);
	assert_int_equal(send(fd, "secret", 6, 0), 6);
	p.fd = fd;
	assert_int_equal(poll(&p, 1, WORLD_TIMEOUT_MS), 1);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n), 0);
	close(fd);
	return error;
}

/* A socket of the gate that TPROXY does not name, on the port and address given. */
static inline int gate_service(struct world *w, int type, const char *address, uint16_t port)
{
	struct ip ip = world_ip(address);
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&ip, port, &ss);
	int fd = open_socket(w->gate, ip.family == 4 ? AF_INET : AF_INET6, type, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&ss, n), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 4), 0);
	return fd;
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

#endif
