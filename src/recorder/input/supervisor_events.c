/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's own events of a sandbox. They wait in memory until everything is recorded that
 * workers had reported before they came, so that the log has events in the order in which they
 * happened. The last event waits for everything else.
 */
#include <errno.h>

#include "recorder/recorder.h"

/* Precedes each of the supervisor's events. */
struct own_event {
	uint64_t id;
	size_t n;
};

_Static_assert(
        MESSAGE_RECORDER_AHEAD_MAX <= RECORDER_OWN_MAX, "what the supervisor may send has room");
_Static_assert(
        sizeof(struct own_event) <= MESSAGE_RECORDER_EVENT_COST, "and with what is noted of it");

int stream_take(struct stream *stream, uint64_t id, struct slice encoded)
{
	const struct own_event head = {id, encoded.n};
	struct event event;

	if (encoded.n > EVENT_BYTES_MAX ||
	        event_decode((const uint8_t *)encoded.p, encoded.n, &event) != 0)
		return -EBADMSG;
	stream_wake(stream);
	if (id <= stream->told) {
		stream->acknowledged = 0; /* the supervisor was not told of it: tell it again */
		return 0;
	}
	if (!buf_reserve(&stream->own, sizeof(head) + encoded.n))
		return stream->own.len > RECORDER_OWN_MAX / 2 ? -ENOBUFS : -ENOMEM;
	for (struct ring_source *reader = stream->readers; reader && stream->own.len == 0;
	        reader = reader->next)
		reader->before_own = RING_BYTES;
	buf_append(&stream->own, &head, sizeof(head));
	buf_append_slice(&stream->own, encoded);
	return 0;
}

static bool is_own_turn(const struct stream *stream)
{
	const struct ring_source *reader = stream->readers;

	while (reader && (reader->broken || reader->before_own == 0))
		reader = reader->next;
	return !reader;
}

/* True for a STOP with nothing after it. Something follows when a restarted daemon continues with a
 * sandbox. */
static bool is_last_word(
        const struct stream *stream, const struct own_event *head, const struct event *event)
{
	return event->kind == EVENT_LIFECYCLE && event->lifecycle == EVENT_STOP &&
	       stream->own.len == sizeof(*head) + head->n && stream->nflog_fd >= 0;
}

/* Records the supervisor's events, once all records are read that were in the rings before them.
 * The last event waits until everything that came before the end is written, including counts of
 * packets. */
int stream_drain_supervisor_events(struct stream *stream, bool all)
{
	while (stream->own.len && is_own_turn(stream)) {
		struct own_event head;
		struct event event;
		int rc;

		if (!stream_has_room(stream))
			return -ENOMEM;
		memcpy(&head, buf_bytes(&stream->own), sizeof(head));
		event_decode(buf_bytes(&stream->own) + sizeof(head), head.n, &event);
		if (is_last_word(stream, &head, &event) && !all)
			return 0;
		rc = event.lifecycle == EVENT_POLICY_CHANGED
		             ? ocsf_sandbox_policy(&stream->ocsf, event.policy, event.fingerprint)
		             : 0;
		if (rc == 0)
			rc = stream_record(stream, &event);
		if (rc != 0)
			return rc;
		stream->told = head.id;
		buf_consume(&stream->own, sizeof(head) + head.n);
	}
	return 0;
}
