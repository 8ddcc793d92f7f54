/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guarded command's second filter: calls that name a socket are not carried out but reported
 * (seccomp_unotify(2)). No filter can see which socket a path leads to; src/cli/guest/sockets.c
 * can.
 *
 * Reported are connect, sendmsg, sendmmsg, and sendto with an address. Also reported is a clone
 * with CLONE_FILES that makes no thread, because two processes then share a table of descriptors,
 * which the answers have to take into account. clone3 hides its flags behind a pointer; it fails
 * with ENOSYS, and every libc falls back to clone.
 *
 * The program is written by hand: libseccomp would make one filter per architecture, and the kernel
 * permits one listener.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vethguard/jail/guest.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* Linux 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define X32_BIT 0x40000000u
#define PROGRAM_MAX 128
#define ARG_LOW(n) (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
#define ARG_HIGH(n) (ARG_LOW(n) + sizeof(uint32_t))
#define NONE 0xffffffffu /* no call has this number */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "halves of arguments");

struct numbers {
	uint32_t arch, connect, sendto, sendmsg, sendmmsg, clone;
	uint32_t refused[3]; /* these fail with ENOSYS */
};

static const struct numbers tables[] = {
#if defined(__x86_64__)
        /* the x32 bit is masked; x32's own numbers (sendmsg, sendmmsg) are refused */
        {AUDIT_ARCH_X86_64, 42, 44, 46, 307, 56, {435, 518, 538}},
        {AUDIT_ARCH_I386, 362, 369, 370, 345, 120, {435, 102 /* socketcall */, NONE}},
#elif defined(__aarch64__)
        {AUDIT_ARCH_AARCH64, 203, 206, 211, 269, 220, {435, NONE, NONE}},
        {AUDIT_ARCH_ARM, 283, 290, 296, 374, 120, {435, 102, NONE}},
#endif
};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short n;
};

static void add(struct program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t k)
{
	p->code[p->n++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct program *p, size_t offset)
{
	add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(struct program *p, uint32_t action)
{
	add(p, BPF_RET | BPF_K, 0, 0, action);
}

/* If the loaded value equals value, returns this action. */
static void answer_if(struct program *p, uint32_t value, uint32_t action)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
	answer(p, action);
}

static void add_calls(struct program *p, const struct numbers *n)
{
	load(p, offsetof(struct seccomp_data, nr));
	add(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, ~X32_BIT);
	answer_if(p, n->connect, SECCOMP_RET_USER_NOTIF);
	answer_if(p, n->sendmsg, SECCOMP_RET_USER_NOTIF);
	answer_if(p, n->sendmmsg, SECCOMP_RET_USER_NOTIF);
	for (size_t i = 0; i < sizeof(n->refused) / sizeof(n->refused[0]); i++)
		answer_if(p, n->refused[i], SECCOMP_RET_ERRNO | ENOSYS);
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 6, n->sendto); /* no address means a null pointer */
	load(p, ARG_LOW(4));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
	load(p, ARG_HIGH(4));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, SECCOMP_RET_USER_NOTIF);
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, n->clone);
	load(p, ARG_LOW(0));
	add(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, CLONE_FILES | CLONE_THREAD);
	answer_if(p, CLONE_FILES, SECCOMP_RET_USER_NOTIF);
	answer(p, SECCOMP_RET_ALLOW);
}

static void build(struct program *p)
{
	for (size_t i = 0; i < TABLES; i++) {
		unsigned short from;

		load(p, offsetof(struct seccomp_data, arch));
		from = p->n;
		add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, tables[i].arch);
		add_calls(p, &tables[i]);
		p->code[from].jf = (uint8_t)(p->n - from - 1);
	}
	answer(p, SECCOMP_RET_ERRNO | ENOSYS); /* an architecture without a table */
}

enum jail_call jail_call_find(uint32_t arch, uint32_t number, bool *native)
{
	for (size_t i = 0; i < TABLES; i++) {
		const struct numbers *n = &tables[i];

		if (n->arch != arch)
			continue;
		*native = i == 0;
		return number == n->connect    ? JAIL_CALL_CONNECT
		       : number == n->sendto   ? JAIL_CALL_SENDTO
		       : number == n->sendmsg  ? JAIL_CALL_SENDMSG
		       : number == n->sendmmsg ? JAIL_CALL_SENDMMSG
		       : number == n->clone    ? JAIL_CALL_CLONE
		                               : JAIL_CALL_OTHER;
	}
	*native = false;
	return JAIL_CALL_OTHER;
}

int jail_guest_ask(void)
{
	struct program p = {.n = 0};
	struct sock_fprog f = {.filter = p.code};
	const unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	long fd;

	if (TABLES == 0)
		return -EOPNOTSUPP;
	build(&p);
	f.len = p.n;
	/* a signal must not restart a call that the listener is carrying out */
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	        flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &f);
	if (fd < 0 && errno == EINVAL) /* before Linux 5.19 */
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &f);
	return fd < 0 ? -errno : (int)fd;
}
