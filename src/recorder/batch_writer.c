/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wake-up starts a timer of a few milliseconds. When it fires, all awake streams are formatted
 * into one buffer, noted in the journal (output/checkpoint.c: in case this program is killed) and
 * written with one write(2). So a busy worker costs one write per batch and, as its ring never
 * sleeps meanwhile, no wake-up. Streams without events sleep and cost a batch nothing: there may be
 * a thousand of them.
 *
 * While the log cannot be written nothing is read: the rings fill, their writers wait, the stop
 * flag makes them refuse new work at once, and the supervisor is told why. The bytes that were not
 * taken are tried again every RECORDER_RETRY_MS.
 *
 *   state    left when
 *   FLOWS    another recorder has the file's lock, or has ended the file: WAITS; error: STALLED
 *   WAITS    got the lock, or the file that follows: FLOWS; too long: STALLED
 *   STALLED  all that was pending is written and synced: FLOWS
 *   DONE     (the loop is ending)
 */
#include <errno.h>
#include <utlist.h>

#include "vethguard/base/log.h"

#include "recorder/recorder.h"

#define ROUNDS_MAX 16 /* batches before other work gets its turn */
#define LOCK_RETRY_MS 10
#define FAILED_STATUS 1

static const char *const state_names[] = {
        [RECORDER_FLOWS] = "FLOWS",
        [RECORDER_WAITS] = "WAITS",
        [RECORDER_STALLED] = "STALLED",
        [RECORDER_DONE] = "DONE",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == RECORDER_STATE_COUNT, "a name per state");

/* Sets the state; nothing else does. */
static void enter(struct recorder *r, enum recorder_state state)
{
	if (r->state != state)
		log_debug("recorder: %s -> %s", state_names[r->state], state_names[state]);
	r->state = state;
}

static void stall(struct recorder *r, int error)
{
	char text[MESSAGE_TEXT_MAX];

	loop_timer_set(&r->retry, RECORDER_RETRY_MS);
	if (r->state == RECORDER_STALLED && r->stall_error == error)
		return;
	enter(r, RECORDER_STALLED);
	r->stall_error = error;
	log_file_explain(&r->log, error, text, sizeof(text));
	log_error("%s", text);
	tell_supervisor(r, MESSAGE_RECORDER_STALLED, 0, text);
	/* Without a supervisor to wait for, nothing would ever end this program. */
	if (!r->supervisor.open) {
		r->status = FAILED_STATUS;
		enter(r, RECORDER_DONE);
		loop_stop(r->loop);
	}
}

/* For errors that do not go away: OpenSSL fails, or a line cannot be made at all. */
static void give_up(struct recorder *r)
{
	log_error("a line of the audit log cannot be sealed");
	tell_supervisor(r, MESSAGE_FAILED, 0, "The recorder cannot seal a line of the audit log.");
	r->status = FAILED_STATUS;
	enter(r, RECORDER_DONE);
	loop_stop(r->loop);
}

/* Waits for another recorder's batch, or for the file in which the log continues. */
static void wait_for(struct recorder *r, int error)
{
	int64_t now_ms = loop_now_ms(r->loop);

	if (r->state != RECORDER_WAITS) {
		enter(r, RECORDER_WAITS);
		r->waits_since_ms = now_ms;
	}
	if (now_ms - r->waits_since_ms > RECORDER_LOCK_WAIT_MS)
		stall(r, error);
	else
		loop_timer_set(&r->retry, LOCK_RETRY_MS);
}

static bool is_done(struct recorder *r, int rc)
{
	if (rc == -EAGAIN || rc == -ESTALE)
		wait_for(r, rc);
	else if (rc != 0)
		stall(r, rc);
	else if (r->state == RECORDER_WAITS)
		enter(r, RECORDER_FLOWS);
	return rc == 0;
}

/* Asks once for each time the file is found to have ended, and at each attempt while that
 * stalls. */
static void ask_for_next_file(struct recorder *r)
{
	if (!r->asked && !r->reopening)
		tell_supervisor(r, MESSAGE_RECORDER_ENDED, 0, NULL);
	r->asked = true;
}

/* Without a supervisor nothing can open the file that follows: a chain that forks, which `vethguard
 * audit verify` reports, is better than lost lines. */
