/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process's filters would answer to a call of any architecture, without making the call: the
 * kernel gives the programs of a traced process (ptrace(2), PTRACE_SECCOMP_GET_FILTER;
 * CAP_SYS_ADMIN, CONFIG_CHECKPOINT_RESTORE), and they are carried out here over a struct
 * seccomp_data.
 */
#ifndef VETHGUARD_TESTS_LIB_SECCOMP_JUDGE_H
#define VETHGUARD_TESTS_LIB_SECCOMP_JUDGE_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif
#define SECCOMP_JUDGE_FILTERS_MAX 16

struct seccomp_judge {
	struct sock_filter code[SECCOMP_JUDGE_FILTERS_MAX][BPF_MAXINSNS];
	long size[SECCOMP_JUDGE_FILTERS_MAX];
	size_t count;
};

/* The filters that confine(context) installs in a child. 0; -errno: they cannot be had on this
 * machine; 1: confine failed. */
static inline int seccomp_judge_read(
        struct seccomp_judge *j, int (*confine)(void *context), void *context)
{
	int status, error = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0L, NULL, NULL) != 0)
			_exit(2);
		if (confine(context) != 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	if (!WIFSTOPPED(status))
		return WIFEXITED(status) && WEXITSTATUS(status) == 2 ? -EPERM : 1;
	for (j->count = 0; j->count < SECCOMP_JUDGE_FILTERS_MAX; j->count++) {
		j->size[j->count] = syscall(
		        SYS_ptrace, PTRACE_SECCOMP_GET_FILTER, pid, j->count, j->code[j->count]);
		error = j->size[j->count] < 0 ? -errno : 0;
		if (error)
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return error == -ENOENT && j->count > 0 ? 0 : error != 0 ? error : -E2BIG;
}

static inline uint32_t seccomp_judge_load(const struct seccomp_data *call, uint32_t at)
{
	uint32_t word = 0;

	if (at % 4 == 0 && at <= sizeof(*call) - 4)
		memcpy(&word, (const char *)call + at, 4);
	return word;
}

/* UINT32_MAX: an instruction that is not known here. */
static inline uint32_t seccomp_judge_run(
        const struct sock_filter *code, long size, const struct seccomp_data *call)
{
	uint32_t a = 0;

	for (long i = 0; i < size; i++) {
		const struct sock_filter *f = &code[i];
		bool yes;

		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = seccomp_judge_load(call, f->k);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			continue;
		case BPF_JMP | BPF_JA:
			i += f->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = a == f->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			yes = a > f->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = a >= f->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = (a & f->k) != 0;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			return UINT32_MAX;
		}
		i += yes ? f->jt : f->jf;
	}
	return UINT32_MAX;
}

/* The answer of all filters together: the most severe action, of these the newest filter's
 * (seccomp(2)). */
static inline uint32_t seccomp_judge(
        const struct seccomp_judge *j, uint32_t arch, int nr, uint64_t a, uint64_t b)
{
	const struct seccomp_data call = {.nr = nr, .arch = arch, .args = {a, b}};
	uint32_t worst = SECCOMP_RET_ALLOW;

	for (size_t i = j->count; i-- > 0;) { /* the oldest is the first */
		uint32_t r = seccomp_judge_run(j->code[i], j->size[i], &call);

		if (r == UINT32_MAX)
			return r;
		if ((int32_t)(r & SECCOMP_RET_ACTION_FULL) <
		        (int32_t)(worst & SECCOMP_RET_ACTION_FULL))
			worst = r;
	}
	return worst;
}

#endif
