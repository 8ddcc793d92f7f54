/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox's sockets meet: real packets over a veth pair into a fence, TPROXY listeners
 * behind it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "vethguard/wire/packet.h"
#include "world.h"

struct open_socket {
	int family, type, protocol, fd;
};

static int open_in_namespace(void *context)
{
	struct open_socket *o = context;

	o->fd = socket(o->family, o->type | SOCK_CLOEXEC | SOCK_NONBLOCK, o->protocol);
	return o->fd < 0 ? -errno : 0;
}

static int open_socket(int netns, int family, int type, int protocol)
{
	struct open_socket o = {family, type, protocol, -1};

	assert_int_equal(netns_run(netns, open_in_namespace, &o), 0);
	return o.fd;
}

/* A socket in the sandbox that was told to connect. 0, or the error that came within the time, or
 * ETIMEDOUT. */
static int connect_from_sandbox(
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

static void assert_address(const struct sockaddr_storage *ss, const char *address, uint16_t port)
{
	uint16_t got_port;
	struct ip got = ip_from_sockaddr((const struct sockaddr *)ss, &got_port);
	char text[IP_TEXT_MAX];

	assert_string_equal(ip_format(&got, text), address);
	assert_int_equal(got_port, port);
}

static void assert_intercepted(struct world *w, int listener, const char *address, uint16_t port)
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

static void tcp4_reaches_the_listener_with_its_destination(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *address;
		uint16_t port;
	} any[] = {{"93.184.216.34", 443}, {"1.0.0.1", 1}, {"223.255.255.254", 65535},
	        {"169.254.169.254", 80}, {"10.0.0.5", 22}, {"192.168.1.1", 8080}, {"10.77.0.1", 22},
	        {"126.255.255.255", 9}, {"128.0.0.1", 9}};

	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
		assert_intercepted(w, w->tcp4, any[i].address, any[i].port);
	assert_intercepted(w, w->tcp4, "10.77.0.1", w->spec.tcp_port);
}

static void tcp6_reaches_the_listener_with_its_destination(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *address;
		uint16_t port;
	} any[] = {{"2606:2800:220:1::1", 443}, {"fd77::1", 22}, {"64:ff9b::101:101", 80},
	        {"2002:102:304::1", 25}, {"fd00:ec2::254", 80}, {"fc00::1", 1}};

	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
		assert_intercepted(w, w->tcp6, any[i].address, any[i].port);
}

static void tcp_53_reaches_the_responder_not_the_proxy(void **state)
{
	struct world *w = *state;

	assert_intercepted(w, w->dns_tcp4, "8.8.8.8", 53);
	assert_false(world_readable(w->tcp4, 0));
}

/* The control message that tells where a datagram was meant to go. */
static void original_destination(struct msghdr *m, struct sockaddr_storage *ss)
{
	memset(ss, 0, sizeof(*ss));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
			memcpy(ss, CMSG_DATA(c), sizeof(struct sockaddr_in));
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)
			memcpy(ss, CMSG_DATA(c), sizeof(struct sockaddr_in6));
	}
}

static void put_source(struct msghdr *m, char *control, const struct ip *source)
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

static void answer_from(
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
static void assert_relayed(struct world *w, int listener, const char *address, uint16_t port)
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

static void dns_to_any_resolver_is_answered_from_there(void **state)
{
	struct world *w = *state;

	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_relayed(w, w->dns4, "10.77.0.1", 53);
	assert_relayed(w, w->dns6, "2001:4860:4860::8888", 53);
	assert_relayed(w, w->dns6, "fd77::1", 53);
}

static void named_udp_ports_are_relayed(void **state)
{
	struct world *w = *state;

	assert_relayed(w, w->udp4, "203.0.113.7", 123);
	assert_relayed(w, w->udp6, "2001:db8::7", 123);
}

/* The error of a datagram that was refused: at once, or the test fails. */
static int refusal(struct world *w, const char *address, uint16_t port)
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

static void unnamed_udp_is_refused_at_once(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 20; i++) /* also the twentieth: no ICMP rate limit in a gate */
		assert_int_equal(refusal(w, "203.0.113.7", 443), EHOSTUNREACH);
	for (int i = 0; i < 20; i++)
		assert_int_equal(refusal(w, "2001:db8::7", 443), EACCES);
	assert_int_equal(refusal(w, "203.0.113.7", 124), EHOSTUNREACH);
	assert_int_equal(refusal(w, "10.77.0.1", w->spec.tcp_port), EHOSTUNREACH);
}

