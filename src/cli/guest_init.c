/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of the sandbox. In order: mounts, made in a mount namespace that the outer user namespace
 * owns; then the inner user namespace and a second mount namespace, in which the kernel locks all
 * of them; then the guest's limits; then the command, as its only child of note. From there on init
 * reaps, delivers signals and reports how the command ended. It has nothing that root inside would
 * gain by taking it over: the limits are its own as well.
 *
 * The command is a process group of its own and gets the terminal, as a job of a shell does. When
 * it stops, the parent is told and stops too, so that the shell outside takes over;
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
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "guest.h"
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
	if (failure != NULL)
		m.failure = *failure;
	(void)!send(socket, &m, sizeof(m), MSG_NOSIGNAL);
}

static void give_up(int socket, const struct failure *failure)
{
	report(socket, GUEST_FAILED, 0, failure);
	_exit(CLI_FAILED);
}

/* The kernel forgets this signal whenever ids or namespaces change, so it is asked for after each
 * such step. */
static void die_with_parent(int socket)
{
	struct pollfd parent = {.fd = socket};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	if (poll(&parent, 1, 0) == 1 && (parent.revents & (POLLHUP | POLLERR)) != 0)
		_exit(CLI_FAILED);
}

/* By name, so that it is the directory that is seen now and not one below a mount. Before the user
 * changes: like sudo(8) it may be one that the user could not enter. */
static void enter_directory(const struct guest_plan *plan)
{
	if (chdir(plan->directory) != 0 && chdir("/") != 0)
		_exit(CLI_FAILED);
}

static void enter_inner(const struct guest_plan *plan, int socket)
{
	struct failure failure = {""};
	int rc = 0;

	/* The mount namespace of before belongs to the outer user namespace: copied into a less
	 * privileged one, each of its mounts is locked in place (mount_namespaces(7)). */
	if (setns(plan->ns.ipc, CLONE_NEWIPC) != 0 || setns(plan->ns.user, CLONE_NEWUSER) != 0 ||
	        unshare(CLONE_NEWNS) != 0)
		rc = failure_set(&failure, -errno, "cannot enter the sandbox's namespaces");
	if (rc == 0 && (rc = jail_guest_seccomp()) != 0)
		failure_set(&failure, rc, "cannot load the sandbox's filter of system calls");
	if (rc == 0 && (rc = jail_guest_bound()) != 0)
		failure_set(&failure, rc, "cannot bound the sandbox's capabilities");
	if (rc != 0)
		give_up(socket, &failure);
	die_with_parent(socket);
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

/* execvp(3) says EACCES where one directory of PATH is closed to this user, also when the program
 * is in none: which of both it was decides between 126 and 127. */
static int search_error(const char *name, int error)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];
	struct stat st;

	if (error != EACCES || strchr(name, '/') != NULL || path == NULL)
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

/* The child that becomes the command. What fails is written to errors as an errno. */
static void become_command(const struct guest_plan *plan, int errors)
{
	int error;

	setpgid(0, 0);
	if (plan->foreground) /* SIGTTOU is blocked here */
		tcsetpgrp(plan->terminal, getpid());
	error = -become(plan->user);
	if (error == 0) {
		close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
		sigprocmask(SIG_SETMASK, &plan->signal_mask, NULL);
		environ = plan->env.vars;
		execvp(plan->command[0], plan->command);
		error = search_error(plan->command[0], errno);
	}
	(void)!write(errors, &error, sizeof(error));
	_exit(error == ENOENT ? CLI_NOT_FOUND : CLI_NOT_RUNNABLE);
}

static void start_command(struct init *init)
{
	int errors[2], error = 0;

	if (pipe2(errors, O_CLOEXEC) != 0 || (init->child = fork()) < 0) {
		struct failure failure = {""};

		failure_set(&failure, -errno, "cannot start the command's process");
		give_up(init->socket, &failure);
	}
	if (init->child == 0)
		become_command(init->plan, errors[1]);
	setpgid(init->child, init->child); /* whichever of the two is first */
	close(errors[1]);
	if (read(errors[0], &error, sizeof(error)) == sizeof(error)) {
		report(init->socket, GUEST_NOT_RUN, error, NULL);
		_exit(CLI_NOT_RUNNABLE);
	}
	close(errors[0]);
}

/* Every child that ended or stopped; orphans of the sandbox are ours as well and are only reaped.
 */
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
		report(init->socket, GUEST_EXITED, status, NULL);
		_exit(0); /* and the kernel ends what is left */
	}
}

static void obey(struct init *init)
{
	struct guest_message m;
	ssize_t n = recv(init->socket, &m, sizeof(m), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(CLI_FAILED); /* the parent is gone */
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

/* Keeps the terminal and the socket, whatever their numbers. */
static void close_others(const struct guest_plan *plan, int socket)
{
	int low = plan->terminal > 2 && plan->terminal < socket ? plan->terminal : socket;
	int high = plan->terminal > socket ? plan->terminal : socket;

	if (low > 3)
		close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0U, 0);
}

void guest_init(const struct guest_plan *plan, int socket)
{
	struct init init = {.plan = plan, .socket = socket};
	struct failure failure = {""};
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	die_with_parent(socket);
	if (guest_mounts(plan, &failure) != 0)
		give_up(socket, &failure);
	enter_directory(plan);
	enter_inner(plan, socket);
	close_others(plan, socket);
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
