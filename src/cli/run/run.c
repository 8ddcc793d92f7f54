/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard run. The steps in order:
 *
 * - privilege: which user this is
 * - the sandbox's namespaces
 * - the supervisor, which connects and guards the network namespace
 * - the command under its init
 * - the wait, with signals and the terminal passed through
 * - the numbers at the end
 *
 * Whatever fails, the sandbox ends first and the supervisor after it, so the command never runs
 * without its guard.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/doctor/doctor.h"
#include "cli/run/env.h"
#include "cli/guest/guest.h"
#include "cli/run/supervisor.h"
#include "cli/run/summary.h"
#include "cli/run/terminal.h"
#include "vethguard/base/log.h"

struct run {
	struct run_options options;
	struct privilege privilege;
	struct run_user user;
	struct guest_plan plan;
	struct run_supervisor supervisor;
	struct guest guest;
	struct terminal terminal;
	struct message_run_ready ready;
	char sandbox_name[POLICY_NAME_MAX + 1];
	char audit_path[PATH_MAX];
	int signals; /* signalfd */
	int status;  /* the future exit status */
	bool ended;  /* the command has ended by itself */
	struct failure failure;
};

static const int forwarded[] = {
        SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

static int prepare(struct run *r)
{
	int rc = privilege_enter(&r->privilege, &r->failure);

	if (rc == 0)
		rc = run_user_find(r->options.user, &r->privilege, &r->user, &r->failure);
	if (rc == 0)
		rc = namespaces_make(&r->privilege, &r->user, &r->plan.ns, &r->failure);
	if (rc == 0)
		rc = run_supervisor_open(&r->supervisor, &r->privilege, &r->failure);
	if (rc == 0)
		rc = run_supervisor_start(&r->supervisor, &r->options, &r->privilege,
		        r->plan.ns.net, &r->ready, &r->failure);
	return rc;
}

static void watch_signals(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	sigaddset(&set, SIGTTOU); /* taking the terminal back from the background */
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, &r->plan.signal_mask);
}

static int start_command(struct run *r)
{
	struct guest_plan *plan = &r->plan;
	int rc;

	rc = run_env_build(
	        &plan->env, &r->options, &r->privilege, &r->user, &r->supervisor, &r->ready);
	if (rc != 0)
		return failure_set(&r->failure, rc, "the command's environment");
	plan->command = r->options.command;
	plan->user = &r->user;
	plan->rootless = r->privilege.rootless;
	plan->root_pem = r->ready.root_pem;
	plan->file_count = r->ready.file_count;
	plan->files = r->ready.files;
	plan->device_count = r->options.device_count;
	plan->devices = r->options.devices;
	plan->gate4 = r->ready.gate4;
	plan->gate6 = r->ready.gate6;
	if (!getcwd(plan->directory, sizeof(plan->directory)))
		return failure_set(&r->failure, -errno, "the working directory");
	terminal_open(&r->terminal);
	plan->terminal = r->terminal.fd;
	plan->foreground = r->terminal.owned;
	watch_signals(r);
	if (r->signals < 0)
		return failure_set(&r->failure, -errno, "cannot watch signals");
	snprintf(r->sandbox_name, sizeof(r->sandbox_name), "%.*s", SLICE_ARG(r->ready.sandbox));
	snprintf(r->audit_path, sizeof(r->audit_path), "%.*s", SLICE_ARG(r->ready.audit_path));
	log_info("sandbox %s is guarded; starting %s", r->sandbox_name, r->options.command[0]);
	rc = guest_start(&r->guest, plan, &r->failure);
	namespaces_close(&plan->ns);
	return rc;
}

/* The command stopped. Under a shell vethguard stops too, and the shell takes over until it
 * continues vethguard. */
static void command_stopped(struct run *r, int signal)
{
	if ((signal == SIGTTIN || signal == SIGTTOU) && terminal_is_ours(&r->terminal)) {
		/* The command was started in the background, came to the foreground and now asks
		 * for the terminal. */
		r->terminal.owned = true;
		guest_send(&r->guest, GUEST_CONTINUE, 1);
		return;
	}
	terminal_take(&r->terminal);
	kill(0, SIGTSTP); /* ignored if no shell would continue us (orphaned process group) */
}

static void not_run(struct run *r, int error)
{
	char name[256];

	slice_escape(slice_from_string(r->options.command[0]), name, sizeof(name));
	failure_set(&r->failure, error, "cannot run %s", name);
	log_error("%s", r->failure.text);
	r->status = error == ENOENT ? CLI_NOT_FOUND : CLI_NOT_RUNNABLE;
	r->ended = true;
}