static int set_udp_ports(void *context)
{
	return fence_set_udp_ports(context);
}

static void a_changed_port_set_counts_at_once(void **state)
{
	struct world *w = *state;

	w->spec.udp_port_count = 0;
	assert_int_equal(netns_run(w->gate, set_udp_ports, &w->spec), 0);
	assert_int_equal(refusal(w, "203.0.113.7", 123), EHOSTUNREACH);
	w->spec.udp_port_count = 1;
	assert_int_equal(netns_run(w->gate, set_udp_ports, &w->spec), 0);
	assert_relayed(w, w->udp4, "203.0.113.7", 123);
}

static void without_a_listener_nothing_passes(void **state)
{
	struct world *w = *state;
	int fd;

	close(w->tcp4);
	close(w->tcp6);
	close(w->dns4);
	close(w->udp4);
	close(w->dns_tcp4);
	w->tcp4 = w->tcp6 = w->dns4 = w->udp4 = w->dns_tcp4 = -1;
	assert_int_equal(
	        connect_from_sandbox(w, SOCK_STREAM, "93.184.216.34", 443, &fd), EHOSTUNREACH);
	close(fd);
	assert_int_equal(connect_from_sandbox(w, SOCK_STREAM, "10.77.0.1", 80, &fd), EHOSTUNREACH);
	close(fd);
	assert_int_equal(
	        connect_from_sandbox(w, SOCK_STREAM, "2606:2800:220:1::1", 443, &fd), EACCES);
	close(fd);
	assert_int_equal(connect_from_sandbox(w, SOCK_STREAM, "8.8.8.8", 53, &fd), EHOSTUNREACH);
	close(fd);
	assert_int_equal(refusal(w, "8.8.8.8", 53), EHOSTUNREACH);
	assert_int_equal(refusal(w, "203.0.113.7", 123), EHOSTUNREACH);
}

/* A socket of the gate that TPROXY does not name, on the port and address given. */
static int gate_service(struct world *w, int type, const char *address, uint16_t port)
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

static void services_of_the_gate_are_out_of_reach(void **state)
{
	struct world *w = *state;
	int tcp = gate_service(w, SOCK_STREAM, "10.77.0.1", 8888);
	int udp = gate_service(w, SOCK_DGRAM, "0.0.0.0", 7777);
	int udp6 = gate_service(w, SOCK_DGRAM, "fd77::1", 7777);

	assert_intercepted(w, w->tcp4, "10.77.0.1", 8888);
	assert_int_equal(refusal(w, "10.77.0.1", 7777), EHOSTUNREACH);
	assert_int_equal(refusal(w, "fd77::1", 7777), EACCES);
	assert_false(world_readable(tcp, 50));
	assert_false(world_readable(udp, 0));
	assert_false(world_readable(udp6, 0));
	close(tcp);
	close(udp);
	close(udp6);
}

struct seen {
	const char *prefix;
	uint8_t protocol;
	uint16_t port;
	struct ip src, dst;
	bool found;
};

/* Of two, because one datagram of the log may tell of both. */
static void look_for(void *context, const struct nflog_packet *p)
{
	struct seen *s = context;

	assert_int_equal(p->group, FENCE_NFLOG_GROUP);
	for (int i = 0; i < 2; i++)
		if (slice_equals(p->prefix, slice_from_string(s[i].prefix)) &&
		        p->packet.protocol == s[i].protocol && p->packet.dst_port == s[i].port &&
		        ip_equals(&p->packet.dst, &s[i].dst) &&
		        ip_equals(&p->packet.src, &s[i].src))
			s[i].found = true;
}

static void assert_logged(struct world *w, struct seen s[2])
{
	uint8_t datagram[FENCE_NFLOG_DATAGRAM_BYTES];
	ssize_t n;

	while (!(s[0].found && s[1].found) && world_readable(w->log, 1000)) {
		n = read(w->log, datagram, sizeof(datagram));
		assert_true(n > 0);
		assert_int_equal(nflog_parse(datagram, (size_t)n, look_for, s), 0);
	}
	assert_true(s[0].found);
	assert_true(s[1].found);
}

static struct fence_counters counted(struct world *w);

