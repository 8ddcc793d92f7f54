/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorder is told: the log (log.c), each sandbox, the rings of its workers (rings.c), the
 * supervisor's own events (outbox.c), the end of a ring and of a sandbox, and orphans (orphans.c).
 * All of it can be told again, to a recorder that takes over from a killed one: the descriptors are
 * kept, and each event until the recorder confirms that it is in the log.
 *
 * While the log cannot be written, the recorder takes nothing from its rings. So it is given at
 * most as many rings and events of a sandbox as it has room for (message.h), and more when some of
 * those are in the log.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/events/files.h"
#include "supervisor/events/private.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

int recording_say(
        struct supervisor *sv, const uint8_t *message, size_t n, const int *fds, size_t fd_count)
{
	int rc;

	if (!role_runs(&sv->recorder))
		return 0;
	rc = role_send(&sv->recorder, message, n, fds, fd_count);
	return rc == -EPIPE ? 0 : rc;
}

struct recorded *recording_of(struct supervisor *sv, struct sandbox *s)
{
	return s ? &s->recorded : &sv->recording.daemon;
}

int recording_say_sandbox(
        struct supervisor *sv, const struct message_recorder_sandbox *m, const int *packets)
{
	size_t n = message_recorder_sandbox_encode(
	        buffer, sizeof(buffer), MESSAGE_RECORDER_SANDBOX, supervisor_next_id(sv), m);

	return recording_say(sv, buffer, n, packets, m->has_packets);
}

int recording_open(struct supervisor *sv, struct sandbox *s)
{
	struct message_recorder_sandbox m = {.sandbox_id = s->id,
	        .sandbox = slice_from_string(s->name),
	        .policy = policy_name(&s->generation->settings->policy),
	        .fingerprint = policy_fingerprint(&s->generation->settings->policy),
	        .gate4 = s->gate.gate4,
	        .gate6 = s->gate.gate6,
	        .socket = slice_from_string(s->listen ? s->listen->path : ""),
	        .has_packets = s->gate.packets >= 0,
	        .dropped = s->dropped_before};
	int rc = recording_say_sandbox(sv, &m, &s->gate.packets);

	if (rc)
		return rc;
	s->recorded.id = s->id;
	s->recorded.open = true;
	s->recorded.held = false;
	return recording_open_rings(sv, &s->recorded);
}

void recording_hold(struct sandbox *s)
{
	s->recorded.id = s->id;
	s->recorded.open = s->recorded.held = true;
}

int recording_release(struct supervisor *sv, struct sandbox *s)
{
	int rc = recording_open(sv, s);

	if (!rc)
		outbox_say_again(sv, &s->recorded);
	return rc;
}

static int say_daemon(struct supervisor *sv)
{
	struct message_recorder_sandbox m = {
	        .sandbox_id = sv->recording.daemon.id, .sandbox = SLICE(MESSAGE_NAME_DAEMON)};
	int rc = recording_say_sandbox(sv, &m, NULL);

	return rc ? rc : recording_open_rings(sv, &sv->recording.daemon);
}

int recording_open_daemon(struct supervisor *sv)
{
	struct recorded *daemon = &sv->recording.daemon;
	int rc;

	daemon->open = true;
	rc = say_daemon(sv);
	return rc ? rc : recording_adopt_event(sv, daemon->id);
}

int recording_end(struct supervisor *sv, struct sandbox *s)
{
	struct message_sandbox m = {.sandbox_id = s->id};

	s->recorded.end_waits = s->recorded.next_told || recording_rings_wait(&s->recorded);
	if (s->recorded.end_waits)
		return 0;
	/* What another daemon's recorder reads meanwhile must not be counted here. */
	m.dropped = s->recorded.dropped_at_end = s->is_given ? 0 : gate_dropped(&s->gate).packets;
	return recording_say(sv, buffer,
	        message_sandbox_encode(
	                buffer, sizeof(buffer), MESSAGE_RECORDER_END, s->summary_request, &m),
	        NULL, 0);
}

