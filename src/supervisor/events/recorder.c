/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of the recorder: its messages, and what follows when it dies.
 *
 * What it had not written is not lost: events wait in the rings, which the supervisor holds too,
 * and in the supervisor's own list (outbox.c). So another recorder is started and told everything
 * again; the workers hold their traffic until it is ready. In a run, after repeated deaths or a
 * broken protocol the sandboxes are cut off, and a last recorder only writes the rest.
 */
#include <errno.h>
#include <stdio.h>

#include "vethguard/base/log.h"
#include "supervisor/events/files.h"
#include "supervisor/events/head.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

static void hold_worker(struct instance *i, const void *context)
{
	(void)context;
	instance_hold(i);
}

static void pause_worker(struct instance *i, const void *context)
{
	struct message_worker_pause m = {MESSAGE_PAUSE_RECORDER, *(const struct slice *)context};
	size_t n = message_worker_pause_encode(buffer, sizeof(buffer), MESSAGE_WORKER_PAUSE,
	        supervisor_next_id(i->supervisor), &m);

	role_send(&i->worker, buffer, n, NULL, 0);
}

void recorder_stalls(struct instance *i)
{
	const struct slice text = slice_from_string(i->supervisor->recorder_life.stall.why);

	if (text.n)
		pause_worker(i, &text);
}

static void resume_worker(struct instance *i, const void *context)
{
	const struct message_worker_resume m = {MESSAGE_PAUSE_RECORDER};
	size_t n = message_worker_resume_encode(buffer, sizeof(buffer), MESSAGE_WORKER_RESUME,
	        supervisor_next_id(i->supervisor), &m);

	(void)context;
	role_send(&i->worker, buffer, n, NULL, 0);
}

static void tell_progress(struct sandbox *s, const void *context)
{
	(void)context;
	sandbox_event(s, SANDBOX_PROGRESS);
}

static int on_recorder_ready(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body) || sv->recorder_life.ready)
		return -EBADMSG;
	sv->recorder_life.ready = true;
	sv->recording.unready_deaths = 0;
	sv->recorder_life.stall.why[0] =
	        0; /* the new recorder reports it again if it still holds */
	if (sv->recording.death_count || sv->persistent)
		supervisor_for_each_worker(sv, resume_worker, NULL);
	supervisor_for_each(sv, tell_progress, NULL);
	supervisor_roles_ready(sv);
	return 0;
}

/* The log can be written: the recorder says so, or has written a line. */
static void flows(struct supervisor *sv)
{
	if (sv->recorder_life.stall.shown)
		log_warn("the audit log can be written again");
	sv->recorder_life.stall.shown = false;
	sv->recorder_life.stall.why[0] = 0;
	outage_ends(sv);
}

static int on_taken(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->head.id > sv->last_id)
		return -EBADMSG;
	recording_taken(sv, message->head.id);
	/* A previous recorder's outage; this one can write. */
	if (!sv->recorder_life.stall.why[0] && sv->recording.outage.since_ms)
		flows(sv);
	return 0;
}

static int on_reopened(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->head.id > sv->last_id)
		return -EBADMSG;
	recording_reopened(sv, message->head.id);
	return 0;
}

static int on_ended(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body))
		return -EBADMSG;
	recording_ended(sv);
	return 0;
}

static int on_drained(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->head.id > sv->last_id)
		return -EBADMSG;
	recording_drained(sv, message->head.id);
	return 0;
}

/* A sandbox that has ended needs no answer; one that another daemon serves gets none: what that
 * daemon's recorder reads is not missing. */
static int on_count_get(struct supervisor *sv, struct ipc_message *message)
{
	struct message_sandbox m;
	struct sandbox *s;

	if (message_sandbox_decode(&message->body, &m) != 0)
		return -EBADMSG;
	s = supervisor_find(sv, m.sandbox_id);
	if (s && s->gate.netns >= 0 && s->state != SANDBOX_HANDED_OFF && !s->is_given)
		recording_count(sv, s);
	return 0;
}