static void what_was_refused_is_logged_and_counted(void **state)
{
	struct world *w = *state;
	struct seen seen[2] = {
	        {"vethguard:other", IPPROTO_UDP, 443, w->spec.sandbox4, world_ip("203.0.113.7"),
	                false},
	        {"vethguard:other", IPPROTO_UDP, 443, w->spec.sandbox6, world_ip("2001:db8::7"),
	                false},
	};
	struct fence_counters before = counted(w), after;

	refusal(w, "203.0.113.7", 443);
	refusal(w, "2001:db8::7", 443);
	after = counted(w);
	assert_int_equal(after.packets - before.packets, 2);
	assert_int_equal(after.bytes - before.bytes, (20 + 8 + 6) + (40 + 8 + 6));
	assert_logged(w, seen);
}

static int read_counters(void *context)
{
	return fence_counters_get(WORLD_LINK, context);
}

static struct fence_counters counted(struct world *w)
{
	struct fence_counters c;

	assert_int_equal(netns_run(w->gate, read_counters, &c), 0);
	return c;
}

static void what_passed_is_not_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before = counted(w), after;

	assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	after = counted(w);
	assert_int_equal(after.packets, before.packets);
	assert_int_equal(after.bytes, before.bytes);
}

static int add_false_addresses(void *context)
{
	struct ip a4 = world_ip("198.51.100.9"), a6 = world_ip("2001:db8:bad::9");
	struct netlink *nl;

	(void)context;
	assert_int_equal(netlink_open(&nl), 0);
	assert_int_equal(netlink_address_add(nl, "eth0", &a4, 32), 0);
	assert_int_equal(netlink_address_add(nl, "eth0", &a6, 128), 0);
	netlink_close(nl);
	return 0;
}

static void send_from(struct world *w, const char *source, const char *destination, uint16_t port)
{
	struct ip from = world_ip(source), to = world_ip(destination);
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&from, 0, &ss);
	int fd = open_socket(w->sandbox, from.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&ss, n), 0);
	n = ip_to_sockaddr(&to, port, &ss);
	assert_int_equal(sendto(fd, "spoof", 5, 0, (struct sockaddr *)&ss, n), 5);
	close(fd);
}

static void false_sources_do_not_pass(void **state)
{
	struct world *w = *state;
	struct seen seen[2] = {
	        {"vethguard:source", IPPROTO_UDP, 53, world_ip("198.51.100.9"), world_ip("8.8.8.8"),
	                false},
	        {"vethguard:source", IPPROTO_UDP, 53, world_ip("2001:db8:bad::9"),
	                world_ip("2001:4860:4860::8888"), false},
	};

	assert_relayed(
	        w, w->dns4, "8.8.8.8", 53); /* the sandbox learns the gate's MAC truthfully */
	assert_relayed(w, w->dns6, "2001:4860:4860::8888", 53);
	assert_int_equal(netns_run(w->sandbox, add_false_addresses, w), 0);
	send_from(w, "198.51.100.9", "8.8.8.8", 53);
	send_from(w, "2001:db8:bad::9", "2001:4860:4860::8888", 53);
	assert_logged(w, seen);
	assert_false(world_readable(w->dns4, 0));
	assert_false(world_readable(w->dns6, 0));
}

static void a_ping_is_refused_and_logged(void **state)
{
	struct world *w = *state;
	struct seen seen[2] = {{"vethguard:other", IPPROTO_ICMP, 8 << 8, w->spec.sandbox4,
	                               world_ip("10.77.0.1"), false},
	        {.found = true}};
	uint8_t request[8] = {8, 0, 0xf7, 0xff, 0, 0, 0, 0}, answer[128];
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&seen[0].dst, 0, &ss);
	int fd = open_socket(w->sandbox, AF_INET, SOCK_RAW, IPPROTO_ICMP);

	assert_int_equal(sendto(fd, request, sizeof(request), 0, (struct sockaddr *)&ss, n), 8);
	assert_true(world_readable(fd, WORLD_TIMEOUT_MS));
	assert_true(recv(fd, answer, sizeof(answer), 0) >= 28);
	assert_int_equal(answer[20], 3);  /* unreachable */
	assert_int_equal(answer[21], 13); /* administratively prohibited */
	assert_logged(w, seen);
	close(fd);
}

