/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first stage: what a role can give up without any privilege, before it has read anything. It
 * also reads what later stages can no longer see (the id map under /proc, the time zone file),
 * because the root is empty by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "jail/jail_state.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"

#define JAIL_FAILED 125
#define JAIL_CONTROL_FD 3

static void jail_die_with_parent(void)
{
	struct pollfd control = {.fd = JAIL_CONTROL_FD, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		die(JAIL_FAILED, "cannot tie this process to its parent: %s", strerror(errno));
	/* a parent that died before the call above sends no signal any more; its end of the control
	 * pair shows it */
	if (poll(&control, 1, 0) == 1 && (control.revents & POLLHUP) != 0)
		_exit(JAIL_FAILED);
}

static void jail_null_stdin(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (fd != STDIN_FILENO && dup2(fd, STDIN_FILENO) < 0))
		die(JAIL_FAILED, "cannot open /dev/null: %s", strerror(errno));
	if (fd == STDIN_FILENO)
		fcntl(fd, F_SETFD, 0);
	else
		close(fd);
}

/* The supervisor bounds its own turns at real-time priority by a signal (priority.h). It watches
 * the roles that it lends that priority itself, so the limit is lifted here. */
static void jail_forget_turns(void)
{
	struct rlimit turn;

	if (getrlimit(RLIMIT_RTTIME, &turn) < 0)
		return;
	turn.rlim_cur = turn.rlim_max;
	setrlimit(RLIMIT_RTTIME, &turn);
}

void jail_start(int keep_fds_below)
{
	struct rlimit none = {0, 0};

	if (prctl(PR_SET_DUMPABLE, 0) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
		die(JAIL_FAILED, "cannot refuse core dumps: %s", strerror(errno));
	/* before Linux 6.14 a program executed through a descriptor is named after the descriptor's
	 * number */
	prctl(PR_SET_NAME, program_invocation_short_name);
	jail_die_with_parent();
	jail_forget_turns();
	jail_null_stdin();
	umask(077);
	if (close_range((unsigned)keep_fds_below, ~0U, 0) != 0)
		die(JAIL_FAILED, "cannot close inherited descriptors: %s", strerror(errno));
	clearenv();
	tzset(); /* reads the zone file once, while it can be opened */
	jail_state_read_ids();
	jail_read_filters();
	jail_state.started = true;
}