static int on_stalled(struct supervisor *sv, struct ipc_message *message)
{
	struct message_text m;
	char shown[sizeof(sv->recorder_life.stall.why)];

	if (message_text_decode(&message->body, &m) != 0)
		return -EBADMSG;
	snprintf(sv->recorder_life.stall.why, sizeof(sv->recorder_life.stall.why), "%.*s",
	        (int)m.text.n, (const char *)m.text.p);
	outage_begins(sv, sv->recorder_life.stall.why);
	if (loop_now_ms(sv->loop) >= sv->recorder_life.stall.next_ms) {
		log_error("the audit log cannot be written, so everything is refused: %s",
		        slice_escape(m.text, shown, sizeof(shown)));
		sv->recorder_life.stall.shown = true;
		sv->recorder_life.stall.next_ms = loop_now_ms(sv->loop) + RECORDER_STALL_SHOWN_MS;
	}
	supervisor_for_each_worker(sv, pause_worker, &m.text);
	return 0;
}

static int on_flowing(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body))
		return -EBADMSG;
	flows(sv);
	supervisor_for_each_worker(sv, resume_worker, NULL);
	return 0;
}

static int on_summary(struct supervisor *sv, struct ipc_message *message)
{
	const uint64_t id = message->head.id;
	struct message_summary m;
	struct sandbox *s;

	if (message_summary_decode(&message->body, &m) != 0)
		return -EBADMSG;
	HASH_FIND(at_summary, sv->summing, &id, sizeof(id), s);
	if (!s || s->state != SANDBOX_SUMMING)
		return id <= sv->last_id ? 0 : -EBADMSG;
	s->owner->summary(s->owner, &m);
	sandbox_event(s, SANDBOX_SUMMED);
	return 0;
}

/* id of a sandbox: its worker wrote invalid events, or the events of one more worker cannot be
 * read. The recorder knows the sandbox, and takes its end. */
static void on_recorder_failed(struct role *role, uint64_t id)
{
	struct supervisor *sv = container_of(role, struct supervisor, recorder);
	struct sandbox *s = supervisor_find(sv, id);
	char text[ROLE_HOW_MAX];

	if (!s)
		return;
	role_take_last_words(role, text);
	sandbox_fail(s, "%s The sandbox is cut off from every network.", text);
}

/* The recorder does not know the sandbox and is told nothing more about it. A sandbox that was
 * served before is announced to the next recorder again. */
static int on_refused(struct supervisor *sv, struct ipc_message *message)
{
	struct sandbox *s = supervisor_find(sv, message->head.id);

	if (!reader_done(&message->body))
		return -EBADMSG;
	if (!s)
		return message->head.id <= sv->last_id ? 0 : -EBADMSG;
	if (s->state == SANDBOX_STARTING)
		s->recorded.open = false;
	sandbox_fail(s, "The recorder cannot read the events of a further sandbox. The sandbox is "
	                "cut off from every network.");
	return 0;
}

static int on_head(struct supervisor *sv, struct ipc_message *message)
{
	struct message_text m;

	if (message_text_decode(&message->body, &m) != 0 || message->head.id > sv->last_id)
		return -EBADMSG;
	return head_answered(sv, message->head.id, m.text);
}

static int on_recorder_message(struct role *role, struct ipc_message *message)
{
	struct supervisor *sv = container_of(role, struct supervisor, recorder);

	switch (message->head.type) {
	case MESSAGE_RECORDER_READY:
		return on_recorder_ready(sv, message);
	case MESSAGE_RECORDER_REFUSED:
		return on_refused(sv, message);
	case MESSAGE_RECORDER_TAKEN:
		return on_taken(sv, message);
	case MESSAGE_RECORDER_COUNT_GET:
		return on_count_get(sv, message);
	case MESSAGE_RECORDER_RING_DRAINED:
		return on_drained(sv, message);
	case MESSAGE_RECORDER_REOPENED:
		return on_reopened(sv, message);
	case MESSAGE_RECORDER_ENDED:
		return on_ended(sv, message);
	case MESSAGE_RECORDER_STALLED:
		return on_stalled(sv, message);
	case MESSAGE_RECORDER_FLOWING:
		return on_flowing(sv, message);
	case MESSAGE_RECORDER_SUMMARY:
		return on_summary(sv, message);
	case MESSAGE_RECORDER_HEAD:
		return on_head(sv, message);
	default:
		return -EBADMSG;
	}
}

/* The recorder's end. */

static void lose(struct sandbox *s, const void *context)
{
	sandbox_fail(s, "the recorder %s; the sandbox is cut off from every network",
	        (const char *)context);
}

