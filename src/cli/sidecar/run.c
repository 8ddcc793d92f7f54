/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard sidecar run. The steps in order:
 *
 * - --init: the fence, the socket for copies of what it drops, then all rights are given up
 * - what can be seen without rights: the fence is in force, nobody can undo it
 * - the supervisor, as in `vethguard run` without root, in the namespace that is there
 * - the files for the sandbox's containers
 * - the wait for a signal: SIGHUP reloads the policy, as does a change of its files with --watch
 *
 * Whatever fails, this program ends, and with it the listeners: the fence then lets nobody out.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/run/summary.h"
#include "cli/sidecar/sidecar.h"
#include "vethguard/base/log.h"
#include "vethguard/fence/fence.h"

#define WITNESS_AGAIN_MS 5000

struct sidecar {
	struct sidecar_options options;
	struct privilege privilege;
	struct run_supervisor supervisor;
	struct message_run_ready ready;
	char name[MESSAGE_NAME_MAX + 1], audit_path[MESSAGE_PATH_MAX + 1];
	int signals, netns;
	bool stopped; /* ended by a signal, which is the regular end */
	struct sidecar_watch watch;
	struct failure failure;
};

/* Does the steps that need privileges; none is left afterwards. */
static int prepare_with_rights(struct sidecar *s)
{
	struct sidecar_options *o = &s->options;
	int rc = sidecar_place(true, &s->failure);

	if (rc == 0) {
		sidecar_own_cgroup(&o->fence);
		rc = sidecar_fence(o, false, &s->failure);
	}
	if (rc == 0 && !o->fence.cgroup)
		log_warn("the guard cannot be told apart by its cgroup here: whoever becomes user "
		         "%u gets out",
		        (unsigned)o->fence.uid);
	if (rc == 0) {
		rc = fence_nflog_open(o->fence.nflog_group);
		o->run.shared_packets = rc < 0 ? -1 : rc;
		rc = rc < 0 ? failure_set(&s->failure, rc, "copies of what the fence drops") : 0;
	}
	return rc ? rc : sidecar_become(o->fence.uid, &s->failure);
}

static int prepare(struct sidecar *s)
{
	struct sidecar_options *o = &s->options;
	int rc = o->init ? prepare_with_rights(s) : sidecar_place(false, &s->failure);

	if (rc == 0)
		rc = sidecar_check_rights(o->fence.cgroup != 0, &s->failure);
	if (rc == 0)
		rc = sidecar_witness(&o->fence, &s->failure);
	if (rc == 0)
		rc = sidecar_share_begin(o, &s->failure);
	return rc;
}

static int start_guard(struct sidecar *s)
{
	int rc = privilege_enter(&s->privilege, &s->failure);

	if (rc == 0)
		rc = run_supervisor_open(&s->supervisor, &s->privilege, &s->failure);
	if (rc != 0)
		return rc;
	sidecar_watch_begin(&s->watch);
	s->netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (s->netns < 0)
		return failure_set(&s->failure, -errno, "the network namespace");
	rc = run_supervisor_start(
	        &s->supervisor, &s->options.run, &s->privilege, s->netns, &s->ready, &s->failure);
	if (rc != 0)
		return rc;
	snprintf(s->name, sizeof(s->name), "%.*s", SLICE_ARG(s->ready.sandbox));
	snprintf(s->audit_path, sizeof(s->audit_path), "%.*s", SLICE_ARG(s->ready.audit_path));
	rc = sidecar_watch_take(&s->watch, &s->ready.watched, &s->failure);
	return rc != 0 ? rc : sidecar_share(&s->options, &s->ready, &s->failure);
}

static int watch_signals(struct sidecar *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, SIGPIPE);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? failure_set(&s->failure, -errno, "cannot watch signals") : 0;
}

/* In a container this is process 1, which must reap orphans of other processes. */
static void reap(const struct sidecar *s)
{
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
	        info.si_pid != s->supervisor.pid) {
		waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}

