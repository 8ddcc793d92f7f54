/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log itself, which may change while it is written: whoever rotates it moves the file away, and
 * the recorder goes on in another one under the same path. The daemon is told by SIGHUP. A run is
 * told by nobody: its recorder finds the line with which the daemon's has ended the file, and asks.
 * So does that of a daemon which only finishes what it has, should it be told late. The path is
 * opened with the same rights as at the start.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/journal.h"
#include "supervisor/audit_file.h"
#include "supervisor/supervisor.h"

#define START_FDS 3
#define REOPEN_FDS 2

static uint8_t buffer[MESSAGE_BYTES_MAX];

int recording_say_start(struct supervisor *sv)
{
	const struct recording *r = &sv->recording;
	const int fds[START_FDS] = {r->log, r->reader, r->journal};
	struct message_recorder_start m = {slice_from_string(r->path), (uint8_t)log_level()};

	return recording_say(sv, buffer,
	        message_recorder_start_encode(
	                buffer, sizeof buffer, MESSAGE_RECORDER_START, supervisor_next_id(sv), &m),
	        fds, START_FDS);
}

int recording_start(struct supervisor *sv, const char *path, int log, const struct identity *opener)
{
	struct recording *r = &sv->recording;
	int error;

	r->log = log;
	r->reader = audit_file_reader(log);
	if (r->reader >= 0 && !r->kept)
		r->journal = journal_create();
	error = r->reader < 0 ? r->reader : r->journal < 0 ? r->journal : 0;
	if (!error && opener)
		error = identity_copy(&r->opener, opener);
	if (error) {
		if (r->reader >= 0)
			close(r->reader);
		close(log);
		return error;
	}
	r->opened_as_user = opener != NULL;
	snprintf(r->path, sizeof r->path, "%s", path);
	sv->log_given = true;
	return recording_say_start(sv);
}

int recording_say_reopen(struct supervisor *sv)
{
	const struct recording *r = &sv->recording;
	const int fds[REOPEN_FDS] = {r->next_log, r->next_reader};

	return recording_say(sv, buffer,
	        message_empty(buffer, sizeof buffer, MESSAGE_RECORDER_REOPEN, r->reopen_request),
	        fds, REOPEN_FDS);
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Takes log. */
static int go_on_in(struct supervisor *sv, int log)
{
	struct recording *r = &sv->recording;
	int reader = audit_file_reader(log);

	if (reader < 0) {
		close(log);
		return reader;
	}
	r->next_log = log;
	r->next_reader = reader;
	r->reopen_request = supervisor_next_id(sv);
	return recording_say_reopen(sv);
}

int recording_reopen(struct supervisor *sv, bool ended)
{
	struct recording *r = &sv->recording;
	int log;

	if (r->reopen_request)
		return -EBUSY;
	log = r->opened_as_user ? audit_file_open(&r->opener, r->path)
	                        : audit_file_open_own(r->path);
	if (log < 0)
		return log;
	if (ended || !same_file(log, r->log))
		return go_on_in(sv, log);
	close(log);
	return 0;
}

/* It asks again as long as it has no other file. What is under way answers it as well. */
void recording_ended(struct supervisor *sv)
{
	int error = recording_reopen(sv, true);

	if (error && error != -EBUSY)
		log_error("audit file %s was moved away and cannot be opened anew: %s",
		        sv->recording.path, strerror(-error));
}

/* The first line of the new file names the last of the old one: it is written at once, so that no
 * later start finds the file empty. */
void recording_reopened(struct supervisor *sv, uint64_t id)
{
	struct recording *r = &sv->recording;

	if (r->reopen_request != id)
		return;
	close(r->log);
	close(r->reader);
	r->log = r->next_log;
	r->reader = r->next_reader;
	r->reopen_request = 0;
	tell_lifecycle(sv, NULL, EVENT_LOG_OPENED, NULL);
}
