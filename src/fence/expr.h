/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr: the few nf_tables expressions that the fence uses, appended to the last rule of a list.
 * Running out of memory sets the list's sticky failed; the caller checks it once, at the end.
 * Private to fence/.
 */
#ifndef VETHGUARD_SRC_FENCE_EXPR_H
#define VETHGUARD_SRC_FENCE_EXPR_H

#include <netinet/in.h> /* before linux/netfilter.h, which yields to it */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* libnftnl's headers name FILE */

#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#define RULES_MAX 32 /* of one chain */

struct rule_list {
	uint32_t family;
	const char *table, *chain;
	struct nftnl_rule *rules[RULES_MAX]; /* owned */
	size_t count;
	bool failed;
};

void rule_list_fini(struct rule_list *l);
/* Begins a new rule; the following calls append to it. */
void rule_begin(struct rule_list *l);

/* Every load goes to the one register that every test reads. */
void rule_load_payload(
        struct rule_list *l, enum nft_payload_bases base, uint32_t offset, uint32_t len);
void rule_load_meta(struct rule_list *l, enum nft_meta_keys key);
void rule_load_mask(struct rule_list *l, const void *mask, uint32_t len);
void rule_test_bytes(struct rule_list *l, enum nft_cmp_ops op, const void *value, uint32_t len);
void rule_test_u8(struct rule_list *l, enum nft_cmp_ops op, uint8_t value);
/* value in host byte order, compared with bytes in network byte order. */
void rule_test_u16(struct rule_list *l, enum nft_cmp_ops op, uint16_t value);
void rule_test_in_set(struct rule_list *l, const char *set, bool inverted);
/* Tests the names of both interfaces as one key. */
void rule_test_pair_in_set(struct rule_list *l, const char *set);
/* Adds the value in the register to a set that packets fill. Does not match if the set is full. */
void rule_learn(struct rule_list *l, const char *set);
/* value in host byte order, as the kernel keeps it (marks, indexes). */
void rule_test_u32(struct rule_list *l, enum nft_cmp_ops op, uint32_t value);
void rule_set_mark(struct rule_list *l, uint32_t mark);
/* Of the packet's connection. A packet without one does not match. */
void rule_load_ct(struct rule_list *l, enum nft_ct_keys key);
void rule_set_ct_mark(struct rule_list *l, uint32_t mark);
/* The id of the cgroup (version 2) of the socket's owner, at this depth. Not in postrouting. */
void rule_load_cgroup(struct rule_list *l, uint32_t level);
/* Matches if the packet goes to an address of this namespace. */
void rule_test_local_destination(struct rule_list *l);
/* Sends the packet out of the interface with this index, unchanged; the packet is consumed. */
void rule_forward(struct rule_list *l, uint32_t index);
/* Matches at most this many packets per second, after a burst of the same number. */
void rule_test_rate(struct rule_list *l, uint64_t per_second);
/* Matches only what exceeds this rate, after a burst. */
void rule_test_beyond(struct rule_list *l, uint64_t per_second, uint32_t burst);

void rule_verdict(struct rule_list *l, int verdict);
void rule_goto(struct rule_list *l, const char *chain);
void rule_verdict_map(struct rule_list *l, const char *map);
void rule_notrack(struct rule_list *l);
void rule_count(struct rule_list *l, const char *counter);
void rule_log(struct rule_list *l, const char *prefix, uint16_t group, uint32_t snap_bytes);
void rule_reject(struct rule_list *l);
/* To this port of the loopback address (of the interface's, for packets that come in); ends the
 * rule. */
void rule_redirect(struct rule_list *l, uint16_t port);
/* To the socket that listens on this port, or on the port in the register. Without such a socket
 * the rule does not match. */
void rule_tproxy(struct rule_list *l, uint16_t port);
void rule_tproxy_loaded_port(struct rule_list *l);

#endif