/* Returns false if the guard is gone. */
static bool reload(struct sidecar *s)
{
	int rc;

	sidecar_watch_begin(&s->watch);
	rc = run_supervisor_reload(
	        &s->supervisor, &s->options.run, &s->privilege, &s->ready, &s->failure);
	if (rc == 0 && sidecar_watch_take(&s->watch, &s->ready.watched, &s->failure) != 0)
		log_error("%s", s->failure.text); /* the files of the policy before stay watched */
	if (rc == 0 && sidecar_share(&s->options, &s->ready, &s->failure) != 0) {
		log_error("the policy is in force, but not its variables: %s", s->failure.text);
		return true;
	}
	if (rc == 0)
		log_info("%s: another policy is in force", s->name);
	if (rc <= 0)
		return rc == 0;
	log_error("the policy cannot be reloaded; the one before stays in force");
	if (!run_supervisor_print_refusal(&s->supervisor))
		log_error("%s", s->failure.text);
	return true;
}

/* Returns false if it is to end. */
static bool take_signal(struct sidecar *s)
{
	struct signalfd_siginfo info;

	while (!s->stopped && read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		s->stopped = info.ssi_signo != SIGHUP;
		if (info.ssi_signo == SIGHUP && !reload(s))
			return false;
	}
	return !s->stopped;
}

/* Returns false if it is to end, with a text unless it was stopped. */
static bool look_again(struct sidecar *s)
{
	reap(s);
	if (!sidecar_witness_again()) {
		failure_set(&s->failure, 0,
		        "the fence is not in force any more: somebody with CAP_NET_ADMIN has taken "
		        "it away. The guard ends");
		return false;
	}
	return !s->options.watch || !sidecar_watch_changed(&s->watch) || reload(s);
}

static void serve(struct sidecar *s)
{
	struct pollfd fds[] = {{.fd = s->supervisor.control, .events = POLLIN},
	        {.fd = s->signals, .events = POLLIN}};

	for (;;) {
		int n = poll(fds, 2, WITNESS_AGAIN_MS);

		if (n < 0 && errno != EINTR) {
			failure_set(&s->failure, -errno, "cannot wait");
			return;
		}
		if (n > 0 && fds[0].revents != 0) {
			run_supervisor_broken(&s->supervisor, &s->failure);
			return;
		}
		if (n > 0 && fds[1].revents != 0 && !take_signal(s))
			return;
		if (!look_again(s))
			return;
	}
}

static int end_run(struct sidecar *s)
{
	struct message_summary summary;
	struct failure failure = {""};

	if (run_supervisor_end(&s->supervisor, 0, &summary, &failure) != 0) {
		log_error("%s; the audit log may lack its end", failure.text);
		return CLI_FAILED;
	}
	if (isatty(STDERR_FILENO))
		summary_print(&summary, s->name, s->audit_path, stderr);
	return 0;
}

static int run(struct sidecar *s)
{
	int status = CLI_FAILED, rc = watch_signals(s);

	if (rc == 0)
		rc = prepare(s);
	if (rc == 0)
		rc = start_guard(s);
	if (rc == 0) {
		log_info("%s: the guard serves", s->name);
		serve(s);
	}
	sidecar_share_end(&s->options);
	if (s->stopped)
		status = end_run(s);
	else if (!run_supervisor_print_refusal(&s->supervisor))
		log_error("%s", s->failure.text);
	run_supervisor_close(&s->supervisor);
	return status;
}

int sidecar_run(int argc, char **argv)
{
	struct sidecar *s = calloc(1, sizeof(*s));
	int status = CLI_FAILED;

	(void)argc;
	if (!s)
		die(CLI_FAILED, "out of memory");
	s->supervisor = (struct run_supervisor){.pid = -1, .pidfd = -1, .control = -1};
	s->signals = s->netns = -1;
	if (sidecar_run_options(argv + 1, &s->options, &status) == 0) {
		log_open("vethguard", s->options.run.verbose > 1    ? LOG_LEVEL_DEBUG
		                      : s->options.run.verbose == 1 ? LOG_LEVEL_INFO
		                                                    : LOG_LEVEL_WARN);
		status = run(s);
	}
	sidecar_watch_end(&s->watch);
	if (s->signals >= 0)
		close(s->signals);
	if (s->netns >= 0)
		close(s->netns);
	if (s->options.run.shared_packets >= 0)
		close(s->options.run.shared_packets);
	free(s);
	return status;
}
