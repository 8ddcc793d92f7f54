/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguardd, the supervisor: the only program with privileges over the network, and the only one
 * that reads the operator's files. It makes the gates, starts the roles, hands each role exactly
 * what it needs, and handles their deaths. It reads no packet, no credential value and no audit
 * line.
 *
 * Order: options; dropping capabilities; loop and signals; keeper and recorder; the messages with
 * its worker; running the loop.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/base/options.h"
#include "vethguard/base/version.h"
#include "vethguard/ipc/journald.h"
#include "vethguard/jail/capabilities.h"
#include "supervisor/daemon/daemon.h"
#include "supervisor/run.h"

#define STATUS_FAILED 125
#define CAPABILITY(name) (1ull << (name))
/* Used by the supervisor itself: links, rules, transparent sockets, port 53 of a gate (NET_ADMIN,
 * NET_BIND_SERVICE), namespaces (SYS_ADMIN), other users' processes (KILL), the operator's files
 * (DAC_*), programs that stay in memory (IPC_LOCK). Used to start the roles, which drop all of
 * them: SYS_ADMIN, SYS_CHROOT, SET*, SYS_RESOURCE. */
#define CAPABILITIES_KEPT                                                                         \
	(CAPABILITY(CAP_NET_ADMIN) | CAPABILITY(CAP_NET_BIND_SERVICE) |                           \
	        CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_CHROOT) | CAPABILITY(CAP_SETUID) | \
	        CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_SETPCAP) | CAPABILITY(CAP_KILL) |         \
	        CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH) |                  \
	        CAPABILITY(CAP_SYS_RESOURCE) | CAPABILITY(CAP_IPC_LOCK))
/* The daemon's own: namespaces of processes it is asked to guard (SYS_PTRACE), the control socket's
 * group (CHOWN), one socket that hears of changes in all gates (NET_BROADCAST), priority
 * (SYS_NICE). */
#define CAPABILITIES_OF_DAEMON                                                                \
	(CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_NET_BROADCAST) | \
	        CAPABILITY(CAP_SYS_NICE))

static struct supervisor supervisor;
static struct run run;

static void on_terminate(struct loop_signal *s)
{
	(void)s;
	run_end(&run);
}

/* Drops all other capabilities. The process is also not dumpable: pipes with values of env: sources
 * pass through it, and /proc would open them to other processes of the same user. */
static void give_up(uint64_t kept)
{
	struct rlimit no_core = {0, 0};
	struct capabilities have;
	int rc = capabilities_bound(kept);

	if (!rc)
		rc = capabilities_get(&have);
	if (!rc) {
		have.effective &= kept;
		have.permitted &= kept;
		have.inheritable = 0;
		rc = capabilities_set(&have);
	}
	if (rc)
		die(STATUS_FAILED,
		        "cannot give up capabilities: %s (vethguardd needs root, in a user "
		        "namespace at least)",
		        strerror(-rc));
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
		die(STATUS_FAILED, "cannot refuse core dumps");
}

enum {
	OPTION_CONFIG,
	OPTION_STATE,
	OPTION_DATA,
	OPTION_SOCKET,
	OPTION_AUDIT,
	OPTION_CHECK,
	OPTION_VERBOSE,
	OPTION_RUN,
	OPTION_TAKE_OVER,
	OPTION_VERSION,
	OPTION_HELP
};

