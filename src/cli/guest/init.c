/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of the sandbox. In order, it
 *
 * - makes the mounts, in a mount namespace that the outer user namespace owns
 * - enters the inner user namespace and a second mount namespace, in which the kernel locks all
 *   mounts
 * - sets the guest's limits
 * - starts the command, the only child it watches
 *
 * From then on init reaps, delivers signals and reports how the command ended; one of its threads
 * answers for the command's sockets (guest/sockets.c). These answers are all that root inside would
 * gain by taking init over: init has the same limits.
 *
 * The command is a process group of its own and gets the terminal, as a job of a shell does. When
 * the command stops, init tells the parent, which stops too, so that the shell outside takes over;
 * GUEST_CONTINUE is the way back.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/guest/guest.h"
#include "cli/guest/sockets.h"
#include "vethguard/base/linux.h"
#include "vethguard/jail/guest.h"

extern char **environ;

struct init {
	const struct guest_plan *plan;
	int socket;
	int signals; /* signalfd: SIGCHLD */
	pid_t child; /* the command */
};

static void report(
        int socket, enum guest_message_kind kind, int value, const struct failure *failure)
{
	struct guest_message m;

	memset(&m, 0, sizeof(m));
	m.kind = kind;
	m.value = value;
	if (failure)
		m.failure = *failure;
	(void)!send(socket, &m, sizeof(m), MSG_NOSIGNAL);
}

static void give_up(int socket, const struct failure *failure)
{
	report(socket, GUEST_FAILED, 0, failure);
	_exit(CLI_FAILED);
}

/* The kernel forgets this signal whenever ids or namespaces change, so it is set again after each
 * such step. */
static void die_with_parent(int socket)
{
	struct pollfd parent = {.fd = socket};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	if (poll(&parent, 1, 0) == 1 && (parent.revents & (POLLHUP | POLLERR)) != 0)
		_exit(CLI_FAILED);
}

/* Enters the directory by name, to get the directory as it is visible now and not the one below a
 * mount. Call this before the user changes: as with sudo(8), the user may be unable to enter the
 * directory. */
static void enter_directory(const struct guest_plan *plan)
{
	if (chdir(plan->directory) != 0 && chdir("/") != 0)
		_exit(CLI_FAILED);
}

static void enter_inner(const struct guest_plan *plan, int socket)
{
	struct failure failure = {""};
	int rc = 0;

	/* The current mount namespace belongs to the outer user namespace. Each mount that is
	 * copied into a less privileged one is locked in place (mount_namespaces(7)). */
	if (setns(plan->ns.ipc, CLONE_NEWIPC) != 0 || setns(plan->ns.user, CLONE_NEWUSER) != 0 ||
	        unshare(CLONE_NEWNS) != 0)
		rc = failure_set(&failure, -errno, "cannot enter the sandbox's namespaces");
	if (rc == 0 && (rc = jail_guest_seccomp()) != 0)
		failure_set(&failure, rc, "cannot load the sandbox's filter of system calls");
	if (rc != 0)
		give_up(socket, &failure);
	die_with_parent(socket);
}

/* Comes after the filters, which need a capability that is given up here. */
static void bound(int socket)
{
	struct failure failure = {""};
	int rc = jail_guest_bound();

	if (rc == 0)
		return;
	failure_set(&failure, rc, "cannot bound the sandbox's capabilities");
	give_up(socket, &failure);
}

static int become(const struct run_user *user)
{
	if (user->group_count >= 0 && setgroups((size_t)user->group_count, user->groups) != 0)
		return -errno;
	if (setresgid(user->gid, user->gid, user->gid) != 0 ||
	        setresuid(user->uid, user->uid, user->uid) != 0)
		return -errno;
	return 0;
}

/* execvp(3) reports EACCES if the user cannot search one directory of PATH, even if the program is
 * in none. Which of the two it was decides between exit status 126 and 127. */
static int search_error(const char *name, int error)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];
	struct stat st;

	if (error != EACCES || strchr(name, '/') || !path)
		return error;
	for (;; path++) {
		int n = (int)strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", n, path, name) < (int)sizeof(file) &&
		        stat(file, &st) == 0)
			return EACCES;
		path += n;
		if (*path == '\0')
			return ENOENT;
	}
}

/* The child that becomes the command. It shares init's descriptor table at first: the child, which
 * is under the filter, makes the listener at which its calls are asked about; init, which is not,
 * reads from it. The child writes to told first the listener's number or -errno, then, as an errno,
 * what fails. */
static void become_command(const struct guest_plan *plan, int told)
{
	int listener = jail_guest_ask(), rc;

	if (listener >= 0 && unshare(CLONE_FILES) != 0)
		listener = -errno;
	(void)!write(told, &listener, sizeof(listener));
	if (listener < 0 || jail_guest_bound() != 0)
		_exit(CLI_FAILED);
	setpgid(0, 0);
	if (plan->foreground) /* SIGTTOU is blocked here */
		tcsetpgrp(plan->terminal, getpid());
	rc = -become(plan->user);
	if (rc == 0) {
		close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
		sigprocmask(SIG_SETMASK, &plan->signal_mask, NULL);
		environ = plan->env.vars;
		execvp(plan->command[0], plan->command);
		rc = search_error(plan->command[0], errno);
	}
	(void)!write(told, &rc, sizeof(rc));
	_exit(rc == ENOENT ? CLI_NOT_FOUND : CLI_NOT_RUNNABLE);
}

