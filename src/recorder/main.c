/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-recorder: writes the audit log. It reads what workers, which an attacker may control,
 * put into their rings, and copies of packets that the fence dropped. It can append to one file
 * that was opened for it, and nothing else: no privilege, no file system, no connection, a short
 * list of system calls.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/jail/jail.h"

#include "recorder/recorder.h"

#define EXIT_FAILED 125

static void must(const char *what, int rc)
{
	if (rc != 0)
		die(EXIT_FAILED, "%s: %s", what, strerror(-rc));
}

/* The supervisor decides when to end: a Ctrl-C for the command, or a stop of the whole session,
 * must not cost the last lines. A write beyond the file size limit is an error like others. */
static void ignore_signals(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGTSTP};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_IGN);
}

static void enter_jail(struct jail_ids ids)
{
	int rc;

	must("cannot get an empty root", jail_empty_root());
	must("cannot drop privileges", jail_drop(ids));
	/* Unlike the other roles, it is not killed with the supervisor: what is in the rings is
	 * still to be written. The end of the control socket ends this program; the signal makes
	 * sure that it is awake to notice. */
	must("cannot outlive the supervisor", prctl(PR_SET_PDEATHSIG, SIGCONT) != 0 ? -errno : 0);
	rc = jail_landlock(NULL, 0, false);
	if (rc != -EOPNOTSUPP)
		must("cannot use Landlock", rc);
	must("cannot filter system calls", jail_seccomp(JAIL_RECORDER, false));
}

static void serve(struct recorder *recorder, uint64_t start_id)
{
	must("no timers", batch_writer_open(recorder));
	must("no supervisor", control_open(recorder, IPC_SUPERVISOR_FD, start_id));
	must("the loop does not run", loop_run(recorder->loop));
}

static void close_all(struct recorder *recorder)
{
	while (recorder->streams)
		stream_close(recorder->streams);
	ipc_peer_close(&recorder->supervisor);
	batch_writer_close(recorder);
	log_file_close(&recorder->log);
	journal_close(&recorder->journal);
	buf_fini(&recorder->checkpoint.inherited);
	loop_free(recorder->loop);
}

/* The programs that record something have more urgent work and should not be interrupted by the one
 * that writes it down: sched(7), SCHED_BATCH. */
static void wait_for_a_turn(void)
{
	const struct sched_param none = {0};

	if (sched_setscheduler(0, SCHED_BATCH, &none) < 0)
		log_debug("no batch scheduling: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct jail_ids ids;
	uint64_t start_id;
	int status;

	log_open_role("vethguard-recorder", argc, argv, EXIT_FAILED);
	jail_start(IPC_SUPERVISOR_FD + 1);
	ignore_signals();
	wait_for_a_turn();
	if (!recorder)
		die(EXIT_FAILED, "no memory");
	must("no guard of shared memory", ring_guard());
	must("no first message of the supervisor",
	        control_receive_start(recorder, IPC_SUPERVISOR_FD, &start_id));
	recorder->loop = loop_new();
	if (!recorder->loop)
		die(EXIT_FAILED, "no memory");
	ids = jail_role_ids(JAIL_RECORDER, (uint32_t)getpid());
	enter_jail(ids);
	serve(recorder, start_id);
	status = recorder->status;
	close_all(recorder);
	free(recorder);
	return status;
}