/* Returns false if the command is over. */
static bool hear_sandbox(struct run *r)
{
	struct guest_message m;

	if (guest_receive(&r->guest, &m) != 0) {
		/* Init was killed from outside, and the kernel killed everything else in the
		 * sandbox. */
		log_error("the sandbox was killed");
		r->status = 128 + SIGKILL;
		r->ended = true;
		return false;
	}
	switch (m.kind) {
	case GUEST_FAILED:
		r->failure = m.failure;
		return false;
	case GUEST_NOT_RUN:
		not_run(r, m.value);
		return false;
	case GUEST_STOPPED:
		command_stopped(r, m.value);
		return true;
	case GUEST_EXITED:
		r->status = WIFSIGNALED(m.value) ? 128 + WTERMSIG(m.value) : WEXITSTATUS(m.value);
		r->ended = true;
		return false;
	default:
		return true;
	}
}

static void hear_signal(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCONT)
			guest_send(&r->guest, GUEST_CONTINUE, terminal_is_ours(&r->terminal));
		else
			guest_send(&r->guest, GUEST_SIGNAL, (int)info.ssi_signo);
	}
}

/* Waits until the command or its guard is over. */
static void wait_for_end(struct run *r)
{
	struct pollfd fds[3] = {{.fd = r->guest.socket, .events = POLLIN},
	        {.fd = r->signals, .events = POLLIN},
	        {.fd = r->supervisor.control, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR) {
			failure_set(&r->failure, -errno, "cannot wait for the command");
			return;
		}
		if (fds[2].revents != 0) {
			guest_kill(&r->guest);
			run_supervisor_broken(&r->supervisor, &r->failure);
			return;
		}
		if (fds[1].revents != 0)
			hear_signal(r);
		if (fds[0].revents != 0 && !hear_sandbox(r))
			return;
	}
}

static void end_run(struct run *r)
{
	struct message_summary summary;
	struct failure failure = {""};

	if (run_supervisor_end(&r->supervisor, r->status, &summary, &failure) != 0) {
		log_error("%s; the audit log may lack its end", failure.text);
		r->status = CLI_FAILED;
		return;
	}
	if (isatty(STDERR_FILENO))
		summary_print(&summary, r->sandbox_name, r->audit_path, stderr);
}

/* Roles that cannot lock their memory report only that there is no memory. */
static void tell_failure(struct run *r)
{
	struct rlimit memory;

	if (!run_supervisor_print_refusal(&r->supervisor))
		log_error("%s", r->failure.text);
	if (getrlimit(RLIMIT_MEMLOCK, &memory) == 0 && memory.rlim_cur < DOCTOR_MEMLOCK_LEAST)
		log_error("only %llu KiB of memory may be locked: " DOCTOR_MEMLOCK_REMEDY,
		        (unsigned long long)(memory.rlim_cur / 1024));
}

int cli_run(int argc, char **argv)
{
	struct run *r = calloc(1, sizeof(*r));
	int status = CLI_FAILED, rc;

	(void)argc;
	if (!r)
		die(CLI_FAILED, "out of memory");
	r->supervisor = (struct run_supervisor){.pid = -1, .pidfd = -1, .control = -1};
	r->plan.ns = (struct namespaces){-1, -1, -1};
	r->guest = (struct guest){-1, -1, -1};
	r->terminal.fd = r->signals = -1;
	if (run_options_parse(argv + 1, &r->options, &status) != 0) {
		free(r);
		return status;
	}
	log_open("vethguard", r->options.verbose > 1    ? LOG_LEVEL_DEBUG
	                      : r->options.verbose == 1 ? LOG_LEVEL_INFO
	                                                : LOG_LEVEL_WARN);
	r->status = CLI_FAILED;
	rc = prepare(r);
	if (rc == 0)
		rc = start_command(r);
	if (rc == 0)
		wait_for_end(r);
	guest_kill(&r->guest);
	terminal_take(&r->terminal);
	if (r->ended)
		end_run(r);
	else
		tell_failure(r);
	run_supervisor_close(&r->supervisor);
	namespaces_close(&r->plan.ns);
	environment_fini(&r->plan.env);
	terminal_close(&r->terminal);
	if (r->signals >= 0)
		close(r->signals);
	status = r->status;
	free(r);
	return status;
}
