/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream: theory of operation
 *
 * Everything that a sandbox's line is made of arrives here: its workers' events in their rings
 * (feed.c), copies of dropped packets on the NFLOG socket, the supervisor's own events. Sequence,
 * totals and packet counts are the sandbox's; workers and their rings come and go under them.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#include "recorder/recorder.h"

#define NFLOG_BYTES_MAX 65536
#define NFLOG_READS_MAX 32   /* per turn of the loop */
#define NFLOG_ROUNDS_MAX 256 /* of them, to have read what was there before a count */

/* Before each of the supervisor's events. */
struct own_event {
	uint64_t id;
	size_t n;
};

_Static_assert(
        MESSAGE_RECORDER_AHEAD_MAX <= RECORDER_OWN_MAX, "what the supervisor may send has room");
_Static_assert(
        sizeof(struct own_event) <= MESSAGE_RECORDER_EVENT_COST, "and with what is noted of it");
_Static_assert(RECORDER_COUNT_MS <= PACKETS_WINDOW_MS, "a window's end finds the question due");

static uint64_t new_id(void)
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
	        .id = new_id(),
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
	        .id = new_id(),
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

/* Each feed in turn gets an equal part of what is left of the sandbox's share. */
static int drain_feeds(struct stream *stream)
{
	size_t start = stream->recorder->log.pending.len, turn = 0;
	int more = 0;

	for (struct feed *feed = stream->feeds; feed; feed = feed->next) {
		int rc = feed_drain(
		        feed, start + RECORDER_SHARE_BYTES * ++turn / stream->feed_count);

		if (rc < 0)
			return rc;
		feed->drained = rc == 0;
		more |= rc;
	}
	return more;
}

int stream_take(struct stream *stream, uint64_t id, struct slice encoded)
{
	const struct own_event head = {id, encoded.n};
	struct event event;

	if (encoded.n > EVENT_BYTES_MAX ||
	        event_decode((const uint8_t *)encoded.p, encoded.n, &event) != 0)
		return -EBADMSG;
	stream_wake(stream);
	if (id <= stream->told) {
		stream->acknowledged = 0; /* it did not hear of it: said once more */
		return 0;
	}
	if (!buf_reserve(&stream->own, sizeof(head) + encoded.n))
		return stream->own.len > RECORDER_OWN_MAX / 2 ? -ENOBUFS : -ENOMEM;
	for (struct feed *feed = stream->feeds; feed && stream->own.len == 0; feed = feed->next)
		feed->before_own = RING_BYTES;
	buf_append(&stream->own, &head, sizeof(head));
	buf_append_slice(&stream->own, encoded);
	return 0;
}

static bool is_own_turn(const struct stream *stream)
{
	const struct feed *feed = stream->feeds;

	while (feed && (feed->broken || feed->before_own == 0))
		feed = feed->next;
	return !feed;
}

/* A stop that nothing follows. One does where a daemon that was started anew goes on with a
 * sandbox. */
static bool is_last_word(
        const struct stream *stream, const struct own_event *head, const struct event *event)
{
	return event->kind == EVENT_LIFECYCLE && event->lifecycle == EVENT_STOP &&
	       stream->own.len == sizeof(*head) + head->n && stream->nflog_fd >= 0;
}

/* The supervisor's events, once all records are read that were in the rings before them. The last
 * word waits until all is written that has come before the end: counts of packets, too. */
static int drain_own(struct stream *stream, bool all)
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

static bool emit_packet(void *context, struct event *event)
{
	struct stream *stream = context;

	if (stream->recorder->log.pending.len > RECORDER_BATCH_BYTES || !stream_has_room(stream))
		return false;
	event->id = new_id();
	return stream_record(stream, event) == 0;
}

static int note_lost_packets(struct stream *stream, int64_t now_ms, bool all)
{
	if (!stream->packets_lost ||
	        (!all && now_ms < stream->lost_noted_ms + RECORDER_LOST_NOTE_MS))
		return 0;
	if (!stream_has_room(stream))
		return -ENOMEM;
	stream->packets_lost = false;
	stream->lost_noted_ms = now_ms;
	return stream_record_finding(stream, EVENT_FINDING_PACKETS_LOST,
	        "Dropped packets came faster than their copies could be read: the counts of "
	        "dropped "
	        "packets are a lower bound. The packets themselves were all dropped.");
}

static void count_packet(void *context, const struct nflog_packet *packet)
{
	struct stream *stream = context;
	int64_t now_ms = clock_monotonic_ms();

	if (stream->copies++ == 0)
		stream->count_next_ms = now_ms + RECORDER_COUNT_MS;
	if (packets_add(&stream->packets, packet, clock_real_ms(), now_ms) != 0)
		stream->packets_lost = true;
}

