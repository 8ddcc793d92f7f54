/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: nf_tables runs a rule as a short program over registers. One register is
 * enough here: a load fills it and the following tests read it, so one load can serve several
 * tests.
 */
#include "fence/expr.h"

#include <arpa/inet.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define REGISTER NFT_REG_1
#define NEXT_REGISTER NFT_REG_2 /* a key of two parts continues there */
#define BITWISE_MAX 16          /* bytes of a register */

void rule_list_fini(struct rule_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		nftnl_rule_free(l->rules[i]);
	l->count = 0;
}

void rule_begin(struct rule_list *l)
{
	struct nftnl_rule *rule = l->count < RULES_MAX ? nftnl_rule_alloc() : NULL;

	if (!rule) {
		l->failed = true;
		return;
	}
	nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, l->family);
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, l->table);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, l->chain);
	l->rules[l->count++] = rule;
}

/* Returns NULL after the list failed; callers return then. */
static struct nftnl_expr *append(struct rule_list *l, const char *name)
{
	struct nftnl_expr *e = l->failed || l->count == 0 ? NULL : nftnl_expr_alloc(name);

	if (!e) {
		l->failed = true;
		return NULL;
	}
	nftnl_rule_add_expr(l->rules[l->count - 1], e);
	return e;
}

void rule_load_payload(
        struct rule_list *l, enum nft_payload_bases base, uint32_t offset, uint32_t len)
{
	struct nftnl_expr *e = append(l, "payload");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
}

static void load_meta(struct rule_list *l, enum nft_meta_keys key, uint32_t into)
{
	struct nftnl_expr *e = append(l, "meta");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, into);
}

void rule_load_meta(struct rule_list *l, enum nft_meta_keys key)
{
	load_meta(l, key, REGISTER);
}

void rule_load_mask(struct rule_list *l, const void *mask, uint32_t len)
{
	static const uint8_t zero[BITWISE_MAX];
	struct nftnl_expr *e = len > sizeof(zero) ? NULL : append(l, "bitwise");

	if (!e) {
		l->failed = true;
		return;
	}
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, len);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, mask, len);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, zero, len);
}

void rule_test_bytes(struct rule_list *l, enum nft_cmp_ops op, const void *value, uint32_t len)
{
	struct nftnl_expr *e = append(l, "cmp");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, value, len);
}

void rule_test_u8(struct rule_list *l, enum nft_cmp_ops op, uint8_t value)
{
	rule_test_bytes(l, op, &value, sizeof(value));
}

void rule_test_u16(struct rule_list *l, enum nft_cmp_ops op, uint16_t value)
{
	uint16_t wire = htons(value);

	rule_test_bytes(l, op, &wire, sizeof(wire));
}

void rule_test_in_set(struct rule_list *l, const char *set, bool inverted)
{
	struct nftnl_expr *e = append(l, "lookup");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, REGISTER);
	nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, set);
	/* also without flags: the kernel reports them as 0, and the check compares */
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, inverted ? NFT_LOOKUP_F_INV : 0);
}

void rule_test_pair_in_set(struct rule_list *l, const char *set)
{
	rule_load_meta(l, NFT_META_IIFNAME);
	load_meta(l, NFT_META_OIFNAME, NEXT_REGISTER);
	rule_test_in_set(l, set, false);
}

void rule_learn(struct rule_list *l, const char *set)
{
	struct nftnl_expr *e = append(l, "dynset");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_KEY, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
	nftnl_expr_set_str(e, NFTNL_EXPR_DYNSET_SET_NAME, set);
	nftnl_expr_set_u64(e, NFTNL_EXPR_DYNSET_TIMEOUT, 0); /* 0: the set's timeout; the kernel
	                                                        reports it as 0 */
}

void rule_test_u32(struct rule_list *l, enum nft_cmp_ops op, uint32_t value)
{
	rule_test_bytes(l, op, &value, sizeof(value));
}

static void load_u32(struct rule_list *l, uint32_t value)
{
	struct nftnl_expr *e = append(l, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, REGISTER);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &value, sizeof(value));
}

