/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence_tool: puts a fence on an interface of the namespace it is started in, for tests in other
 * languages.
 *
 *     fence_tool [--host] [--bare] [--networks] [--tight] INTERFACE SANDBOX4 SANDBOX6 GATE4 GATE6
 *                [UDP-PORT...]
 *     fence_tool --divert INTERFACE LINK
 *
 * Prints "ready tcp=PORT" when the rules are in force. Until its standard input ends it takes what
 * TPROXY delivers (one line each: "tcp ADDRESS PORT", "udp ADDRESS PORT", as the sandbox meant it)
 * and what NFLOG tells ("log PREFIX"). Then it prints "check RESULT", "counted PACKETS", and
 * removes the fence. --host: not the whole namespace; --bare: no listeners at all; --networks: the
 * sandbox has the /24 and /64 that its addresses are the first of; --tight: bounds of one a second
 * (else of so many that none is reached).
 *
 * --divert diverts an interface to a gate's link, prints "ready", and on each line of its standard
 * input shuts it ("shut"), puts the rules in force again ("set"), compares them ("check") or takes
 * them away ("remove"), and prints "RESULT".
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/fence/divert.h"
#include "vethguard/fence/fence.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"
#include "vethguard/wire/packet.h"

#define TABLE 7675
#define SOCKETS_MAX (8 + 2 * FENCE_UDP_PORTS_MAX)

struct tool {
	struct fence_spec spec;
	bool bare;
	struct pollfd polls[SOCKETS_MAX];
	bool stream[SOCKETS_MAX];
	nfds_t count;
};

static void fail(const char *what, int result)
{
	fprintf(stderr, "fence_tool: %s: %s\n", what, strerror(-result));
	exit(1);
}

static void parse_address(const char *text, struct ip *out)
{
	if (strcmp(text, "-") != 0 && !ip_parse(slice_from_string(text), out))
		fail(text, -EINVAL);
}

static void parse(struct tool *t, int argc, char **argv)
{
	int i = 1;

	t->spec.whole_namespace = true;
	t->spec.bounds = (struct fence_bounds){
	        FENCE_PER_S_MAX, FENCE_PER_S_MAX, FENCE_PER_S_MAX, FENCE_PER_S_MAX};
	for (; i < argc && argv[i][0] == '-' && argv[i][1] == '-'; i++) {
		if (strcmp(argv[i], "--host") == 0)
			t->spec.whole_namespace = false;
		if (strcmp(argv[i], "--bare") == 0)
			t->bare = true;
		if (strcmp(argv[i], "--tight") == 0)
			t->spec.bounds = (struct fence_bounds){1, 1, 1, 1};
		if (strcmp(argv[i], "--networks") == 0) {
			t->spec.bits4 = 24;
			t->spec.bits6 = 64;
		}
	}
	if (argc - i < 5)
		fail("usage", -EINVAL);
	snprintf(t->spec.interface, sizeof(t->spec.interface), "%s", argv[i]);
	parse_address(argv[i + 1], &t->spec.sandbox4);
	parse_address(argv[i + 2], &t->spec.sandbox6);
	parse_address(argv[i + 3], &t->spec.gate4);
	parse_address(argv[i + 4], &t->spec.gate6);
	for (i += 5; i < argc && t->spec.udp_port_count < FENCE_UDP_PORTS_MAX; i++)
		t->spec.udp_ports[t->spec.udp_port_count++] = (uint16_t)atoi(argv[i]);
}

static void watch(struct tool *t, const char *what, int fd, bool stream)
{
	if (fd < 0)
		fail(what, fd);
	t->stream[t->count] = stream;
	t->polls[t->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	uint16_t port = 0;

	if (getsockname(fd, (struct sockaddr *)&ss, &n) == 0)
		ip_from_sockaddr((struct sockaddr *)&ss, &port);
	return port;
}

static void open_listeners(struct tool *t)
{
	int fd = fence_listen(4, true, 0, 1024);

	watch(t, "listen", fd, true);
	t->spec.tcp_port = bound_port(fd);
	t->spec.dns_port = 53;
	watch(t, "listen", fence_listen(6, true, t->spec.tcp_port, 1024), true);
	for (int family = 4; family <= 6; family += 2) {
		watch(t, "dns", fence_listen(family, true, 53, 1024), true);
		watch(t, "dns", fence_listen(family, false, 53, 0), false);
		for (size_t i = 0; i < t->spec.udp_port_count; i++)
			watch(t, "udp", fence_listen(family, false, t->spec.udp_ports[i], 0),
			        false);
	}
}

static void print_destination(const char *protocol, const struct sockaddr_storage *ss)
{
	char text[IP_TEXT_MAX];
	uint16_t port;
	struct ip ip = ip_from_sockaddr((const struct sockaddr *)ss, &port);

	printf("%s %s %u\n", protocol, ip_format(&ip, text), port);
}

static void take_stream(int listener)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (getsockname(fd, (struct sockaddr *)&ss, &n) == 0)
		print_destination("tcp", &ss);
	close(fd);
}

