/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function in a forked child and tells how the child ended: a jailed process cannot undo
 * what it does to itself. */
#ifndef VETHGUARD_TESTS_UNIT_JAIL_JAIL_CHILD_H
#define VETHGUARD_TESTS_UNIT_JAIL_JAIL_CHILD_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN_CHILD_SECONDS 120

/* The wait status of a child that ran what(context) and left with its result, or was ended by
 * SIGALRM when that took far too long. */
static inline int in_child(int (*what)(void *context), void *context)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(IN_CHILD_SECONDS);
		_exit(what(context));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static inline int died_by(int status, int signal)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

static inline int left_with(int status, int code)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

#endif
