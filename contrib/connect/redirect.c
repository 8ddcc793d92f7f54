/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's rules, made by nft(8) or, where that fails, iptables(8): not every system has the
 * libraries for nftables as archives. iptables sets the filter before the redirection, so that
 * nothing passes in between; nft sets both at once.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "connect.h"
#include "vethguard/base/log.h"

#define TABLE "vethguard-connect"
#define RULES_MAX 4096
/* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST: their headers conflict with netinet/in.h. */
#define ORIGINAL_DESTINATION 80

static const char *const remove_nft[] = {"nft", "delete", "table", "inet", TABLE, NULL};

/* nft */
static void write_nft(const struct connect *c, char *out)
{
	char address[IP_TEXT_MAX], gateways[ADDRESSES_MAX * 80] = "";
	size_t n = 0;

	for (size_t i = 0; i < c->address_count; i++)
		n += (size_t)snprintf(gateways + n, sizeof(gateways) - n,
		        "\t\tip%s daddr %s tcp dport %u accept\n",
		        c->addresses[i].family == 6 ? "6" : "",
		        ip_format(&c->addresses[i], address), c->arguments.gateway_port);
	snprintf(out, RULES_MAX,
	        "table inet " TABLE " {\n"
	        "\tchain redirect {\n"
	        "\t\ttype nat hook output priority -100; policy accept;\n"
	        "%s"
	        "\t\tudp dport 53 redirect to :%u\n"
	        "\t\toifname lo accept\n"
	        "\t\tmeta l4proto tcp redirect to :%u\n"
	        "\t}\n"
	        "\tchain refuse {\n"
	        "\t\ttype filter hook output priority 0; policy accept;\n"
	        "\t\toifname lo accept\n"
	        "\t\tip daddr 127.0.0.0/8 accept\n" /* redirected: its interface is still the former
	                                               one */
	        "\t\tip6 daddr ::1 accept\n"
	        "%s"
	        "\t\tmeta l4proto ipv6-icmp icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, "
	        "nd-router-solicit } accept\n"
	        "\t\treject with icmpx admin-prohibited\n"
	        "\t}\n"
	        "}\n",
	        gateways, c->arguments.port, c->arguments.port, gateways);
}

static bool set_nft(const struct connect *c)
{
	char rules[RULES_MAX + 128];
	int n = snprintf(
	        rules, sizeof(rules), "add table inet " TABLE "\ndelete table inet " TABLE "\n");

	write_nft(c, rules + n);
	return command_run((const char *const[]){"nft", "-f", "-", NULL}, rules) == 0;
}

/* iptables */
static const char *const tables[] = {"nat", "filter"};

static void write_iptables(const struct connect *c, int family, char *out)
{
	char address[IP_TEXT_MAX], gateways[ADDRESSES_MAX * 80] = "";
	size_t n = 0;

	for (size_t i = 0; i < c->address_count; i++)
		if (c->addresses[i].family == family)
			n += (size_t)snprintf(gateways + n, sizeof(gateways) - n,
			        "-A " TABLE " -p tcp -d %s --dport %u -j RETURN\n",
			        ip_format(&c->addresses[i], address), c->arguments.gateway_port);
	snprintf(out, RULES_MAX,
	        "*filter\n:" TABLE " - [0:0]\n-A " TABLE " -o lo -j RETURN\n-A " TABLE
	        " -d %s -j RETURN\n%s%s-A " TABLE " -j REJECT\n"
	        "-I OUTPUT -j " TABLE "\nCOMMIT\n"
	        "*nat\n:" TABLE " - [0:0]\n%s-A " TABLE
	        " -p udp --dport 53 -j REDIRECT --to-ports %u\n"
	        "-A " TABLE " -o lo -j RETURN\n-A " TABLE " -p tcp -j REDIRECT --to-ports %u\n"
	        "-I OUTPUT -j " TABLE "\nCOMMIT\n",
	        family == 6 ? "::1" : "127.0.0.0/8", gateways,
	        family == 6 ? "-A " TABLE " -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j RETURN\n"
	                      "-A " TABLE " -p ipv6-icmp -m icmp6 --icmpv6-type 136 -j RETURN\n"
	                    : "",
	        gateways, c->arguments.port, c->arguments.port);
}

static void remove_iptables(const char *program)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const char *table = tables[i];

		command_run((const char *const[]){program, "-w", "-t", table, "-D", "OUTPUT", "-j",
		                    TABLE, NULL},
		        NULL);
		command_run(
		        (const char *const[]){program, "-w", "-t", table, "-F", TABLE, NULL}, NULL);
		command_run(
		        (const char *const[]){program, "-w", "-t", table, "-X", TABLE, NULL}, NULL);
	}
}

static bool set_iptables(const struct connect *c, int family)
{
	char rules[RULES_MAX];

	remove_iptables(family == 6 ? "ip6tables" : "iptables");
	write_iptables(c, family, rules);
	return command_run(
	               (const char *const[]){family == 6 ? "ip6tables-restore" : "iptables-restore",
	                       "-w", "--noflush", NULL},
	               rules) == 0;
}

bool redirect_set(const struct connect *c)
{
	if (set_nft(c) || (set_iptables(c, 4) && set_iptables(c, 6)))
		return true;
	redirect_remove();
	log_error("connections cannot be redirected: neither nft nor iptables with ip6tables set "
	          "the rules; --redirect needs root (CAP_NET_ADMIN), one of these programs, and a "
	          "kernel with NAT and REJECT");
	return false;
}

void redirect_remove(void)
{
	command_run(remove_nft, NULL);
	remove_iptables("iptables");
	remove_iptables("ip6tables");
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
