/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every child is in one list from its start until it is reaped, whether or not anything still waits
 * for it. A pidfd reports its end; a killed child whose request is at the server of a hung file
 * system ends when that server answers or goes away.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/base/process.h"
#include "supervisor/os/helper_child.h"

#define REPORT_FD 3
#define OUTPUT_FD 4
#define FIRST_OTHER_FD 5

struct helper_child {
	struct helper_child *next;
	struct loop *loop;
	pid_t pid;
	int pidfd, report;
	uid_t uid;
	struct loop_io exit;
	struct loop_timer timer;
	/* NULL: left behind. */
	void (*done)(void *context, const struct helper_child_result *result);
	void *context;
};

static struct helper_child *helpers;

/* The child. */

/* A child that hangs for ever keeps its descriptors open: it must hold none of the daemon's, whose
 * lock and sockets others may take over. */
static bool keep_only(int report, int output)
{
	int high = fcntl(report, F_DUPFD, FIRST_OTHER_FD);
	int higher = output < 0 ? -1 : fcntl(output, F_DUPFD, FIRST_OTHER_FD);

	if (high < 0 || dup2(high, REPORT_FD) < 0 ||
	        (output >= 0 && (higher < 0 || dup2(higher, OUTPUT_FD) < 0)))
		return false;
	if (output < 0)
		close(OUTPUT_FD);
	return close_range(FIRST_OTHER_FD, ~0u, 0) == 0;
}

_Noreturn static void child(const struct helper_child_plan *plan, int report, pid_t parent)
{
	struct rlimit no_core = {0, 0},
	              time = {(rlim_t)plan->ms / 1000 + 1, (rlim_t)plan->ms / 1000 + 1};

	if (!keep_only(report, plan->output))
		_exit(127);
	process_reset_signals();
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_CPU, &time);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(127);
	_exit(plan->run(plan->context, REPORT_FD, plan->output < 0 ? -1 : OUTPUT_FD));
}

/* The parent. */

static void take_out(struct helper_child *e)
{
	struct helper_child **at = &helpers;

	while (*at && *at != e)
		at = &(*at)->next;
	if (*at)
		*at = e->next;
}

static void helper_child_free(struct helper_child *e)
{
	take_out(e);
	loop_io_close(&e->exit);
	loop_timer_close(&e->timer);
	if (e->pidfd >= 0)
		close(e->pidfd);
	if (e->report >= 0)
		close(e->report);
	free(e);
}

static void tell(struct helper_child *e, bool late, int status)
{
	void (*done)(void *context, const struct helper_child_result *result) = e->done;
	const struct helper_child_result result = {late, status, e->report};

	e->done = NULL;
	if (!done)
		return;
	lseek(e->report, 0, SEEK_SET);
	done(e->context, &result);
}

static void on_exit_ready(struct loop_io *io, unsigned events)
{
	struct helper_child *e = container_of(io, struct helper_child, exit);
	siginfo_t end = {0};

	(void)events;
	if (waitid(P_PIDFD, (id_t)e->pidfd, &end, WEXITED | WNOHANG) == 0 && end.si_pid == 0)
		return;
	loop_io_close(io);
	loop_timer_cancel(&e->timer);
	tell(e, false, end.si_code == CLD_EXITED ? end.si_status : -1);
	helper_child_free(e);
}

static void on_late(struct loop_timer *timer)
{
	struct helper_child *e = container_of(timer, struct helper_child, timer);

	pidfd_send_signal(e->pidfd, SIGKILL, NULL, 0);
	tell(e, true, -1);
}

bool helper_child_has_room(uid_t uid)
{
	size_t count = 0, of_one = 0;

	for (const struct helper_child *e = helpers; e; e = e->next) {
		count += e->uid != HELPER_CHILD_NOBODY;
		of_one += e->uid == uid;
	}
	return count < HELPER_CHILDREN_MAX && of_one < HELPER_CHILDREN_OF_ONE_MAX;
}

static struct helper_child *helper_child_new(struct loop *loop, uid_t uid)
{
	struct helper_child *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct helper_child){
	        .next = helpers, .loop = loop, .pidfd = -1, .report = -1, .uid = uid};
	helpers = e;
	return e;
}

static int launch(struct helper_child *e, const struct helper_child_plan *plan)
{
	pid_t parent = getpid();
	int rc;

	e->report = memfd_create("vethguard-helper", MFD_CLOEXEC);
	if (e->report < 0)
		return -errno;
	rc = loop_timer_open(e->loop, &e->timer, on_late);
	if (rc)
		return rc;
	e->pid = fork();
	if (e->pid == 0)
		child(plan, e->report, parent);
	if (e->pid < 0)
		return -errno;
	e->pidfd = pidfd_open(e->pid, 0);
	rc = e->pidfd < 0 ? -errno : 0;
	if (!rc)
		rc = loop_io_open_level(e->loop, &e->exit, e->pidfd, LOOP_READ, on_exit_ready);
	if (rc) { /* a child that hangs already stays a zombie: nothing can wait for it */
		kill(e->pid, SIGKILL);
		waitpid(e->pid, NULL, WNOHANG);
	}
	return rc;
}

int helper_child_start(struct loop *loop, const struct helper_child_plan *plan,
        void (*done)(void *context, const struct helper_child_result *result), void *context,
        struct helper_child **out)
{
	struct helper_child *e;
	int rc;

	if (!helper_child_has_room(plan->uid))
		return -EAGAIN;
	e = helper_child_new(loop, plan->uid);
	if (!e)
		return -ENOMEM;
	e->done = done;
	e->context = context;
	rc = launch(e, plan);
	if (rc) {
		helper_child_free(e);
		return rc;
	}
	loop_timer_set(&e->timer, plan->ms);
	*out = e;
	return 0;
}

void helper_child_cancel(struct helper_child *e)
{
	if (!e)
		return;
	e->done = NULL;
	loop_timer_cancel(&e->timer);
	pidfd_send_signal(e->pidfd, SIGKILL, NULL, 0);
}

void helper_child_leave(struct loop *loop, pid_t pid, int pidfd, uid_t uid)
{
	struct helper_child *e = helper_child_new(loop, uid);

	if (e) {
		e->pid = pid;
		e->pidfd = pidfd;
		if (loop_io_open_level(loop, &e->exit, pidfd, LOOP_READ, on_exit_ready) == 0)
			return;
		helper_child_free(e);
	} else {
		close(pidfd);
	}
	log_warn("no memory to wait for the end of process %d", (int)pid);
}

void helper_child_close_all(struct loop *loop)
{
	struct helper_child *e = helpers, *next;

	for (; e; e = next) {
		next = e->next;
		if (e->loop == loop)
			helper_child_free(e);
	}
}