static void no_listener(struct init *init, int error)
{
	struct failure failure = {""};

	if (error == -EBUSY)
		failure_set(&failure, 0,
		        "cannot watch which sockets the command reaches: a container engine, or a "
		        "vethguard around this one, already watches system calls here by seccomp "
		        "user notification, and the kernel permits only one to do so");
	else
		failure_set(&failure, error,
		        "cannot watch which sockets the command reaches by seccomp user "
		        "notification, which Linux 5.15 or later has ('vethguard doctor' tells "
		        "what is missing)");
	give_up(init->socket, &failure);
}

static void start_command(struct init *init)
{
	int told[2], listener = -EPIPE, error = 0;

	if (pipe2(told, O_CLOEXEC) != 0 ||
	        (init->child = (pid_t)syscall(
	                 SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL)) < 0) {
		struct failure failure = {""};

		failure_set(&failure, -errno, "cannot start the command's process");
		give_up(init->socket, &failure);
	}
	if (init->child == 0)
		become_command(init->plan, told[1]);
	setpgid(init->child, init->child); /* both processes do this: either may be first */
	if (read(told[0], &listener, sizeof(listener)) != sizeof(listener) || listener < 0)
		no_listener(init, listener);
	close(told[1]);
	bound(init->socket);
	error = sockets_start(listener);
	if (error != 0)
		no_listener(init, error);
	if (read(told[0], &error, sizeof(error)) == sizeof(error)) {
		report(init->socket, GUEST_NOT_RUN, error, NULL);
		_exit(CLI_NOT_RUNNABLE);
	}
	close(told[0]);
}

/* Kills everything else inside while init still answers for sockets. The kernel would do it when
 * init ends, but closes init's descriptors first: until then a call of theirs would fail, and an
 * honest program would say so. */
static void end_what_is_left(void)
{
	kill(-1, SIGKILL);
}

/* Handles every child that ended or stopped. Init also gets the sandbox's orphans and only reaps
 * them. */
static void reap(struct init *init)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != init->child)
			continue;
		if (WIFSTOPPED(status)) {
			report(init->socket, GUEST_STOPPED, WSTOPSIG(status), NULL);
			continue;
		}
		end_what_is_left();
		report(init->socket, GUEST_EXITED, status, NULL);
		_exit(0);
	}
}

static void obey(struct init *init)
{
	struct guest_message m;
	ssize_t n = recv(init->socket, &m, sizeof(m), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { /* the parent is gone */
		end_what_is_left();
		_exit(CLI_FAILED);
	}
	if (n != (ssize_t)sizeof(m))
		return;
	if (m.kind == GUEST_SIGNAL)
		kill(init->child, m.value);
	if (m.kind != GUEST_CONTINUE)
		return;
	if (m.value == 1 && init->plan->terminal >= 0)
		tcsetpgrp(init->plan->terminal, init->child);
	kill(-init->child, SIGCONT);
}

static void serve(struct init *init)
{
	struct pollfd fds[2] = {
	        {.fd = init->signals, .events = POLLIN}, {.fd = init->socket, .events = POLLIN}};
	struct signalfd_siginfo info;

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			_exit(CLI_FAILED);
		if (fds[0].revents != 0 && read(init->signals, &info, sizeof(info)) > 0)
			reap(init);
		if (fds[1].revents != 0)
			obey(init);
	}
}

/* Closes all descriptors except the standard ones and these, in any order. A negative one stands
 * for none. */
static void close_others(int *keep, size_t count)
{
	unsigned from = 3;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			if (keep[j] < keep[i]) {
				int lower = keep[j];

				keep[j] = keep[i];
				keep[i] = lower;
			}
	for (size_t i = 0; i < count; i++) {
		if (keep[i] < (int)from)
			continue;
		if (keep[i] > (int)from)
			close_range(from, (unsigned)keep[i] - 1, 0);
		from = (unsigned)keep[i] + 1;
	}
	close_range(from, ~0U, 0);
}

void guest_init(const struct guest_plan *plan, int socket)
{
	struct init init = {.plan = plan, .socket = socket};
	struct failure failure = {""};
	sigset_t all;
	int keep[3] = {socket, plan->terminal, -1};

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	die_with_parent(socket);
	if (guest_mounts(plan, &keep[2], &failure) != 0)
		give_up(socket, &failure);
	enter_directory(plan);
	enter_inner(plan, socket);
	close_others(keep, 3);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	init.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init.signals < 0) {
		failure_set(&failure, -errno, "cannot watch the command");
		give_up(socket, &failure);
	}
	start_command(&init);
	serve(&init);
	_exit(CLI_FAILED);
}