void recording_end_waiting(struct supervisor *sv, struct recorded *of)
{
	struct sandbox *s = of->end_waits ? supervisor_find(sv, of->id) : NULL;

	if (s && recording_end(sv, s) != 0)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "the recorder could not be told that it has ended");
}

void recording_count(struct supervisor *sv, struct sandbox *s)
{
	struct message_sandbox m = {s->id, gate_dropped(&s->gate).packets};
	int rc = recording_say(sv, buffer,
	        message_sandbox_encode(
	                buffer, sizeof(buffer), MESSAGE_RECORDER_COUNT, supervisor_next_id(sv), &m),
	        NULL, 0);

	if (rc)
		log_sandbox(LOG_LEVEL_DEBUG, s->name, "the recorder cannot be told a count: %s",
		        strerror(-rc));
}

static void on_count_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, recording.count_time);
	struct sandbox *s, *next;
	int left = RECORDING_COUNT_AT_ONCE;

	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		if (!s->recorded.count_wanted)
			continue;
		if (left-- == 0) {
			loop_timer_set(timer, 1);
			return;
		}
		s->recorded.count_wanted = false;
		if (s->recorded.open && s->gate.netns >= 0 && s->state != SANDBOX_HANDED_OFF &&
		        s->state != SANDBOX_SUMMING && !s->is_given)
			recording_count(sv, s);
	}
}

void recording_count_soon(struct supervisor *sv, struct sandbox *s)
{
	struct loop_timer *timer = &sv->recording.count_time;

	if (!timer->event && loop_timer_open(sv->loop, timer, on_count_time) != 0)
		return; /* it is sent with the next drop, or at the end */
	s->recorded.count_wanted = true;
	loop_timer_set(timer, RECORDING_COUNT_MS);
}

static int open_again(struct supervisor *sv, struct sandbox *s)
{
	int rc = recording_open(sv, s);

	if (!rc) {
		outbox_say_again(sv, &s->recorded);
		recording_count_soon(sv, s);
	}
	if (!rc && s->state == SANDBOX_SUMMING)
		rc = recording_end(sv, s);
	return rc;
}

int recording_again(struct supervisor *sv)
{
	struct sandbox *s, *next;
	int rc = sv->recorder_life.log_given ? recording_say_start(sv) : 0;

	if (!rc && sv->recording.daemon.open) {
		rc = say_daemon(sv);
		outbox_say_again(sv, &sv->recording.daemon);
	}
	if (!rc && sv->recording.reopen_request)
		rc = recording_say_reopen(sv);
	if (!rc)
		rc = recording_orphans_again(sv);
	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		if (s->recorded.open && !rc)
			rc = open_again(sv, s);
	}
	return rc;
}

void recording_forget(struct supervisor *sv, struct recorded *of, bool for_good)
{
	outbox_forget(sv, of, UINT64_MAX, for_good);
	recording_forget_rings(sv, of, for_good);
}

void recording_fini(struct supervisor *sv)
{
	struct recording *r = &sv->recording;

	recording_wait_fini(r);
	if (r->outage_time.event)
		loop_timer_close(&r->outage_time);
	if (r->count_time.event)
		loop_timer_close(&r->count_time);
	audit_reopen_cancel(r->opening);
	r->opening = NULL;
	recording_forget(sv, &r->daemon, false);
	while (r->left) {
		struct recorded *left = r->left;

		r->left = left->next;
		recording_forget(sv, left, false);
		free(left);
	}
	if (r->reopen_request) {
		close(r->next_log);
		close(r->next_reader);
	}
	if (sv->recorder_life.log_given) {
		close(r->log);
		close(r->reader);
		identity_fini(&r->opener);
	}
	if (sv->recorder_life.log_given || r->kept)
		close(r->journal);
	recording_close_ready(r);
	if (r->kept) {
		close(r->rings);
		close(r->told);
	}
	sv->recorder_life.log_given = r->kept = false;
}
