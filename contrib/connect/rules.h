/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is told with --redirect: rules of its packet filter (rules.c), and where captured
 * datagrams go (route.c). See redirect.c. */
#ifndef VETHGUARD_CONTRIB_CONNECT_RULES_H
#define VETHGUARD_CONTRIB_CONNECT_RULES_H

#include <stdbool.h>

struct connect;

/* --- rules.c --- */
/* Set the rules, by nft(8) or by iptables(8) and ip6tables(8). with_udp: c->udp gets the datagrams;
 * else they are refused. Return false if the program or the kernel does not take the rules. */
bool rules_set_nft(const struct connect *c, bool with_udp);
bool rules_set_iptables(const struct connect *c, bool with_udp);
void rules_remove(void);

/* --- route.c --- */
/* Routes packets with MARK_CAPTURED to the loopback interface of this network namespace, whatever
 * their destination is; those of IPv6 only if ipv6 is true. Uses the routes that an earlier run has
 * left. Returns 0 or -errno. */
int route_set(bool ipv6);
void route_remove(void);

#endif
