/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log may change while it is written: rotation moves the file away, and the recorder
 * continues in a new file under the same path. The daemon is told by SIGHUP. A run is told by
 * nobody: its recorder finds the line with which the daemon's recorder has ended the file, and
 * asks. So does the recorder of a daemon that only finishes its connections, if it is told late.
 * The path is opened with the same rights as at the start, by a child (audit_reopen.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/journal.h"
#include "supervisor/events/audit_file.h"
#include "supervisor/events/private.h"

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
	                buffer, sizeof(buffer), MESSAGE_RECORDER_START, supervisor_next_id(sv), &m),
	        fds, START_FDS);
}

int recording_start(struct supervisor *sv, const char *path, int log, const struct identity *opener)
{
	struct recording *r = &sv->recording;
	int rc;

	r->log = log;
	r->reader = audit_file_reader(log);
	if (r->reader >= 0 && !r->kept)
		r->journal = journal_create();
	rc = r->reader < 0 ? r->reader : r->journal < 0 ? r->journal : 0;
	if (!rc)
		rc = audit_identify(log, &r->log_is);
	if (!rc && opener)
		rc = identity_copy(&r->opener, opener);
	if (rc) {
		if (r->reader >= 0)
			close(r->reader);
		close(log);
		return rc;
	}
	r->opened_as_user = opener != NULL;
	snprintf(r->path, sizeof(r->path), "%s", path);
	sv->recorder_life.log_given = true;
	return recording_say_start(sv);
}

int recording_say_reopen(struct supervisor *sv)
{
	const struct recording *r = &sv->recording;
	const int fds[REOPEN_FDS] = {r->next_log, r->next_reader};

	return recording_say(sv, buffer,
	        message_empty(buffer, sizeof(buffer), MESSAGE_RECORDER_REOPEN, r->reopen_request),
	        fds, REOPEN_FDS);
}

static bool is_log(const struct recording *r, const struct audit_identity *file)
{
	return r->log_is.device == file->device && r->log_is.inode == file->inode;
}

static int go_on_in(struct supervisor *sv, const struct audit_opened *next)
{
	struct recording *r = &sv->recording;

	r->next_log = next->log;
	r->next_reader = next->reader;
	r->next_is = next->identity;
	r->reopen_request = supervisor_next_id(sv);
	return recording_say_reopen(sv);
}

static void say_failed(const struct recording *r, int error)
{
	const char *why =
	        error == -ETIMEDOUT ? "its file system does not answer" : strerror(-error);

	if (r->ended)
		log_error(
		        "audit file %s was moved away and cannot be opened anew: %s", r->path, why);
	else
		log_error("audit file %s: %s; the one that is open is written to", r->path, why);
}

static void look_again(struct supervisor *sv)
{
	const bool again = sv->recording.again;

	sv->recording.again = false;
	if (again)
		recording_reopen(sv, false);
}

static void on_opened(void *context, const struct audit_opened *opened)
{
	struct supervisor *sv = context;
	struct recording *r = &sv->recording;
	int rc = opened->error;

	r->opening = NULL;
	if (!rc && (r->ended || !is_log(r, &opened->identity))) {
		rc = go_on_in(sv, opened);
	} else if (!rc) {
		close(opened->log);
		close(opened->reader);
	}
	if (rc)
		say_failed(r, rc);
	if (!r->reopen_request)
		look_again(sv);
}

void recording_reopen(struct supervisor *sv, bool ended)
{
	struct recording *r = &sv->recording;
	int rc;

	/* The reopening in progress also answers a recorder that has found the end. */
	if (r->opening || r->reopen_request) {
		r->ended |= ended;
		r->again |= !ended;
		return;
	}
	r->ended = ended;
	rc = audit_reopen_start(sv->loop, r->path, r->opened_as_user ? &r->opener : NULL, on_opened,
	        sv, &r->opening);
	if (rc)
		say_failed(r, rc);
}

/* The recorder repeats this until it has another file. */
void recording_ended(struct supervisor *sv)
{
	recording_reopen(sv, true);
}

/* The first line of the new file names the last line of the old one. It is written at once, so that
 * no later start finds the file empty. */
void recording_reopened(struct supervisor *sv, uint64_t id)
{
	struct recording *r = &sv->recording;

	if (r->reopen_request != id)
		return;
	close(r->log);
	close(r->reader);
	r->log = r->next_log;
	r->reader = r->next_reader;
	r->log_is = r->next_is;
	r->reopen_request = 0;
	outbox_lifecycle(sv, NULL, EVENT_LOG_OPENED, NULL);
	look_again(sv);
}