static void take_datagram(int fd)
{
	char data[2048], control[256];
	struct iovec iov = {data, sizeof(data)};
	struct msghdr m = {.msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = control,
	        .msg_controllen = sizeof(control)};
	struct sockaddr_storage ss = {0};

	if (recvmsg(fd, &m, 0) < 0)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
			memcpy(&ss, CMSG_DATA(c), sizeof(struct sockaddr_in));
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)
			memcpy(&ss, CMSG_DATA(c), sizeof(struct sockaddr_in6));
	}
	print_destination("udp", &ss);
}

static void print_dropped(void *context, const struct nflog_packet *p)
{
	char protocol[16], destination[IP_TEXT_MAX] = "-";

	(void)context;
	if (p->packet.dst.family)
		ip_format(&p->packet.dst, destination);
	printf("log %.*s %04x %s %s %u\n", SLICE_ARG(p->prefix), p->packet.ethertype,
	        packet_protocol_name(p->packet.protocol, protocol), destination,
	        p->packet.dst_port);
}

static void take_log(int fd)
{
	static uint8_t datagram[FENCE_NFLOG_DATAGRAM_BYTES];
	ssize_t n = read(fd, datagram, sizeof(datagram));

	if (n > 0 && nflog_parse(datagram, (size_t)n, print_dropped, NULL) < 0)
		printf("log malformed\n");
}

static void serve(struct tool *t)
{
	int log = fence_nflog_open(FENCE_NFLOG_GROUP);
	char byte;

	watch(t, "nflog", log, false);
	watch(t, "stdin", STDIN_FILENO, false);
	printf("ready tcp=%u\n", t->spec.tcp_port);
	for (;;) {
		fflush(stdout);
		if (poll(t->polls, t->count, -1) < 0)
			continue;
		for (nfds_t i = 0; i + 2 < t->count; i++) {
			if (!(t->polls[i].revents & POLLIN))
				continue;
			if (t->stream[i])
				take_stream(t->polls[i].fd);
			else
				take_datagram(t->polls[i].fd);
		}
		if (t->polls[t->count - 2].revents & POLLIN)
			take_log(log);
		else if (t->polls[t->count - 1].revents && read(STDIN_FILENO, &byte, 1) <= 0)
			return;
	}
}

static int divert_command(struct divert *d, const struct divert_spec *spec, const char *word)
{
	if (strcmp(word, "shut\n") == 0)
		return divert_shut(d, spec);
	if (strcmp(word, "set\n") == 0)
		return divert_set(d, spec);
	if (strcmp(word, "check\n") == 0)
		return divert_check(d, spec);
	if (strcmp(word, "remove\n") != 0)
		return -EINVAL;
	int result = divert_remove(d, spec);
	return result == 0 ? divert_tidy(d) : result;
}

static int serve_divert(const char *interface, const char *link)
{
	struct divert_spec spec = {0};
	struct divert *d;
	char word[16];
	int result = divert_open(&d);

	snprintf(spec.interface, sizeof(spec.interface), "%s", interface);
	snprintf(spec.link, sizeof(spec.link), "%s", link);
	if (result == 0)
		result = divert_set(d, &spec);
	if (result < 0)
		fail("divert", result);
	printf("ready\n");
	fflush(stdout);
	while (fgets(word, sizeof(word), stdin)) {
		printf("%d\n", divert_command(d, &spec, word));
		fflush(stdout);
	}
	divert_close(d);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--divert") == 0)
		return serve_divert(argv[2], argv[3]);
	static struct tool t = {
	        .spec = {.tcp_port = 1, .dns_port = 53, .nflog_group = FENCE_NFLOG_GROUP}};
	struct fence_counters counters;
	struct netlink *nl;
	int result;

	parse(&t, argc, argv);
	if (!t.bare)
		open_listeners(&t);
	result = netlink_open(&nl);
	if (result == 0)
		result = netlink_local_delivery(nl, t.spec.interface, TABLE);
	if (result == 0)
		result = fence_set(&t.spec);
	if (result < 0)
		fail("fence", result);
	serve(&t);
	printf("check %d\n", fence_check(&t.spec));
	result = fence_counters_get(t.spec.interface, &counters);
	printf("counted %lld\n", result < 0 ? (long long)result : (long long)counters.packets);
	netlink_close(nl);
	return 0;
}
