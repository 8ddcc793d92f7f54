/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused: what the fence reports of packets that it did not let pass (the kernel's log, counters),
 * and packets that it must not let pass.
 */
#ifndef VETHGUARD_TESTS_UNIT_FENCE_REFUSED_H
#define VETHGUARD_TESTS_UNIT_FENCE_REFUSED_H

#include "traffic.h"
#include "vethguard/wire/packet.h"

struct seen {
	const char *prefix;
	uint8_t protocol;
	uint16_t port;
	struct ip src, dst;
	bool found;
};

/* Of two, because one datagram of the log may tell of both. */
static inline void look_for(void *context, const struct nflog_packet *p)
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

static inline void assert_logged(struct world *w, struct seen s[2])
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

static inline int read_counters(void *context)
{
	return fence_counters_get(WORLD_LINK, context);
}

static inline struct fence_counters counted(struct world *w)
{
	struct fence_counters c;

	assert_int_equal(netns_run(w->gate, read_counters, &c), 0);
	return c;
}

static inline int add_false_addresses(void *context)
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

static inline void send_from(
        struct world *w, const char *source, const char *destination, uint16_t port)
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

#endif
