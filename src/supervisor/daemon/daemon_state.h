/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_state: the daemon as its own files see it (daemon.c, directories.c, answer.c, signals.c,
 * upgrade.c, takeover.c). */
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
	uint64_t set; /* of recording files (events/generations.h) */
	int lock;
	struct unix_listener listener;
	struct control_owner control_owner;
	struct control *control;
	bool ready; /* all that was left is taken over, and the service manager was told */
	struct upgrade upgrade;
	struct takeover takeover;
};

/* directories.c: makes and opens them, and locks that of the state, or ends the program. */
void daemon_open_directories(struct daemon *d);
/* And the log, once recording goes on. */
void daemon_open_log(struct daemon *d);
/* daemon.c: finds and serves what a daemon before this one has left, or gives. */
void daemon_serve(struct daemon *d);
/* Ends it orderly; the loop ends when everything has. Once more is harmless. status: the program's,
 * where it has none yet. */
void daemon_stop(struct daemon *d, int status);
/* Its sandboxes are all given up. */
void daemon_finish_when_alone(struct daemon *d);
/* answer.c: takes the control socket that the service manager has passed, if any, or ends the
 * program. Before any descriptor is opened, or any process started that would find in its
 * environment what was meant for this one. */
void daemon_take_passed_socket(struct daemon *d);
/* Answers the control API, and once everything is taken over, says so to the service manager. */
void daemon_answer(struct daemon *d);
void daemon_tell_ready(struct daemon *d);
/* signals.c: 0 or -errno. */
int daemon_open_signals(struct daemon *d);
void daemon_close_signals(struct daemon *d);

#endif