/* Reads copies of dropped packets; true: there may be more. */
static bool read_nflog(struct stream *stream)
{
	static uint8_t datagram[NFLOG_BYTES_MAX];

	for (int i = 0; stream->nflog_fd >= 0 && i < NFLOG_READS_MAX; i++) {
		ssize_t n = recv(
		        stream->nflog_fd, datagram, sizeof(datagram), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && errno == ENOBUFS) {
			stream->packets_lost = true;
			continue;
		}
		if (n <= 0)
			return n < 0 && errno == EINTR;
		if ((size_t)n > sizeof(datagram) ||
		        nflog_parse(datagram, (size_t)n, count_packet, stream) != 0)
			stream->packets_lost = true;
	}
	return stream->nflog_fd >= 0;
}

/* Copies are made before packets are counted, so once every copy has been read that was there when
 * the fence told its count, what is missing has none. */
static void count_uncopied(struct stream *stream, uint64_t dropped)
{
	uint64_t seen =
	        stream->fence_base + stream->summary.dropped + packets_counted(&stream->packets);

	if (stream->fence_base == MESSAGE_DROPPED_UNKNOWN || dropped <= seen)
		return;
	if (packets_add_uncopied(
	            &stream->packets, dropped - seen, clock_real_ms(), clock_monotonic_ms()) != 0)
		stream->packets_lost = true;
}

void stream_fence_counted(struct stream *stream, uint64_t dropped)
{
	bool more = true;

	for (int i = 0; i < NFLOG_ROUNDS_MAX && more; i++)
		more = read_nflog(stream);
	if (!more)
		count_uncopied(stream, dropped);
}

/* What comes too fast to be copied is in the fence's count only, which the supervisor reads. The
 * end of a window of the kind that was copied wakes this up. */
static void ask_count(struct stream *stream, int64_t now_ms)
{
	if (stream->copies == 0 || now_ms < stream->count_next_ms ||
	        stream->fence_base == MESSAGE_DROPPED_UNKNOWN)
		return;
	stream->copies = 0;
	control_ask_count(stream->recorder, stream->ocsf.uid);
}

static int drain_packets(struct stream *stream, bool all)
{
	int64_t now_ms = clock_monotonic_ms();
	int rc;

	bool more = read_nflog(stream);
	while (all && more)
		more = read_nflog(stream);
	rc = note_lost_packets(stream, now_ms, all);
	if (rc != 0)
		return rc;
	if (!all)
		ask_count(stream, now_ms);
	else if (stream->ending && stream->fence_dropped)
		count_uncopied(stream, stream->fence_dropped);
	if (!packets_collect(&stream->packets, now_ms, all, emit_packet, stream))
		return 1;
	return all ? 0 : more;
}

int stream_drain(struct stream *stream, bool all)
{
	int more = drain_feeds(stream);
	int packets, own;

	if (more < 0)
		return more;
	packets = drain_packets(stream, all && more == 0);
	if (packets < 0)
		return packets;
	own = drain_own(stream, all && more == 0 && packets == 0);
	stream->drained = own == 0 && !more && !packets && stream->own.len == 0;
	return own < 0 ? own : more || packets;
}

bool stream_sleep(struct stream *stream)
{
	bool asleep = true;

	for (struct feed *feed = stream->feeds; feed; feed = feed->next)
		asleep &= feed_sleep(feed);
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
	if (stream->own.len == 0 && !stream->packets_lost && !stream->ending && !stream->unnoted &&
	        stream->packets.next_due_ms == INT64_MAX)
		leave_awake(stream);
}

static void on_nflog(struct loop_io *io, unsigned events)
{
	struct stream *stream = container_of(io, struct stream, nflog);

	/* As a rule read with the next batch: what has been read has to be noted soon. */
	(void)events;
	stream_wake(stream);
	if (stream->recorder->state == RECORDER_FLOWS)
		pump_later(stream->recorder);
	else
		read_nflog(stream);
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
		rc = notes_apply(stream);
	if (rc == 0 && packets >= 0)
		rc = loop_io_open(recorder->loop, &stream->nflog, packets, LOOP_READ, on_nflog);
	stream->ocsf.gate4 = m->gate4;
	stream->ocsf.gate6 = m->gate6;
	stream->next = recorder->streams;
	recorder->streams = stream;
	recorder->stream_count++;
	stream->unnoted = true;
	HASH_ADD_KEYPTR(hh, recorder->by_id, &stream->ocsf.uid, sizeof stream->ocsf.uid, stream);
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
	notes_forget(stream);
	if (stream->hh.tbl)
		HASH_DEL(stream->recorder->by_id, stream);
	leave_awake(stream);
	while (stream->feeds)
		feed_close(stream->feeds);
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

	HASH_FIND(hh, recorder->by_id, &sandbox_id, sizeof sandbox_id, stream);
	return stream;
}