static int lock_log(struct recorder *r)
{
	int rc = log_file_begin(&r->log);

	if (rc == -ESTALE && !r->supervisor.open) {
		log_file_go_on(&r->log);
		rc = log_file_begin(&r->log);
	}
	if (rc == -ESTALE)
		ask_for_next_file(r);
	return rc;
}

/* Locks the log, or arranges another attempt. */
static bool begin(struct recorder *r)
{
	return is_done(r, lock_log(r));
}

/* A begun batch is written as it is; a new one is noted first. */
static int write_out(struct recorder *r)
{
	int rc;

	if (!r->checkpoint.begun)
		checkpoint_begin(r);
	if (journal_is_lost(&r->journal))
		return -ENODEV;
	rc = log_file_flush(&r->log);
	if (rc == 0)
		checkpoint_commit(r);
	return rc;
}

static bool flush(struct recorder *r)
{
	int rc = write_out(r);

	if (rc != 0)
		stall(r, rc);
	else if (r->log.dirty && !r->sync_due) {
		r->sync_due = true;
		loop_timer_set(&r->sync, RECORDER_SYNC_MS);
	}
	return rc == 0;
}

/* Writes the last line, unless another recorder has. */
static int end_file(struct recorder *r)
{
	int rc = log_file_begin(&r->log);

	if (rc == -ESTALE || !r->log.regular || log_file_is(&r->log, r->next_log))
		return rc == -ESTALE ? 0 : rc;
	if (rc == 0)
		rc = stream_record_log_end(r);
	return rc == 0 ? write_out(r) : rc;
}

/* Call between two batches. */
static int reopen(struct recorder *r)
{
	int rc = end_file(r);

	if (rc == 0)
		rc = log_file_reopen(&r->log, r->next_log, r->next_reader);
	if (rc != 0)
		return rc;
	checkpoint_mark(r);
	r->reopening = r->asked = false;
	tell_supervisor(r, MESSAGE_RECORDER_REOPENED, r->reopen_id, NULL);
	return 0;
}

/* Writes one batch. Returns 1: streams have more; 0; -errno: the state says how it continues. */
static int run_batch(struct recorder *r)
{
	struct stream *s;
	int more = 0;

	if (r->checkpoint.begun && !flush(r))
		return -EAGAIN;
	if (r->reopening && !is_done(r, reopen(r)))
		return -EAGAIN;
	if (!begin(r))
		return -EAGAIN;
	DL_FOREACH2(r->awake, s, awake_next)
	{
		int rc = stream_drain(s, s->ending || r->stopping);

		if (rc == -ENOMEM) {
			stall(r, rc);
			return rc;
		}
		if (rc < 0) {
			give_up(r);
			return rc;
		}
		more |= rc;
		if (r->log.pending.len >= RECORDER_BATCH_BYTES && (!flush(r) || !begin(r)))
			return -EAGAIN;
	}
	return flush(r) ? more : -EAGAIN;
}

static bool anyone_has_ended(const struct recorder *r)
{
	const struct stream *s;

	DL_FOREACH2(r->awake, s, awake_next)
	{
		if (s->ending && s->drained)
			return true;
		for (const struct ring_source *reader = s->readers; reader; reader = reader->next)
			if (reader->ending && reader->drained)
				return true;
	}
	return false;
}

static void finish_readers(struct stream *stream)
{
	struct ring_source *reader, *next;

	for (reader = stream->readers; reader; reader = next) {
		next = reader->next;
		if (!reader->ending || !reader->drained)
			continue;
		tell_supervisor(
		        stream->recorder, MESSAGE_RECORDER_RING_DRAINED, reader->end_id, NULL);
		ring_source_close(reader);
	}
}

/* Answers requests for an end, once nothing of that ring or stream is outstanding, however much
 * others have to record. */
static void finish(struct recorder *r, bool all)
{
	struct stream *s, *next;
	int rc;

	all &= r->stopping;
	if (!all && !anyone_has_ended(r))
		return;
	rc = log_file_sync(&r->log);
	if (rc != 0) {
		stall(r, rc);
		return;
	}
	DL_FOREACH_SAFE2(r->awake, s, next, awake_next)
	{
		finish_readers(s);
		if (!s->ending || !s->drained)
			continue;
		tell_summary(r, s);
		stream_close(s);
	}
	if (all) {
		enter(r, RECORDER_DONE);
		tell_stopped(r);
	}
}

