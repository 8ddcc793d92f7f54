/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed: one ring of a sandbox, written by one worker, which may be in an attacker's hands: a record
 * that does not decode, or of a kind that a worker has no business to report, ends the feed with a
 * finding, and the supervisor cuts the sandbox off. What a dead worker left is read to the end like
 * everything else.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"

#include "recorder/recorder.h"

static int end_broken(struct feed *feed, const char *why)
{
	struct stream *stream = feed->stream;
	char text[512], name[2 * OCSF_NAME_MAX];

	feed->broken = true;
	loop_io_close(&feed->data);
	slice_escape(slice_from_string(stream->ocsf.name), name, sizeof(name));
	snprintf(text, sizeof(text), "The worker of sandbox %s broke its event stream: %s.", name,
	        why);
	log_error("%s", text);
	control_tell(stream->recorder, MESSAGE_FAILED, stream->ocsf.uid, text);
	return stream_record_finding(stream, EVENT_FINDING_BROKEN_STREAM, why);
}

static int take_record(struct feed *feed, int n)
{
	const uint8_t *record = feed->stream->recorder->record;
	struct event event;

	if (n < 0)
		return end_broken(feed, "the ring's positions or lengths are impossible");
	if (event_decode(record, (size_t)n, &event) != 0)
		return end_broken(feed, "a record cannot be decoded");
	if (!event_kind_is_of_worker(event.kind))
		return end_broken(feed, "a record is of a kind that workers do not report");
	return stream_record(feed->stream, &event);
}

int feed_drain(struct feed *feed, size_t limit)
{
	struct recorder *r = feed->stream->recorder;

	while (!feed->broken && r->log.pending.len < limit) {
		int n, rc;

		if (!stream_has_room(feed->stream))
			return -ENOMEM;
		n = ring_read(&feed->ring, r->record);
		if (n == 0) {
			feed->before_own = 0;
			return 0;
		}
		if (n > 0)
			feed->before_own -=
			        (size_t)n < feed->before_own ? (size_t)n : feed->before_own;
		rc = take_record(feed, n);
		if (rc != 0)
			return rc;
	}
	return feed->broken ? 0 : 1;
}

bool feed_sleep(struct feed *feed)
{
	return feed->broken || ring_sleep(&feed->ring);
}

static void on_data(struct loop_io *io, unsigned events)
{
	struct stream *stream = container_of(io, struct feed, data)->stream;

	(void)events;
	stream_wake(stream);
	pump_later(stream->recorder);
}

/* Edge-triggered: each wake-up of the writer is an edge, and ring_sleep() empties the eventfd. */
static int watch(struct feed *feed)
{
	if (feed->broken)
		return 0;
	return loop_io_open(
	        feed->stream->recorder->loop, &feed->data, feed->ring.data_fd, LOOP_READ, on_data);
}

int feed_open(struct stream *stream, uint64_t id, const int fds[3])
{
	struct feed *feed = calloc(1, sizeof(*feed));
	int rc;

	if (!feed) {
		for (int i = 0; i < 3; i++)
			close(fds[i]);
		return -ENOMEM;
	}
	feed->stream = stream;
	feed->id = id;
	rc = ring_open_reader(&feed->ring, fds[0], fds[1], fds[2]);
	feed->next = stream->feeds;
	stream->feeds = feed;
	stream->feed_count++;
	stream->unnoted = true;
	stream_wake(stream);
	if (rc == 0) {
		notes_apply_feed(feed);
		rc = watch(feed);
	}
	if (rc != 0)
		feed_close(feed);
	return rc;
}

void feed_close(struct feed *feed)
{
	struct feed **at = &feed->stream->feeds;

	while (*at != feed)
		at = &(*at)->next;
	*at = feed->next;
	feed->stream->feed_count--;
	feed->stream->unnoted = true; /* and awake, where it lives on */
	loop_io_close(&feed->data);
	ring_close(&feed->ring);
	free(feed);
}

struct feed *feed_find(struct stream *stream, uint64_t id)
{
	struct feed *feed = stream->feeds;

	while (feed && feed->id != id)
		feed = feed->next;
	return feed;
}
