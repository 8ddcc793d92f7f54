/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side of the sandbox: starts init, exchanges messages with it, and ends it for
 * certain. */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guest/guest.h"

/* Like fork(), but into a new PID namespace: the child is its first process, and when the child
 * dies, the kernel kills all others. unshare(2) would not work: this process could not fork any
 * more once that namespace has ended. */
static pid_t clone_first(int *pidfd)
{
	struct clone_args args = {.flags = CLONE_NEWPID | CLONE_PIDFD,
	        .pidfd = (uint64_t)(uintptr_t)pidfd,
	        .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	return pid < 0 ? -errno : (pid_t)pid;
}

int guest_start(struct guest *s, const struct guest_plan *plan, struct failure *failure)
{
	int pair[2];

	*s = (struct guest){-1, -1, -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return failure_set(failure, -errno, "cannot make a socket pair");
	s->pid = clone_first(&s->pidfd);
	if (s->pid < 0) {
		int rc = (int)s->pid;

		close(pair[0]);
		close(pair[1]);
		return failure_set(failure, rc, "cannot make the sandbox's process namespace");
	}
	if (s->pid == 0) {
		close(pair[0]);
		guest_init(plan, pair[1]);
	}
	close(pair[1]);
	s->socket = pair[0];
	return 0;
}

int guest_receive(const struct guest *s, struct guest_message *out)
{
	ssize_t n;

	do
		n = recv(s->socket, out, sizeof(*out), 0);
	while (n < 0 && errno == EINTR);
	/* Init has this process's memory layout and can be trusted until it has dropped everything;
	 * still, no half messages are taken. */
	if (n != (ssize_t)sizeof(*out))
		return -EPIPE;
	out->failure.text[FAILURE_TEXT_MAX - 1] = '\0';
	return 0;
}

void guest_send(const struct guest *s, enum guest_message_kind kind, int value)
{
	struct guest_message m;

	memset(&m, 0, sizeof(m));
	m.kind = kind;
	m.value = value;
	/* Errors are ignored: a full queue means a flood of signals, and a dead init is noticed
	 * elsewhere. */
	(void)!send(s->socket, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void guest_kill(struct guest *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (s->pidfd >= 0)
		close(s->pidfd);
	if (s->socket >= 0)
		close(s->socket);
	*s = (struct guest){-1, -1, -1};
}
