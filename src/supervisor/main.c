/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguardd, the supervisor: the only program with privileges over the network, and the only one
 * that reads what the operator wrote. It makes the gates, starts the roles, hands each of them
 * exactly what it needs, and is there when one of them dies. It reads no packet, no credential
 * value and no audit line.
 *
 * Order: options; what it gives up itself; loop and signals; keeper and recorder; the session with
 * its worker; loop.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/jail/capabilities.h"
#include "supervisor/session.h"

#define STATUS_FAILED 125
#define CAPABILITY(name) (1ull << (name))
/* Of its own: links, rules, transparent sockets, port 53 of a gate (NET_ADMIN, NET_BIND_SERVICE),
 * namespaces (SYS_ADMIN), other users' processes (KILL), the operator's files (DAC). For the roles,
 * which give all of it up: SYS_ADMIN, SYS_CHROOT, SET*, SYS_RESOURCE. */
#define CAPABILITIES_KEPT                                                                         \
	(CAPABILITY(CAP_NET_ADMIN) | CAPABILITY(CAP_NET_BIND_SERVICE) |                           \
	        CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_CHROOT) | CAPABILITY(CAP_SETUID) | \
	        CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_SETPCAP) | CAPABILITY(CAP_KILL) |         \
	        CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH) |                  \
	        CAPABILITY(CAP_SYS_RESOURCE) | CAPABILITY(CAP_IPC_LOCK))

static struct supervisor supervisor;
static struct session session;

static void on_terminate(struct loop_signal *s)
{
	(void)s;
	session_end(&session);
}

/* Not dumpable: pipes that hold values of env: sources pass through this process, and /proc would
 * open them to others of the same user. */
static void give_up(void)
{
	struct rlimit no_core = {0, 0};
	struct capabilities have;
	int error = capabilities_bound(CAPABILITIES_KEPT);

	if (!error)
		error = capabilities_get(&have);
	if (!error) {
		have.effective &= CAPABILITIES_KEPT;
		have.permitted &= CAPABILITIES_KEPT;
		have.inheritable = 0;
		error = capabilities_set(&have);
	}
	if (error)
		die(STATUS_FAILED,
		        "cannot give up capabilities: %s (vethguardd needs root, in a user "
		        "namespace at "
		        "least)",
		        strerror(-error));
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
		die(STATUS_FAILED, "cannot refuse core dumps");
}

static void usage(FILE *out)
{
	fputs("usage: vethguardd --session\n"
	      "\n"
	      "The supervisor of vethguard. It is started by `vethguard run`, on descriptor 3 of "
	      "which it serves one\n"
	      "session; started by hand it does nothing useful.\n"
	      "\n"
	      "  --session   serve the session on descriptor 3\n"
	      "  --help      this text\n",
	        out);
}

static void parse_options(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		usage(stdout);
		_exit(fflush(stdout) == 0 ? 0 : STATUS_FAILED);
	}
	if (argc != 2 || strcmp(argv[1], "--session") != 0) {
		usage(stderr);
		_exit(STATUS_FAILED);
	}
	if (fcntl(IPC_SUPERVISOR_FD, F_GETFD) < 0)
		die(STATUS_FAILED,
		        "no session on descriptor %d: vethguardd is started by `vethguard run`",
		        IPC_SUPERVISOR_FD);
}

static void open_signals(struct loop *loop, struct loop_signal signals[1])
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* Ctrl-C is meant for the command */
	signal(SIGHUP, SIG_IGN); /* the session's socket tells of its end */
	if (loop_signal_open(loop, &signals[0], SIGTERM, on_terminate) != 0)
		die(STATUS_FAILED, "no memory");
}

int main(int argc, char **argv)
{
	struct loop_signal signals[1] = {{0}};
	const char *step;

	log_open("vethguardd", LOG_LEVEL_WARN);
	parse_options(argc, argv);
	give_up();
	struct loop *loop = loop_new();
	if (!loop)
		die(STATUS_FAILED, "no memory");
	open_signals(loop, signals);
	int error = supervisor_start(&supervisor, loop, &step);
	if (error)
		die(STATUS_FAILED, "cannot start %s: %s", step, strerror(-error));
	error = session_open(&session, &supervisor, IPC_SUPERVISOR_FD);
	if (error)
		die(STATUS_FAILED, "cannot start the worker: %s", strerror(-error));
	error = loop_run(loop);
	session_close(&session);
	supervisor_fini(&supervisor);
	loop_signal_close(&signals[0]);
	loop_free(loop);
	return error ? STATUS_FAILED : supervisor.status;
}
