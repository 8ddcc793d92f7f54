/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules, for nft(8) and for iptables(8). Each set of rules has three parts:
 *
 * - TCP and DNS over UDP: their destination is rewritten to this program (REDIRECT).
 * - Other datagrams, if programs may send any: they get a mark, by which they are routed to the
 *   loopback interface (route.c); they come in there, and the kernel gives them to this program's
 *   socket with their destination unchanged (TPROXY). Without the route they are dropped.
 * - All else is refused.
 *
 * Datagrams to many at once (multicast, broadcast) are refused: a gateway cannot send them.
 * iptables sets its tables in such an order that nothing passes in between; nft sets all at once.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "connect.h"
#include "rules.h"
#include "udp.h"

#define TABLE "vethguard-connect"
#define CHAIN_IN TABLE "-in"
#define CHAIN_OUT TABLE "-out"
#define RULES_MAX 8192

struct text {
	char bytes[RULES_MAX];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->bytes + t->n, sizeof(t->bytes) - t->n, format, args);
	va_end(args);
	t->n += n > 0 && (size_t)n < sizeof(t->bytes) - t->n ? (size_t)n : 0;
}

static uint16_t port_of(const struct connect *c, bool with_udp, int family)
{
	return with_udp && c->udp ? udp_port(c->udp, family) : 0;
}

/* --- nft --- */

static void put_nft_gateways(struct text *t, const struct connect *c)
{
	char address[IP_TEXT_MAX];

	for (size_t i = 0; i < c->address_count; i++)
		put(t, "\t\tip%s daddr %s tcp dport %u accept\n",
		        c->addresses[i].family == 6 ? "6" : "",
		        ip_format(&c->addresses[i], address), c->arguments.gateway_port);
}

static void put_nft_capture(struct text *t, uint16_t port4, uint16_t port6)
{
	put(t,
	        "\tchain capture {\n"
	        "\t\ttype route hook output priority -150; policy accept;\n"
	        "\t\toifname lo accept\n"
	        "\t\tmeta mark 0x%x accept\n"
	        "\t\tudp dport 53 accept\n"
	        "\t\tip daddr { 127.0.0.0/8, 224.0.0.0/4, 255.255.255.255 } accept\n"
	        "\t\tip6 daddr { ::1, ff00::/8 } accept\n",
	        MARK_OWN);
	if (port4)
		put(t, "\t\tmeta nfproto ipv4 meta l4proto udp meta mark set 0x%x\n",
		        MARK_CAPTURED);
	if (port6)
		put(t, "\t\tmeta nfproto ipv6 meta l4proto udp meta mark set 0x%x\n",
		        MARK_CAPTURED);
	put(t,
	        "\t}\n"
	        "\tchain deliver {\n"
	        "\t\ttype filter hook prerouting priority -150; policy accept;\n"
	        "\t\tiifname != lo accept\n"
	        "\t\tmeta mark != 0x%x accept\n",
	        MARK_CAPTURED);
	if (port4)
		put(t, "\t\tmeta nfproto ipv4 meta l4proto udp tproxy ip to 127.0.0.1:%u accept\n",
		        port4);
	if (port6)
		put(t, "\t\tmeta nfproto ipv6 meta l4proto udp tproxy ip6 to [::1]:%u accept\n",
		        port6);
	put(t,
	        "\t\tdrop\n" /* this program does not run: it has no socket there */
	        "\t}\n"
	        "\tchain keep {\n"
	        "\t\ttype filter hook postrouting priority 0; policy accept;\n"
	        "\t\tmeta mark 0x%x oifname != lo drop\n"
	        "\t}\n",
	        MARK_CAPTURED);
}

static void put_nft(struct text *t, const struct connect *c, bool with_udp)
{
	const uint16_t port4 = port_of(c, with_udp, 4), port6 = port_of(c, with_udp, 6);

	put(t, "add table inet " TABLE "\ndelete table inet " TABLE "\ntable inet " TABLE " {\n"
	       "\tchain redirect {\n"
	       "\t\ttype nat hook output priority -100; policy accept;\n");
	put_nft_gateways(t, c);
	put(t,
	        "\t\tudp dport 53 redirect to :%u\n"
	        "\t\toifname lo accept\n"
	        "\t\tmeta l4proto tcp redirect to :%u\n"
	        "\t}\n",
	        c->arguments.port, c->arguments.port);
	if (port4 || port6)
		put_nft_capture(t, port4, port6);
	put(t, "\tchain refuse {\n"
	       "\t\ttype filter hook output priority 0; policy accept;\n"
	       "\t\toifname lo accept\n"
	       "\t\tip daddr 127.0.0.0/8 accept\n" /* redirected: its interface is still the former
	                                              one */
	       "\t\tip6 daddr ::1 accept\n");
	if (port4 || port6)
		put(t, "\t\tmeta l4proto udp meta mark { 0x%x, 0x%x } accept\n", MARK_OWN,
		        MARK_CAPTURED);
	put_nft_gateways(t, c);
	put(t, "\t\tmeta l4proto ipv6-icmp icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, "
	       "nd-router-solicit } accept\n"
	       "\t\treject with icmpx admin-prohibited\n"
	       "\t}\n"
	       "}\n");
}

