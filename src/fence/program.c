/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the kernel enters with the frame's context in R1 and takes the verdict from
 * R0: TC_ACT_SHOT drops, TC_ACT_UNSPEC leaves the frame to the next filter. No GPL-only helper is
 * called, and no map is needed.
 */
#include "fence/program.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#include "vethguard/fence/divert.h"
#include "vethguard/netlink/filter.h"

#define INSTRUCTIONS_MAX 24

struct program {
	struct bpf_insn code[INSTRUCTIONS_MAX];
	size_t count;
};

static void put(
        struct program *p, uint8_t code, uint8_t to, uint8_t from, size_t offset, int32_t value)
{
	p->code[p->count++] = (struct bpf_insn){.code = code,
	        .dst_reg = to & 0xf,
	        .src_reg = from & 0xf,
	        .off = (int16_t)offset,
	        .imm = value};
}

static void put_value(struct program *p, uint8_t to, int32_t value)
{
	put(p, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

static void put_verdict(struct program *p, int32_t verdict)
{
	put_value(p, BPF_REG_0, verdict);
	put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Skips this many instructions if the register has this value, or does not have it (BPF_JEQ,
 * BPF_JNE). */
static void put_skip(
        struct program *p, uint8_t comparison, uint8_t r, int32_t value, size_t instructions)
{
	put(p, BPF_JMP | comparison | BPF_K, r, 0, instructions, value);
}

static void let_marked(struct program *p)
{
	put(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct __sk_buff, mark),
	        0);
	put_skip(p, BPF_JNE, BPF_REG_2, (int32_t)DIVERT_MARK, 2);
	put_verdict(p, TC_ACT_UNSPEC);
	put_verdict(p, TC_ACT_SHOT);
}
_Static_assert(DIVERT_MARK <= INT32_MAX, "compared as it is, not as a negative number");

/* Two instructions. context: the register with the context. */
static void put_mark(struct program *p, uint8_t context, uint32_t mark)
{
	put_value(p, BPF_REG_2, (int32_t)mark);
	put(p, BPF_STX | BPF_MEM | BPF_W, context, BPF_REG_2, offsetof(struct __sk_buff, mark), 0);
}

static void hand_on(struct program *p, unsigned to)
{
	put_mark(p, BPF_REG_1, DIVERT_MARK);
	put_value(p, BPF_REG_1, (int32_t)to);
	put_value(p, BPF_REG_2, 0); /* flags: out of the interface */
	put(p, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect);
	put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Tests for 01:80:c2:00:00:00 to :0f. Loads from the frame need the context in R6 and give values
 * in host byte order; the protocol is in network byte order. */
static void bridge_port(struct program *p)
{
	put(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
	put(p, BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, 0);
	put_skip(p, BPF_JNE, BPF_REG_0, 0x0180c200, 7);
	put(p, BPF_LD | BPF_ABS | BPF_H, 0, 0, 0, 4);
	put(p, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_0, 0, 0, 0xfff0);
	put_skip(p, BPF_JNE, BPF_REG_0, 0, 4);
	put(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_6,
	        offsetof(struct __sk_buff, protocol), 0);
	put_skip(p, BPF_JEQ, BPF_REG_2, htons(ETH_P_IP), 6);
	put_skip(p, BPF_JEQ, BPF_REG_2, htons(ETH_P_ARP), 5);
	put_skip(p, BPF_JEQ, BPF_REG_2, htons(ETH_P_IPV6), 4);
	put_mark(p, BPF_REG_6, DIVERT_PORT_MARK);
	put_verdict(p, TC_ACT_UNSPEC);
	put_verdict(p, TC_ACT_SHOT);
}

int program_load(enum program_kind kind, unsigned to)
{
	struct program p = {.count = 0};

	if (kind == PROGRAM_HAND_ON)
		hand_on(&p, to);
	else if (kind == PROGRAM_LET_MARKED)
		let_marked(&p);
	else if (kind == PROGRAM_BRIDGE_PORT)
		bridge_port(&p);
	else
		put_verdict(&p, TC_ACT_SHOT);
	return filter_load(p.code, p.count);
}