/* Of the gate; -1 where the kernel has no connection tracking. */
static int count_connections(void *context)
{
	FILE *f = fopen("/proc/sys/net/netfilter/nf_conntrack_count", "r");
	int count = -1;

	(void)context;
	if (!f)
		return -1;
	if (fscanf(f, "%d", &count) != 1)
		count = -1;
	fclose(f);
	return count;
}

static void nothing_is_tracked(void **state)
{
	struct world *w = *state;
	struct ip loopback = world_ip("127.0.0.1");
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&loopback, 9, &ss);
	int fd = open_socket(w->gate, AF_INET, SOCK_DGRAM, 0);

	/* A rule that asks for connection state switches tracking on in this namespace. */
	assert_int_equal(
	        world_shell(w, "nft 'add table inet t; add chain inet t c { type filter hook "
	                       "input priority 0; }; add rule inet t c ct state new'"),
	        0);
	assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_true(netns_run(w->gate, count_connections, NULL) <= 0);
	sendto(fd, "x", 1, 0, (struct sockaddr *)&ss, n);
	assert_true(netns_run(w->gate, count_connections, NULL) != 0); /* it would have shown */
	close(fd);
}

struct replacing {
	struct world *w;
	bool stop;
	int times, result;
};

static void *replace_again_and_again(void *context)
{
	struct replacing *r = context;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED) && r->result == 0) {
		r->result = netns_run(r->w->gate, world_fence_set, r->w);
		__atomic_add_fetch(&r->times, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A packet that met half a ruleset would be refused, or let a refused port through. */
static void replacing_the_fence_is_never_seen(void **state)
{
	struct world *w = *state;
	struct replacing r = {.w = w};
	int open_port = gate_service(w, SOCK_DGRAM, "10.77.0.1", 7777);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, replace_again_and_again, &r), 0);
	for (int i = 0; i < 200 || __atomic_load_n(&r.times, __ATOMIC_RELAXED) < 50; i++) {
		assert_int_equal(__atomic_load_n(&r.result, __ATOMIC_RELAXED), 0);
		assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
		assert_int_equal(refusal(w, "10.77.0.1", 7777), EHOSTUNREACH);
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(r.result, 0);
	assert_false(world_readable(open_port, 0));
	close(open_port);
}

/* --- bounds --- */

static void bound(struct world *w, struct fence_bounds bounds)
{
	w->spec.bounds = bounds;
	assert_int_equal(netns_run(w->gate, world_fence_set, w), 0);
}

/* Asks for a connection and does not wait. */
static int begin_connection(struct world *w, const char *address, uint16_t port)
{
	struct ip ip = world_ip(address);
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&ip, port, &ss);
	int fd = open_socket(w->sandbox, ip.family == 4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);

	assert_true(connect(fd, (struct sockaddr *)&ss, n) == 0 || errno == EINPROGRESS);
	return fd;
}

#define TRIES 40

/* Slow as the machine may be: a rate of one a second lets no more through than it has seconds. */
static void connections_beyond_the_rate_are_dropped_and_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before, after;
	int fds[TRIES], kept, server, arrived = 0;
	struct seen seen[2] = {{"vethguard:rate", IPPROTO_TCP, 443, w->spec.sandbox4,
	                               world_ip("93.184.216.34"), false},
	        {.found = true}};
	char byte = 0;

	bound(w, (struct fence_bounds){1, 0, 0, 0});
	assert_int_equal(connect_from_sandbox(w, SOCK_STREAM, "93.184.216.34", 443, &kept), 0);
	server = accept4(w->tcp4, NULL, NULL, SOCK_CLOEXEC);
	before = counted(w);
	for (int i = 0; i < TRIES; i++)
		fds[i] = begin_connection(w, "93.184.216.34", 443);
	after = counted(w);
	for (int i = 0; i < TRIES; i++)
		close(fds[i]);
	while (world_readable(w->tcp4, 0) && arrived <= TRIES) {
		close(accept4(w->tcp4, NULL, NULL, SOCK_CLOEXEC));
		arrived++;
	}
	assert_true(arrived < TRIES);
	assert_true(after.connections > before.connections);
	assert_int_equal(after.packets - before.packets, after.connections - before.connections);
	assert_int_equal(after.queries, 0);
	assert_logged(w, seen);
	/* Whoever is connected goes on, at any rate. */
	for (int i = 0; i < TRIES; i++) {
		assert_int_equal(write(kept, "x", 1), 1);
		assert_true(world_readable(server, WORLD_TIMEOUT_MS));
		assert_int_equal(read(server, &byte, 1), 1);
	}
	close(kept);
	close(server);
}

