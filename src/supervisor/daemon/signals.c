/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's signals: SIGTERM and SIGINT end it, SIGHUP reloads everything and reopens the audit
 * log, SIGUSR2 hands over to the installed vethguardd.
 */
#include <signal.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/service.h"
#include "supervisor/daemon/daemon_state.h"

static void terminate(struct daemon *d)
{
	if (upgrade_stop(d))
		return;
	log_info("stopping: sandboxes stay closed until the next start");
	takeover_stop(d);
	daemon_stop(d, 0);
}

static void on_terminate(struct loop_signal *s)
{
	terminate(container_of(s, struct daemon, terminate));
}

static void on_interrupt(struct loop_signal *s)
{
	terminate(container_of(s, struct daemon, interrupt));
}

/* A reload by signal has no caller who could read the warnings in an answer. */
static void warn_of_policies(const char *lines)
{
	while (lines && *lines) {
		size_t n = strcspn(lines, "\n");

		log_warn("%.*s", (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

static void on_reloaded(void *context, const struct attach_result *result)
{
	struct daemon *d = context;

	if (result->status != ATTACH_OK)
		log_error("not all was reloaded: %s", result->text);
	warn_of_policies(result->warnings);
	daemon_tell_ready(d);
}

static void on_hangup(struct loop_signal *s)
{
	struct daemon *d = container_of(s, struct daemon, hangup);

	/* The audit log may have been rotated. */
	recording_reopen(&d->supervisor, false);
	if (!takeover_is_active(&d->takeover))
		takeover_reopen(d); /* each former daemon passes it on to the one before it */
	if (d->upgrade.state == UPGRADE_GIVEN)
		return; /* the rest is for the daemon that took over */
	if (d->attachments.recovering && !d->ready)
		return; /* everything is being read at this moment */
	if (d->attachments.held || d->attachments.recovering || takeover_is_active(&d->takeover)) {
		log_warn("an upgrade is under way: nothing else is read again");
		return;
	}
	service_reloading();
	attachments_reload_all(&d->attachments, on_reloaded, d);
}

static void on_upgraded(void *context, const char *error, pid_t pid)
{
	(void)context;
	(void)error; /* upgrade.c has logged it already */
	(void)pid;
}

static void on_replace(struct loop_signal *s)
{
	upgrade_begin(container_of(s, struct daemon, replace), on_upgraded, NULL);
}

int daemon_open_signals(struct daemon *d)
{
	signal(SIGPIPE, SIG_IGN);
	int rc = loop_signal_open(d->loop, &d->terminate, SIGTERM, on_terminate);
	if (!rc)
		rc = loop_signal_open(d->loop, &d->interrupt, SIGINT, on_interrupt);
	if (!rc)
		rc = loop_signal_open(d->loop, &d->hangup, SIGHUP, on_hangup);
	if (!rc)
		rc = loop_signal_open(d->loop, &d->replace, SIGUSR2, on_replace);
	return rc;
}

void daemon_close_signals(struct daemon *d)
{
	loop_signal_close(&d->terminate);
	loop_signal_close(&d->interrupt);
	loop_signal_close(&d->hangup);
	loop_signal_close(&d->replace);
}