static const struct option_spec specs[] = {
        [OPTION_CONFIG] = {"config", 0, "FILE", "default: " DAEMON_CONFIG ", if it exists"},
        [OPTION_STATE] = {"state", 0, "DIR",
                "state that outlives the daemon; default:\n" DAEMON_STATE},
        [OPTION_DATA] = {"data", 0, "DIR", "the root CA; default: " DAEMON_DATA},
        [OPTION_SOCKET] = {"socket", 0, "PATH",
                "of the control API; default: " DAEMON_SOCKET "\nin the state directory"},
        [OPTION_AUDIT] = {"audit", 0, "FILE",
                "default: what the configuration says, else\n" DAEMON_AUDIT},
        [OPTION_CHECK] = {"check-config", 0, NULL, "check the configuration and exit"},
        [OPTION_VERBOSE] = {"verbose", 'v', NULL, "log what is done; twice: in detail"},
        [OPTION_RUN] = {"run", 0, NULL, "serve one `vethguard run`, on descriptor 3"},
        [OPTION_TAKE_OVER] = {"take-over", 0, "ID",
                "take over from the daemon on descriptor 3, which\nstarts it"},
        [OPTION_VERSION] = {"version", 0, NULL, "the version"},
        [OPTION_HELP] = {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

static void help(void)
{
	fputs("Usage: vethguardd [OPTIONS]\n"
	      "       vethguardd --run [-vv]\n\n"
	      "Guards sandboxes that others have made (`vethguard attach`), until SIGTERM. They\n"
	      "stay closed while it does not run. SIGHUP reads configuration and policies again,\n"
	      "SIGUSR2 hands everything over to the vethguardd that is installed now.\n\n",
	        stdout);
	options_print(specs, stdout);
	_exit(fflush(stdout) == 0 ? 0 : STATUS_FAILED);
}

static void version(void)
{
	puts("vethguardd " VERSION_TEXT);
	_exit(fflush(stdout) == 0 ? 0 : STATUS_FAILED);
}

static void take_option(int option, const char *value, struct daemon_options *o)
{
	if (option == OPTION_CONFIG)
		o->config = value;
	else if (option == OPTION_STATE)
		o->state = value;
	else if (option == OPTION_DATA)
		o->data = value;
	else if (option == OPTION_SOCKET)
		o->socket = value;
	else if (option == OPTION_AUDIT)
		o->audit = value;
	else if (option == OPTION_CHECK)
		o->check_config = true;
	else if (option == OPTION_VERBOSE)
		o->verbose++;
	else if (option == OPTION_TAKE_OVER)
		o->take_over = value;
	else if (option == OPTION_VERSION)
		version();
	else
		help();
}

/* Returns true for --run. */
static bool parse_options(int argc, char **argv, struct daemon_options *o)
{
	bool is_run = false;
	struct options options;
	int option;

	options_init(&options, "vethguardd", specs, argv + 1);
	while ((option = options_next(&options)) >= 0) {
		is_run |= option == OPTION_RUN;
		if (option != OPTION_RUN)
			take_option(option, options.value, o);
	}
	if (option == OPTIONS_WRONG)
		_exit(STATUS_FAILED);
	if (*options.argv)
		die(STATUS_FAILED,
		        "it takes no arguments besides options. See 'vethguardd --help'.");
	if (is_run && argc != 2 && !(argc == 3 && o->verbose > 1))
		die(STATUS_FAILED,
		        "--run takes no other option than -vv. See 'vethguardd --help'.");
	return is_run;
}

static void check_path(const char *name, const char *path)
{
	if (path && path[0] != '/')
		die(STATUS_FAILED, "--%s: the path has to be absolute", name);
}

static int run_daemon(const struct daemon_options *o)
{
	check_path("state", o->state);
	check_path("data", o->data);
	check_path("socket", o->socket);
	check_path("audit", o->audit);
	log_open("vethguardd", o->verbose > 1   ? LOG_LEVEL_DEBUG
	                       : o->verbose > 0 ? LOG_LEVEL_INFO
	                                        : LOG_LEVEL_WARN);
	if (!o->check_config) {
		journald_open(JOURNALD_SOCKET);
		give_up(CAPABILITIES_KEPT | CAPABILITIES_OF_DAEMON);
	}
	return daemon_run(o);
}

static void open_signals(struct loop *loop, struct loop_signal signals[1])
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* Ctrl-C is meant for the command */
	signal(SIGHUP, SIG_IGN); /* the run's socket tells of its end */
	if (loop_signal_open(loop, &signals[0], SIGTERM, on_terminate) != 0)
		die(STATUS_FAILED, "no memory");
}

int main(int argc, char **argv)
{
	struct loop_signal signals[1] = {{0}};
	struct daemon_options options = {0};
	const char *step;

	log_open("vethguardd", LOG_LEVEL_WARN);
	if (!parse_options(argc, argv, &options))
		return run_daemon(&options);
	if (options.verbose > 1) /* for the time before `vethguard run` sends its log level */
		log_open("vethguardd", LOG_LEVEL_DEBUG);
	if (fcntl(IPC_SUPERVISOR_FD, F_GETFD) < 0)
		die(STATUS_FAILED, "descriptor %d is closed: only `vethguard run` starts this",
		        IPC_SUPERVISOR_FD);
	give_up(CAPABILITIES_KEPT);
	struct loop *loop = loop_new();
	if (!loop)
		die(STATUS_FAILED, "no memory");
	open_signals(loop, signals);
	int rc = supervisor_start(&supervisor, loop, &step);
	if (rc)
		die(STATUS_FAILED, "cannot start %s: %s", step, strerror(-rc));
	rc = run_open(&run, &supervisor, IPC_SUPERVISOR_FD);
	if (rc)
		die(STATUS_FAILED, "cannot start the worker: %s", strerror(-rc));
	rc = loop_run(loop);
	run_close(&run);
	supervisor_fini(&supervisor);
	loop_signal_close(&signals[0]);
	loop_free(loop);
	return rc ? STATUS_FAILED : supervisor.status;
}
