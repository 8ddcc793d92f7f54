/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream receives everything of its sandbox, and drains it in this order, up to its share: its
 * workers' events in their rings (ring_source.c), copies of dropped packets on the NFLOG socket
 * (dropped.c), the supervisor's own events (supervisor_events.c). Sequence, totals and packet
 * counts belong to the sandbox, while its workers and their rings come and go.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"

#include "recorder/recorder.h"

uint64_t stream_new_id(void)
{
	uint64_t id;

	random_bytes(&id, sizeof(id));
	return id;
}

int stream_record(struct stream *stream, const struct event *event)
{
	struct log_file *log = &stream->recorder->log;
	int rc = ocsf_append(&log->pending, &log->chain, &stream->ocsf, event);

	if (rc == 0)
		summary_count(&stream->summary, event);
	return rc;
}

int stream_record_finding(struct stream *stream, enum event_finding finding, const char *detail)
{
	struct event event = {
	        .id = stream_new_id(),
	        .kind = EVENT_FINDING,
	        .finding = finding,
	        .time_ms = clock_real_ms(),
	        .decision = EVENT_OBSERVED,
	        .detail = slice_from_string(detail),
	};

	return stream_record(stream, &event);
}

static bool is_of_daemon(const struct stream *stream)
{
	return stream->ocsf.policy.len == 0 && strcmp(stream->ocsf.name, MESSAGE_NAME_DAEMON) == 0;
}

int stream_record_log_end(struct recorder *recorder)
{
	struct stream *stream = recorder->streams;
	struct event event = {
	        .id = stream_new_id(),
	        .kind = EVENT_LIFECYCLE,
	        .lifecycle = EVENT_LOG_ENDED,
	        .time_ms = clock_real_ms(),
	};

	while (stream && !is_of_daemon(stream))
		stream = stream->next;
	if (!stream)
		return 0;
	stream_wake(stream); /* its sequence is to be noted */
	return stream_record(stream, &event);
}

bool stream_has_room(struct stream *stream)
{
	return buf_reserve(&stream->recorder->log.pending, OCSF_LINE_MAX) != NULL;
}

/* Each ring source in turn gets an equal part of the rest of the sandbox's share. */
static int drain_readers(struct stream *stream)
{
	size_t start = stream->recorder->log.pending.len, turn = 0;
	int more = 0;

	for (struct ring_source *reader = stream->readers; reader; reader = reader->next) {
		int rc = ring_source_drain(
		        reader, start + RECORDER_SHARE_BYTES * ++turn / stream->ring_source_count);

		if (rc < 0)
			return rc;
		reader->drained = rc == 0;
		more |= rc;
	}
	return more;
}

int stream_drain(struct stream *stream, bool all)
{
	int more = drain_readers(stream);
	int packets, own;

	if (more < 0)
		return more;
	packets = stream_drain_packets(stream, all && more == 0);
	if (packets < 0)
		return packets;
	own = stream_drain_supervisor_events(stream, all && more == 0 && packets == 0);
	stream->drained = own == 0 && !more && !packets && stream->own.len == 0;
	return own < 0 ? own : more || packets;
}

bool stream_sleep(struct stream *stream)
{
	bool asleep = true;

	for (struct ring_source *reader = stream->readers; reader; reader = reader->next)
		asleep &= ring_source_sleep(reader);
	return asleep;
}

void stream_wake(struct stream *stream)
{
	if (!stream->awake)
		DL_APPEND2(stream->recorder->awake, stream, awake_prev, awake_next);
	stream->awake = true;
}

static void leave_awake(struct stream *stream)
{
	if (stream->awake)
		DL_DELETE2(stream->recorder->awake, stream, awake_prev, awake_next);
	stream->awake = false;
}

void stream_rest(struct stream *stream)
{
	if (stream->own.len == 0 && !stream->packets_lost && !stream->ending &&
	        !stream->place.changed && stream->packets.next_due_ms == INT64_MAX)
		leave_awake(stream);
}

int stream_open(struct recorder *recorder, const struct message_recorder_sandbox *m, int packets)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	int rc;

	if (!stream) {
		if (packets >= 0)
			close(packets);
		return -ENOMEM;
	}
	stream->recorder = recorder;
	stream->nflog_fd = packets;
	stream->lost_noted_ms = -RECORDER_LOST_NOTE_MS;
	stream->fence_base = m->dropped;
	buf_init(&stream->own, RECORDER_OWN_MAX);
	packets_init(&stream->packets);
	summary_init(&stream->summary);
	rc = ocsf_sandbox_init(&stream->ocsf, m->sandbox_id, m->sandbox, m->policy, m->fingerprint);
	if (rc == 0)
		rc = checkpoint_apply(stream);
	if (rc == 0 && packets >= 0)
		rc = stream_hear_packets(stream);
	stream->ocsf.gate4 = m->gate4;
	stream->ocsf.gate6 = m->gate6;
	snprintf(stream->ocsf.socket, sizeof(stream->ocsf.socket), "%.*s", SLICE_ARG(m->socket));
	stream->next = recorder->streams;
	recorder->streams = stream;
	recorder->stream_count++;
	checkpoint_change(&stream->place);
	HASH_ADD_KEYPTR(hh, recorder->by_id, &stream->ocsf.uid, sizeof(stream->ocsf.uid), stream);
	if (rc == 0 && !stream->hh.tbl)
		rc = -ENOMEM;
	stream_wake(stream);
	if (rc != 0)
		stream_close(stream);
	return rc;
}

void stream_close(struct stream *stream)
{
	struct stream **at = &stream->recorder->streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	stream->recorder->stream_count--;
	checkpoint_forget(stream);
	if (stream->hh.tbl)
		HASH_DEL(stream->recorder->by_id, stream);
	leave_awake(stream);
	while (stream->readers)
		ring_source_close(stream->readers);
	loop_io_close(&stream->nflog);
	if (stream->nflog_fd >= 0)
		close(stream->nflog_fd);
	buf_fini(&stream->own);
	packets_fini(&stream->packets);
	summary_fini(&stream->summary);
	ocsf_sandbox_fini(&stream->ocsf);
	free(stream);
}

struct stream *stream_find(struct recorder *recorder, uint64_t sandbox_id)
{
	struct stream *stream;

	HASH_FIND(hh, recorder->by_id, &sandbox_id, sizeof(sandbox_id), stream);
	return stream;
}

void stream_resume(struct stream *stream, const struct stream_noted *noted)
{
	stream->ocsf.sequence = noted->sequence;
	stream->told = noted->told;
	stream->fence_base = noted->fence_base;
	stream->packets_lost = noted->packets_lost;
}

void stream_keep_ring(struct stream *stream, const struct ring_source_note *note)
{
	if (stream->known_count < RECORDER_SOURCES_MAX)
		stream->known[stream->known_count++] = *note;
}

void stream_acknowledge(struct stream *stream)
{
	for (struct ring_source *reader = stream->readers; reader; reader = reader->next)
		ring_release(&reader->ring);
	if (stream->told != stream->acknowledged)
		tell_supervisor(stream->recorder, MESSAGE_RECORDER_TAKEN, stream->told, NULL);
	stream->acknowledged = stream->told;
}

void stream_end(struct stream *stream, uint64_t dropped, uint64_t id)
{
	stream->ending = true;
	stream->fence_dropped = dropped;
	stream->end_id = id;
}