/* Other ports than the one asked for, IPv6, and the responder over TCP: all of one rate. */
static void all_connections_are_of_one_rate(void **state)
{
	struct world *w = *state;
	static const char *const addresses[] = {"8.8.8.8", "2001:db8::7"};
	uint64_t last = 0;

	bound(w, (struct fence_bounds){1, 0, 0, 0});
	for (uint16_t i = 0; i < TRIES; i++)
		close(begin_connection(w, addresses[i % 2], i % 4 < 2 ? 53 : (uint16_t)(1000 + i)));
	last = counted(w).connections;
	assert_true(last > 0);
	bound(w, (struct fence_bounds){0, 0, 0, 0});
	for (uint16_t i = 0; i < TRIES; i++)
		close(begin_connection(w, addresses[i % 2], 443));
	assert_int_equal(counted(w).connections, last);
}

static void queries_beyond_the_rate_are_dropped_and_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before, after;
	char data[64];
	int client, arrived = 0;

	bound(w, (struct fence_bounds){0, 1, 0, 0});
	before = counted(w);
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "8.8.8.8", 53, &client), 0);
	for (int i = 0; i < TRIES; i++)
		assert_int_equal(send(client, "question", 8, 0), 8);
	after = counted(w);
	while (world_readable(w->dns4, 0) && recv(w->dns4, data, sizeof(data), 0) > 0)
		arrived++;
	assert_true(arrived < TRIES);
	assert_int_equal(after.queries - before.queries, TRIES - arrived);
	assert_int_equal(after.packets - before.packets, TRIES - arrived);
	assert_int_equal(after.connections, 0);
	assert_relayed(w, w->udp4, "203.0.113.7", 123); /* no query */
	close(client);
}

/* A port of the relay's, over either family: of one rate, which is nobody else's. */
static void datagrams_beyond_the_rate_are_dropped_and_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before, after;
	struct seen seen[2] = {{"vethguard:rate", IPPROTO_UDP, 123, w->spec.sandbox4,
	                               world_ip("203.0.113.7"), false},
	        {.found = true}};
	char data[64];
	int four, six, arrived = 0;

	bound(w, (struct fence_bounds){0, 0, 0, 1});
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "203.0.113.7", 123, &four), 0);
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "2001:db8::7", 123, &six), 0);
	before = counted(w);
	for (int i = 0; i < TRIES; i++)
		assert_int_equal(send(i % 2 ? six : four, "datagram", 8, 0), 8);
	after = counted(w);
	while (world_readable(w->udp4, 0) && recv(w->udp4, data, sizeof(data), 0) > 0)
		arrived++;
	while (world_readable(w->udp6, 0) && recv(w->udp6, data, sizeof(data), 0) > 0)
		arrived++;
	assert_in_range(arrived, FENCE_BURST_S, TRIES - 1);
	assert_int_equal(after.datagrams - before.datagrams, TRIES - arrived);
	assert_int_equal(after.packets - before.packets, TRIES - arrived);
	assert_int_equal(after.queries + after.connections, 0);
	assert_logged(w, seen);
	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
	close(four);
	close(six);
}

#define MANY 5000

/* Within its rate nothing is lost, however fast it comes. */
static void datagrams_within_the_rate_all_arrive(void **state)
{
	struct world *w = *state;
	struct fence_counters before;
	char data[64];
	int client, arrived = 0;

	bound(w, (struct fence_bounds){0, 0, 0, MANY / FENCE_BURST_S});
	before = counted(w);
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "203.0.113.7", 123, &client), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(send(client, "datagram", 8, 0), 8);
		while (world_readable(w->udp4, 0) && recv(w->udp4, data, sizeof(data), 0) > 0)
			arrived++;
	}
	while (arrived < MANY && world_readable(w->udp4, WORLD_TIMEOUT_MS) &&
	        recv(w->udp4, data, sizeof(data), 0) > 0)
		arrived++;
	assert_int_equal(arrived, MANY);
	assert_int_equal(counted(w).packets, before.packets);
	close(client);
}

