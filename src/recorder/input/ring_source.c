/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_source: one ring of a sandbox, written by one worker, which an attacker may control. A
 * record that does not decode, or of a kind that workers do not report, ends the reading of this
 * ring with a finding, and the supervisor cuts the sandbox off. What a dead worker left is read to
 * the end like everything else.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"

#include "recorder/recorder.h"

static int end_broken(struct ring_source *reader, const char *why)
{
	struct stream *stream = reader->stream;
	char text[512], name[2 * OCSF_NAME_MAX];

	reader->broken = true;
	loop_io_close(&reader->data);
	slice_escape(slice_from_string(stream->ocsf.name), name, sizeof(name));
	snprintf(text, sizeof(text), "The worker of sandbox %s broke its event stream: %s.", name,
	        why);
	log_error("%s", text);
	tell_supervisor(stream->recorder, MESSAGE_FAILED, stream->ocsf.uid, text);
	return stream_record_finding(stream, EVENT_FINDING_BROKEN_STREAM, why);
}

static int take_record(struct ring_source *reader, int n)
{
	const uint8_t *record = reader->stream->recorder->record;
	struct event event;

	if (n < 0)
		return end_broken(reader, "the ring's positions or lengths are impossible");
	if (event_decode(record, (size_t)n, &event) != 0)
		return end_broken(reader, "a record cannot be decoded");
	if (!event_kind_is_of_worker(event.kind))
		return end_broken(reader, "a record is of a kind that workers do not report");
	log_debug("%s: event %016" PRIx64 ": read from ring %" PRIu64 ", %d bytes",
	        reader->stream->ocsf.name, event.id, reader->id, n);
	return stream_record(reader->stream, &event);
}

int ring_source_drain(struct ring_source *reader, size_t limit)
{
	struct recorder *r = reader->stream->recorder;

	while (!reader->broken && r->log.pending.len < limit) {
		int n, rc;

		if (!stream_has_room(reader->stream))
			return -ENOMEM;
		n = ring_read(&reader->ring, r->record);
		if (n == 0) {
			reader->before_own = 0;
			return 0;
		}
		if (n > 0)
			reader->before_own -=
			        (size_t)n < reader->before_own ? (size_t)n : reader->before_own;
		rc = take_record(reader, n);
		if (rc != 0)
			return rc;
	}
	return reader->broken ? 0 : 1;
}

bool ring_source_sleep(struct ring_source *reader)
{
	return reader->broken || ring_sleep(&reader->ring);
}

static void on_data(struct loop_io *io, unsigned events)
{
	struct stream *stream = container_of(io, struct ring_source, data)->stream;

	(void)events;
	stream_wake(stream);
	batch_writer_later(stream->recorder);
}

/* Edge-triggered: each wake-up of the writer is an edge, and ring_sleep() empties the eventfd. */
static int watch(struct ring_source *reader)
{
	if (reader->broken)
		return 0;
	return loop_io_open(reader->stream->recorder->loop, &reader->data, reader->ring.data_fd,
	        LOOP_READ, on_data);
}

/* Sets a new ring to the noted position. */
static void go_to_note(struct ring_source *reader)
{
	struct stream *stream = reader->stream;

	for (size_t i = 0; i < stream->known_count; i++) {
		struct ring_source_note *known = &stream->known[i];

		if (known->id != reader->id)
			continue;
		ring_seek(&reader->ring, known->position);
		reader->broken = known->broken;
		*known = stream->known[--stream->known_count];
		return;
	}
	ring_seek_unknown(&reader->ring);
}

int ring_source_open(struct stream *stream, uint64_t id, const int fds[3])
{
	struct ring_source *reader = calloc(1, sizeof(*reader));
	int rc;

	if (!reader) {
		for (int i = 0; i < 3; i++)
			close(fds[i]);
		return -ENOMEM;
	}
	reader->stream = stream;
	reader->id = id;
	rc = ring_open_reader(&reader->ring, fds[0], fds[1], fds[2]);
	reader->next = stream->readers;
	stream->readers = reader;
	stream->ring_source_count++;
	stream->recorder->ring_count++;
	checkpoint_change(&stream->place);
	stream_wake(stream);
	if (rc == 0) {
		go_to_note(reader);
		rc = watch(reader);
	}
	if (rc != 0)
		ring_source_close(reader);
	return rc;
}

void ring_source_close(struct ring_source *reader)
{
	struct ring_source **at = &reader->stream->readers;

	while (*at != reader)
		at = &(*at)->next;
	*at = reader->next;
	reader->stream->ring_source_count--;
	reader->stream->recorder->ring_count--;
	checkpoint_change(&reader->stream->place); /* the stream is awake if it lives on */
	loop_io_close(&reader->data);
	ring_close(&reader->ring);
	free(reader);
}

struct ring_source *ring_source_find(struct stream *stream, uint64_t id)
{
	struct ring_source *reader = stream->readers;

	while (reader && reader->id != id)
		reader = reader->next;
	return reader;
}

void ring_source_end(struct ring_source *reader, uint64_t id)
{
	reader->ending = true;
	reader->end_id = id;
}
