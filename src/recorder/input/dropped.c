/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's dropped packets: copies come on the NFLOG socket and are gathered (packets.c) until
 * they become events. Lost copies are a finding. Packets that the fence dropped faster than it
 * copies them are only in its count, which the supervisor reads on request.
 */
#include <errno.h>
#include <sys/socket.h>

#include "vethguard/base/clock.h"

#include "recorder/recorder.h"

#define NFLOG_BYTES_MAX 65536
#define NFLOG_READS_MAX 32   /* per turn of the loop */
#define NFLOG_ROUNDS_MAX 256 /* at most, to read what was there before a count */

_Static_assert(RECORDER_COUNT_MS <= PACKETS_WINDOW_MS, "a window's end finds the question due");

static bool emit_packet(void *context, struct event *event)
{
	struct stream *stream = context;

	if (stream->recorder->log.pending.len > RECORDER_BATCH_BYTES || !stream_has_room(stream))
		return false;
	event->id = stream_new_id();
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
	        "dropped packets are a lower bound. The packets themselves were all dropped.");
}

static void count_packet(void *context, const struct nflog_packet *packet)
{
	struct stream *stream = context;
	int64_t now_ms = clock_monotonic_ms();

	if (!stream->count_due)
		stream->count_next_ms = now_ms + RECORDER_COUNT_MS;
	stream->count_due = true;
	if (packets_add(&stream->packets, packet, clock_real_ms(), now_ms) != 0)
		stream->packets_lost = true;
}

/* Reads copies of dropped packets. Returns true if there may be more. */
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

/* The fence copies a packet before it counts it. So once every copy that was there at the time of
 * the count has been read, the difference is packets without a copy. */
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

/* Packets that come too fast to be copied are only in the fence's count, which the supervisor
 * reads. The end of the window of a kind that was copied calls this. */
static void ask_count(struct stream *stream, int64_t now_ms)
{
	if (!stream->count_due || now_ms < stream->count_next_ms ||
	        stream->fence_base == MESSAGE_DROPPED_UNKNOWN)
		return;
	stream->count_due = false;
	tell_ask_count(stream->recorder, stream->ocsf.uid);
}

int stream_drain_packets(struct stream *stream, bool all)
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

static void on_nflog(struct loop_io *io, unsigned events)
{
	struct stream *stream = container_of(io, struct stream, nflog);

	/* Usually read with the next batch: what is read has to be noted soon. */
	(void)events;
	stream_wake(stream);
	if (stream->recorder->state == RECORDER_FLOWS)
		batch_writer_later(stream->recorder);
	else
		read_nflog(stream);
}

int stream_hear_packets(struct stream *stream)
{
	return loop_io_open(
	        stream->recorder->loop, &stream->nflog, stream->nflog_fd, LOOP_READ, on_nflog);
}