void batch_writer_later(struct recorder *r)
{
	/* Further wake-ups do not postpone it. */
	if (r->state == RECORDER_FLOWS && !r->batch_due) {
		r->batch_due = true;
		loop_timer_set(&r->batch, RECORDER_BATCH_DELAY_MS);
	}
}

static void settle(struct recorder *r)
{
	bool asleep = true;
	int64_t due_ms = INT64_MAX;
	struct stream *s, *next;

	DL_FOREACH_SAFE2(r->awake, s, next, awake_next)
	{
		if (s->packets.next_due_ms < due_ms)
			due_ms = s->packets.next_due_ms;
		if (stream_sleep(s))
			stream_rest(s);
		else
			asleep = false;
	}
	if (!asleep)
		batch_writer_later(r);
	if (due_ms != INT64_MAX)
		loop_timer_set(&r->packets, due_ms - loop_now_ms(r->loop) + 1);
}

static void wake_all(struct recorder *r)
{
	for (struct stream *s = r->streams; s; s = s->next)
		stream_wake(s);
}

void batch_writer_now(struct recorder *r)
{
	int more = 1;

	if (r->state == RECORDER_STALLED || r->state == RECORDER_DONE)
		return;
	loop_timer_cancel(&r->batch);
	r->batch_due = false;
	if (r->stopping)
		wake_all(r);
	for (int round = 0; round < ROUNDS_MAX && more > 0; round++) {
		more = run_batch(r);
		if (more >= 0)
			finish(r, more == 0);
		if (r->state == RECORDER_STALLED || r->state == RECORDER_DONE)
			return;
	}
	if (more > 0) {
		r->batch_due = true;
		loop_timer_set(&r->batch, 0);
	}
	if (more == 0 && r->state == RECORDER_FLOWS)
		settle(r);
}

static void on_batch(struct loop_timer *timer)
{
	batch_writer_now(container_of(timer, struct recorder, batch));
}

static void on_packets(struct loop_timer *timer)
{
	batch_writer_now(container_of(timer, struct recorder, packets));
}

static void on_sync(struct loop_timer *timer)
{
	struct recorder *r = container_of(timer, struct recorder, sync);
	int rc = log_file_sync(&r->log);

	r->sync_due = false;
	if (rc != 0)
		stall(r, rc);
}

static void resume(struct recorder *r)
{
	log_info("the audit log %s can be written again", r->log.path);
	enter(r, RECORDER_FLOWS);
	wake_all(r);
	tell_supervisor(r, MESSAGE_RECORDER_FLOWING, 0, NULL);
	batch_writer_now(r);
}

static void on_retry(struct loop_timer *timer)
{
	struct recorder *r = container_of(timer, struct recorder, retry);
	int rc;

	r->stopping |= !r->supervisor.open;
	if (r->state == RECORDER_WAITS || (r->state == RECORDER_FLOWS && r->stopping)) {
		batch_writer_now(r);
		return;
	}
	if (r->state != RECORDER_STALLED)
		return;
	r->asked = false;
	rc = r->checkpoint.begun ? write_out(r) : 0;
	if (rc == 0 && r->reopening)
		rc = reopen(r);
	if (rc == 0)
		rc = lock_log(r);
	if (rc == 0)
		rc = write_out(r);
	if (rc == 0)
		rc = log_file_sync(&r->log);
	if (rc != 0)
		stall(r, rc);
	else
		resume(r);
}

int batch_writer_open(struct recorder *r)
{
	int rc = loop_timer_open(r->loop, &r->batch, on_batch);

	if (rc == 0)
		rc = loop_timer_open(r->loop, &r->retry, on_retry);
	if (rc == 0)
		rc = loop_timer_open(r->loop, &r->sync, on_sync);
	if (rc == 0)
		rc = loop_timer_open(r->loop, &r->packets, on_packets);
	return rc;
}

void batch_writer_close(struct recorder *r)
{
	loop_timer_close(&r->batch);
	loop_timer_close(&r->retry);
	loop_timer_close(&r->sync);
	loop_timer_close(&r->packets);
}