void rule_set_mark(struct rule_list *l, uint32_t mark)
{
	struct nftnl_expr *e;

	load_u32(l, mark);
	e = append(l, "meta");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_MARK);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, REGISTER);
}

void rule_load_ct(struct rule_list *l, enum nft_ct_keys key)
{
	struct nftnl_expr *e = append(l, "ct");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, REGISTER);
}

void rule_set_ct_mark(struct rule_list *l, uint32_t mark)
{
	struct nftnl_expr *e;

	load_u32(l, mark);
	e = append(l, "ct");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_MARK);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_SREG, REGISTER);
}

void rule_load_cgroup(struct rule_list *l, uint32_t level)
{
	struct nftnl_expr *e = append(l, "socket");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_CGROUPV2);
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_DREG, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_LEVEL, level);
}

void rule_test_local_destination(struct rule_list *l)
{
	struct nftnl_expr *e = append(l, "fib");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_DREG, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_FLAGS, NFTA_FIB_F_DADDR);
	rule_test_u32(l, NFT_CMP_EQ, RTN_LOCAL);
}

void rule_forward(struct rule_list *l, uint32_t index)
{
	struct nftnl_expr *e;

	load_u32(l, index);
	e = append(l, "fwd");
	if (e)
		nftnl_expr_set_u32(e, NFTNL_EXPR_FWD_SREG_DEV, REGISTER);
}

static void limit(struct rule_list *l, uint64_t per_second, uint32_t burst, uint32_t flags)
{
	struct nftnl_expr *e = append(l, "limit");

	if (!e)
		return;
	nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_RATE, per_second);
	nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_UNIT, 1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_BURST, burst);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_FLAGS, flags);
}

void rule_test_rate(struct rule_list *l, uint64_t per_second)
{
	limit(l, per_second, (uint32_t)per_second, 0);
}

void rule_test_beyond(struct rule_list *l, uint64_t per_second, uint32_t burst)
{
	limit(l, per_second, burst, NFT_LIMIT_F_INV);
}

void rule_verdict(struct rule_list *l, int verdict)
{
	struct nftnl_expr *e = append(l, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
}

void rule_goto(struct rule_list *l, const char *chain)
{
	struct nftnl_expr *e = append(l, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)NFT_GOTO);
	nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, chain);
}

void rule_verdict_map(struct rule_list *l, const char *map)
{
	struct nftnl_expr *e = append(l, "lookup");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, map);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, 0);
}

void rule_notrack(struct rule_list *l)
{
	append(l, "notrack");
}

void rule_count(struct rule_list *l, const char *counter)
{
	struct nftnl_expr *e = append(l, "objref");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
	nftnl_expr_set_str(e, NFTNL_EXPR_OBJREF_IMM_NAME, counter);
}

void rule_log(struct rule_list *l, const char *prefix, uint16_t group, uint32_t snap_bytes)
{
	struct nftnl_expr *e = append(l, "log");

	if (!e)
		return;
	nftnl_expr_set_str(e, NFTNL_EXPR_LOG_PREFIX, prefix);
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, group);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, snap_bytes);
}

void rule_reject(struct rule_list *l)
{
	struct nftnl_expr *e = append(l, "reject");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
	nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}

static void load_port(struct rule_list *l, uint16_t port)
{
	struct nftnl_expr *e = append(l, "immediate");
	uint16_t wire = htons(port);

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, REGISTER);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &wire, sizeof(wire));
}

void rule_redirect(struct rule_list *l, uint16_t port)
{
	struct nftnl_expr *e;

	load_port(l, port);
	e = append(l, "redir");
	if (!e)
		return;
	/* the kernel reports both ends of the range and the flag; the check compares */
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MIN, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MAX, REGISTER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED);
}

void rule_tproxy(struct rule_list *l, uint16_t port)
{
	load_port(l, port);
	rule_tproxy_loaded_port(l);
}

void rule_tproxy_loaded_port(struct rule_list *l)
{
	struct nftnl_expr *e = append(l, "tproxy");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_UNSPEC); /* IPv4 and IPv6 */
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, REGISTER);
}
