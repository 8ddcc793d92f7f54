/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_state: the daemon's state, shared by the files of this folder. */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_DAEMON_STATE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_DAEMON_STATE_H

#include "supervisor/attach/attachment.h"
#include "supervisor/control/control.h"
#include "supervisor/daemon/daemon.h"
#include "supervisor/daemon/upgrade.h"
#include "supervisor/os/priority.h"

#define STATUS_FAILED 125

struct daemon {
	struct supervisor supervisor;
	struct attachments attachments;
	struct loop *loop;
	struct loop_signal terminate, interrupt, hangup, replace;
	struct loop_timer watchdog;
	struct priority priority;
	bool watch_policies;
	const struct daemon_options *options;
	const char *state, *data;
	int state_directory;
	int leases;   /* directory of the leases' files; owned by the supervisor once it has started
	               */
	uint64_t set; /* number of its recording set (events/generations.h) */
	int lock;
	struct unix_listener listener;
	struct control_owner control_owner;
	struct control *control;
	bool ready; /* everything is recovered and the service manager was told */
	struct upgrade upgrade;
	struct takeover takeover;
};

/* directories.c: makes and opens the directories and locks the state directory; ends the program on
 * failure. */
void daemon_open_directories(struct daemon *d);
/* Opens the audit log, once recording goes on. */
void daemon_open_log(struct daemon *d);
/* daemon.c: finds and serves what an earlier daemon has left or hands over. */
void daemon_serve(struct daemon *d);
/* Ends the daemon in order; the loop ends when everything has ended. May be called again. status:
 * the exit status, unless one is set already. */
void daemon_stop(struct daemon *d, int status);
/* Finishes when all sandboxes are given up. */
void daemon_finish_when_alone(struct daemon *d);
/* answer.c: takes the control socket that the service manager has passed, if any; ends the program
 * on failure. Call this before any descriptor is opened and before any process is started that
 * could inherit the environment variables meant for this one. */
void daemon_take_passed_socket(struct daemon *d);
/* Answers the control API, and once everything is recovered, tells the service manager. */
void daemon_answer(struct daemon *d);
void daemon_tell_ready(struct daemon *d);
/* signals.c. Returns 0 or -errno. */
int daemon_open_signals(struct daemon *d);
void daemon_close_signals(struct daemon *d);

#endif