static void count_copy(void *context, const struct nflog_packet *p)
{
	(void)p;
	++*(unsigned *)context;
}

static unsigned count_copies(struct world *w)
{
	uint8_t datagram[FENCE_NFLOG_DATAGRAM_BYTES];
	unsigned copies = 0;
	ssize_t n;

	while (world_readable(w->log, 200) && (n = read(w->log, datagram, sizeof(datagram))) > 0)
		assert_int_equal(nflog_parse(datagram, (size_t)n, count_copy, &copies), 0);
	return copies;
}

static void send_many(struct world *w, const char *source, const char *to, uint16_t port)
{
	for (int i = 0; i < TRIES; i++)
		send_from(w, source, to, port);
}

/* Both chains that refuse, each with its own copies. */
static void all_is_counted_whatever_is_copied(void **state)
{
	struct world *w = *state;
	struct fence_counters before;
	unsigned copies;

	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_int_equal(netns_run(w->sandbox, add_false_addresses, w), 0);
	bound(w, (struct fence_bounds){0, 0, 1, 0});
	count_copies(w);
	before = counted(w);
	send_many(w, "10.77.0.2", "203.0.113.7", 443);
	send_many(w, "198.51.100.9", "203.0.113.7", 443);
	copies = count_copies(w);
	assert_int_equal(counted(w).packets - before.packets, 2 * TRIES);
	assert_in_range(copies, 2, 2 * TRIES - 2);
}

/* A bound refuses more, and lets nothing through that was refused without it. */
static void a_bound_opens_nothing(void **state)
{
	struct world *w = *state;
	int tcp = gate_service(w, SOCK_STREAM, "10.77.0.1", 8888);
	int udp = gate_service(w, SOCK_DGRAM, "0.0.0.0", 7777);
	int udp53 = gate_service(w, SOCK_DGRAM, "10.77.0.1", 7778);

	bound(w, (struct fence_bounds){1, 1, 1, 1});
	for (int i = 0; i < TRIES; i++) {
		close(begin_connection(w, "10.77.0.1", 8888));
		send_from(w, "10.77.0.2", "10.77.0.1", 7777);
		send_from(w, "10.77.0.2", "10.77.0.1", 7778);
	}
	assert_false(world_readable(tcp, 50));
	assert_false(world_readable(udp, 0));
	assert_false(world_readable(udp53, 0));
	w->spec.refuse = true;
	assert_int_equal(netns_run(w->gate, world_fence_set, w), 0);
	while (world_readable(w->tcp4, 0))
		close(accept4(w->tcp4, NULL, NULL, SOCK_CLOEXEC));
	for (int i = 0; i < TRIES; i++)
		close(begin_connection(w, "93.184.216.34", 443));
	assert_false(world_readable(w->tcp4, 50));
	close(tcp);
	close(udp);
	close(udp53);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_WORLD(tcp4_reaches_the_listener_with_its_destination),
	        IN_WORLD(tcp6_reaches_the_listener_with_its_destination),
	        IN_WORLD(tcp_53_reaches_the_responder_not_the_proxy),
	        IN_WORLD(dns_to_any_resolver_is_answered_from_there),
	        IN_WORLD(named_udp_ports_are_relayed),
	        IN_WORLD(unnamed_udp_is_refused_at_once),
	        IN_WORLD(a_changed_port_set_counts_at_once),
	        IN_WORLD(without_a_listener_nothing_passes),
	        IN_WORLD(services_of_the_gate_are_out_of_reach),
	        IN_WORLD(what_was_refused_is_logged_and_counted),
	        IN_WORLD(what_passed_is_not_counted),
	        IN_WORLD(false_sources_do_not_pass),
	        IN_WORLD(a_ping_is_refused_and_logged),
	        IN_WORLD(nothing_is_tracked),
	        IN_WORLD(replacing_the_fence_is_never_seen),
	        IN_WORLD(connections_beyond_the_rate_are_dropped_and_counted),
	        IN_WORLD(all_connections_are_of_one_rate),
	        IN_WORLD(queries_beyond_the_rate_are_dropped_and_counted),
	        IN_WORLD(datagrams_beyond_the_rate_are_dropped_and_counted),
	        IN_WORLD(datagrams_within_the_rate_all_arrive),
	        IN_WORLD(all_is_counted_whatever_is_copied),
	        IN_WORLD(a_bound_opens_nothing),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
