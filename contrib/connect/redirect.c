/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings all traffic of this network namespace to this program, by nft(8) or, where that fails,
 * iptables(8): not every system has the libraries for nftables as archives. Where the kernel cannot
 * bring datagrams here (no TPROXY, or no routing by marks), they are refused, and the rest is
 * redirected all the same.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "connect.h"
#include "rules.h"
#include "udp.h"
#include "vethguard/base/log.h"

/* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST: their headers conflict with netinet/in.h. */
#define ORIGINAL_DESTINATION 80

static bool set_with_udp(const struct connect *c)
{
	const int rc = route_set(udp_port(c->udp, 6) != 0);

	if (rc == 0 && (rules_set_nft(c, true) || rules_set_iptables(c, true)))
		return true;
	log_warn("UDP is refused, except for DNS: %s",
	        rc ? strerror(-rc) : "this kernel has no TPROXY for nft or iptables");
	redirect_remove();
	return false;
}

bool redirect_set(struct connect *c)
{
	if (c->udp && set_with_udp(c))
		return true;
	udp_end(c->udp);
	c->udp = NULL;
	if (rules_set_nft(c, false) || rules_set_iptables(c, false))
		return true;
	redirect_remove();
	log_error("connections cannot be redirected: neither nft nor iptables with ip6tables set "
	          "the rules; --redirect needs root (CAP_NET_ADMIN), one of these programs, and a "
	          "kernel with NAT and REJECT");
	return false;
}

void redirect_remove(void)
{
	rules_remove();
	route_remove();
}

bool redirect_destination(int fd, struct ip *address, uint16_t *port)
{
	struct sockaddr_storage meant = {0}, here = {0};
	socklen_t n = sizeof(meant), m = sizeof(here);
	struct ip own;
	uint16_t own_port;
	int rc;

	if (getsockname(fd, (struct sockaddr *)&here, &m) < 0)
		return false;
	rc = here.ss_family == AF_INET6
	             ? getsockopt(fd, IPPROTO_IPV6, ORIGINAL_DESTINATION, &meant, &n)
	             : getsockopt(fd, IPPROTO_IP, ORIGINAL_DESTINATION, &meant, &n);
	own = ip_from_sockaddr((struct sockaddr *)&here, &own_port);
	*address = ip_from_sockaddr((struct sockaddr *)&meant, port);
	return rc == 0 && address->family && !(ip_equals(&own, address) && own_port == *port);
}