bool rules_set_nft(const struct connect *c, bool with_udp)
{
	static struct text t;

	t.n = 0;
	put_nft(&t, c, with_udp);
	return command_run((const char *const[]){"nft", "-f", "-", NULL}, t.bytes) == 0;
}

/* --- iptables --- */

static void put_gateways(struct text *t, const struct connect *c, int family)
{
	char address[IP_TEXT_MAX];

	for (size_t i = 0; i < c->address_count; i++)
		if (c->addresses[i].family == family)
			put(t, "-A " TABLE " -p tcp -d %s --dport %u -j RETURN\n",
			        ip_format(&c->addresses[i], address), c->arguments.gateway_port);
}

static void put_capture(struct text *t, int family, uint16_t port)
{
	static const char *const not_captured[][3] = {
	        {"127.0.0.0/8", "224.0.0.0/4", "255.255.255.255"}, {"::1", "ff00::/8", NULL}};

	put(t,
	        "*mangle\n:" TABLE " - [0:0]\n:" CHAIN_IN " - [0:0]\n:" CHAIN_OUT
	        " - [0:0]\n-A " TABLE " -o lo -j RETURN\n-A " TABLE
	        " -m mark --mark 0x%x -j RETURN\n-A " TABLE " -p udp --dport 53 -j RETURN\n",
	        MARK_OWN);
	for (size_t i = 0; i < 3 && not_captured[family == 6][i]; i++)
		put(t, "-A " TABLE " -d %s -j RETURN\n", not_captured[family == 6][i]);
	put(t,
	        "-A " TABLE " -p udp -j MARK --set-mark 0x%x\n-A " CHAIN_IN
	        " -i lo -p udp -m mark --mark 0x%x -j TPROXY --on-ip %s --on-port %u\n"
	        "-A " CHAIN_OUT " -m mark --mark 0x%x ! -o lo -j DROP\n-I OUTPUT -j " TABLE
	        "\n-I PREROUTING -j " CHAIN_IN "\n-I POSTROUTING -j " CHAIN_OUT "\nCOMMIT\n",
	        MARK_CAPTURED, MARK_CAPTURED, family == 6 ? "::1" : "127.0.0.1", port,
	        MARK_CAPTURED);
}

static void put_iptables(struct text *t, const struct connect *c, int family, uint16_t udp)
{
	put(t,
	        "*filter\n:" TABLE " - [0:0]\n-A " TABLE " -o lo -j RETURN\n-A " TABLE
	        " -d %s -j RETURN\n",
	        family == 6 ? "::1" : "127.0.0.0/8");
	if (udp)
		put(t,
		        "-A " TABLE " -p udp -m mark --mark 0x%x -j RETURN\n-A " TABLE
		        " -p udp -m mark --mark 0x%x -j RETURN\n",
		        MARK_OWN, MARK_CAPTURED);
	put_gateways(t, c, family);
	if (family == 6)
		put(t, "-A " TABLE " -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j RETURN\n-A " TABLE
		       " -p ipv6-icmp -m icmp6 --icmpv6-type 136 -j RETURN\n");
	put(t, "-A " TABLE " -j REJECT\n-I OUTPUT -j " TABLE "\nCOMMIT\n*nat\n:" TABLE
	       " - [0:0]\n");
	put_gateways(t, c, family);
	put(t,
	        "-A " TABLE " -p udp --dport 53 -j REDIRECT --to-ports %u\n-A " TABLE
	        " -o lo -j RETURN\n-A " TABLE
	        " -p tcp -j REDIRECT --to-ports %u\n-I OUTPUT -j " TABLE "\nCOMMIT\n",
	        c->arguments.port, c->arguments.port);
	if (udp)
		put_capture(t, family, udp);
}

static void remove_iptables(const char *program)
{
	static const struct {
		const char *table, *hook, *chain;
	} places[] = {
	        {"mangle", "OUTPUT", TABLE},
	        {"mangle", "PREROUTING", CHAIN_IN},
	        {"mangle", "POSTROUTING", CHAIN_OUT},
	        {"nat", "OUTPUT", TABLE},
	        {"filter", "OUTPUT", TABLE},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *table = places[i].table, *chain = places[i].chain;

		command_run((const char *const[]){program, "-w", "-t", table, "-D", places[i].hook,
		                    "-j", chain, NULL},
		        NULL);
		command_run(
		        (const char *const[]){program, "-w", "-t", table, "-F", chain, NULL}, NULL);
		command_run(
		        (const char *const[]){program, "-w", "-t", table, "-X", chain, NULL}, NULL);
	}
}

static bool set_iptables(const struct connect *c, int family, uint16_t udp)
{
	static struct text t;

	t.n = 0;
	remove_iptables(family == 6 ? "ip6tables" : "iptables");
	put_iptables(&t, c, family, udp);
	return command_run(
	               (const char *const[]){family == 6 ? "ip6tables-restore" : "iptables-restore",
	                       "-w", "--noflush", NULL},
	               t.bytes) == 0;
}

bool rules_set_iptables(const struct connect *c, bool with_udp)
{
	return set_iptables(c, 4, port_of(c, with_udp, 4)) &&
	       set_iptables(c, 6, port_of(c, with_udp, 6));
}

void rules_remove(void)
{
	command_run((const char *const[]){"nft", "delete", "table", "inet", TABLE, NULL}, NULL);
	remove_iptables("iptables");
	remove_iptables("ip6tables");
}