static void lose_recorder(struct sandbox *s, const void *context)
{
	(void)context;
	sandbox_event(s, SANDBOX_RECORDER_GONE);
}

static void tell_death(struct sandbox *s, const void *context)
{
	char text[ROLE_HOW_MAX + 128];

	snprintf(text, sizeof(text),
	        "The recorder %s. Another one has taken over; no event is missing.",
	        (const char *)context);
	outbox_observed(s->supervisor, s, EVENT_FINDING_ROLE_DIED, text);
}

/* Remembers this death; returns false if there were too many. */
static bool may_go_on(struct supervisor *sv)
{
	struct recording *r = &sv->recording;
	int64_t now_ms = loop_now_ms(sv->loop);
	int64_t *oldest = &r->deaths_ms[r->death_count++ % RECORDER_RESTARTS_MAX];
	bool seldom =
	        r->death_count <= RECORDER_RESTARTS_MAX || now_ms - *oldest > RECORDER_RESTARTS_MS;

	*oldest = now_ms;
	return seldom;
}

static int start_again(struct supervisor *sv)
{
	int rc = recorder_start(sv);

	return rc ? rc : recording_again(sv);
}

/* Daemon only: workers hold new traffic as long as no recorder is ready. */
static void on_recorder_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, recorder_life.timer);
	int rc = start_again(sv);

	if (!rc)
		return;
	log_error("no other recorder can be started: %s", strerror(-rc));
	role_fini(&sv->recorder);
	loop_timer_set(timer, ROLE_PAUSE_MS);
}

static void replace_persistent(struct supervisor *sv, const char *how)
{
	bool goes_on = may_go_on(sv);

	if (++sv->recording.unready_deaths == RECORDER_RESTARTS_MAX)
		recording_blame_journal(&sv->recording, "no recorder becomes ready, perhaps "
		                                        "because of the notes of the one before");
	supervisor_for_each_worker(sv, hold_worker, NULL);
	supervisor_for_each(sv, tell_death, how);
	log_warn("the recorder %s; another one takes over%s", how,
	        goes_on ? "" : ", after a pause, because that was too often");
	if (goes_on)
		on_recorder_time(&sv->recorder_life.timer);
	else
		loop_timer_set(&sv->recorder_life.timer, ROLE_PAUSE_MS);
}

static void replace(struct supervisor *sv, const char *how, bool broke)
{
	bool goes_on = may_go_on(sv) && !broke;
	int rc;

	supervisor_for_each_worker(sv, hold_worker, NULL);
	sv->recording.last = !goes_on;
	rc = start_again(sv);
	if (rc) {
		log_error("no other recorder can be started: %s", strerror(-rc));
		role_fini(&sv->recorder);
	}
	if (goes_on && !rc) {
		log_warn("the recorder %s; another one takes over", how);
		supervisor_for_each(sv, tell_death, how);
		return;
	}
	supervisor_for_each(sv, lose, how);
	if (rc)
		supervisor_for_each(sv, lose_recorder, NULL);
}

static void on_recorder_dead(struct role *role, const char *how)
{
	struct supervisor *sv = container_of(role, struct supervisor, recorder);

	sv->recorder_life.ready = false;
	if (!role->stopping && sv->persistent) {
		replace_persistent(sv, how);
		return;
	}
	if (!role->stopping && !sv->recording.last) {
		replace(sv, how, role->killed);
		return;
	}
	if (!role->stopping) {
		log_error("the recorder %s: the last events are not in the audit log", how);
		supervisor_for_each(sv, lose, how);
	}
	supervisor_for_each(sv, lose_recorder, NULL);
	supervisor_stop_when_alone(sv);
}

int recorder_start(struct supervisor *sv)
{
	int rc = 0;

	if (sv->persistent && !sv->recorder_life.timer.event)
		rc = loop_timer_open(sv->loop, &sv->recorder_life.timer, on_recorder_time);
	if (!rc)
		rc = role_start(sv->loop, &sv->recorder, "vethguard-recorder", "the recorder", -1,
		        on_recorder_message, on_recorder_dead);

	if (!rc) {
		sv->recorder.on_failed = on_recorder_failed;
		role_wait_for_room(&sv->recorder, ROLE_ROOM_MS, ROLE_ROOM_ALL_MS);
	}
	return rc;
}
