/* SPDX-License-Identifier: Apache-2.0 */
/* stream: the events of one sandbox on their way to the log: the rings of its workers, its dropped
 * packets, the supervisor's events about it. */
#ifndef VETHGUARD_SRC_RECORDER_INPUT_STREAM_H
#define VETHGUARD_SRC_RECORDER_INPUT_STREAM_H

#include "vethguard/base/table.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/ipc/ring.h"
#include "recorder/input/packets.h"
#include "recorder/ocsf/ocsf.h"
#include "recorder/output/checkpoint.h"
#include "recorder/output/summary.h"

/* Of the supervisor's events of one sandbox, while the log cannot be written. */
#define RECORDER_OWN_MAX (256u << 10)
#define RECORDER_SOURCES_MAX MESSAGE_RECORDER_RINGS_MAX
#define RECORDER_SOURCES_ALL_MAX MESSAGE_RECORDER_RINGS_ALL_MAX /* of all streams */

struct recorder;

/* One ring of a sandbox, written by one worker. */
struct ring_source {
	struct ring_source *next;
	struct stream *stream;
	uint64_t id; /* unique in its sandbox */
	struct ring ring;
	struct loop_io data; /* the ring's eventfd */
	bool broken;         /* the worker wrote something invalid: nothing more is read */
	bool drained;        /* it was empty at the last look, and all is in the file */
	bool ending;         /* its writer is gone */
	uint64_t end_id;     /* id of the message to answer when it is drained */
	size_t before_own;   /* bytes of records older than the supervisor's events */
};

/* The note of a stream, apart from its rings and its counts (output/checkpoint.h). */
struct stream_noted {
	uint64_t sequence, told, fence_base;
	bool packets_lost;
};

/* The noted position of a ring. */
struct ring_source_note {
	uint64_t id, position;
	uint8_t broken;
};

/* The events of one sandbox. */
struct stream {
	struct stream *next;
	UT_hash_handle hh; /* by the sandbox's id */
	struct stream *awake_prev, *awake_next;
	bool awake; /* in the recorder's list of awake streams */
	struct checkpoint_place place;
	struct recorder *recorder;
	struct ocsf_sandbox ocsf;
	struct summary summary;
	struct ring_source *readers;
	size_t ring_source_count;
	/* Notes of rings that the supervisor has not given yet. */
	struct ring_source_note known[RECORDER_SOURCES_MAX];
	size_t known_count;
	int nflog_fd; /* owned; -1: none */
	struct loop_io nflog;
	struct packets packets;
	/* The supervisor's events: struct own_event and the encoded bytes of each. */
	struct buf own;
	/* Ids of the supervisor's last event that became a line, and of the last that the
	 * supervisor was told of. */
	uint64_t told, acknowledged;
	bool packets_lost; /* since the last finding */
	int64_t lost_noted_ms;
	bool drained; /* it had nothing more at the last look, and all is in the file */
	bool ending;
	/* Packets the fence had counted before this stream; or MESSAGE_DROPPED_UNKNOWN. */
	uint64_t fence_base;
	bool count_due; /* ask for the fence's count at count_next_ms */
	int64_t count_next_ms;
	uint64_t fence_dropped; /* packets the fence has counted, from END */
	uint64_t end_id;        /* id of the message to answer with the summary */
};

/* stream.c */
/* Takes ownership of packets, the NFLOG socket or -1. Returns 0 or -errno (it is closed then). */
int stream_open(struct recorder *recorder, const struct message_recorder_sandbox *m, int packets);
void stream_close(struct stream *stream);
struct stream *stream_find(struct recorder *recorder, uint64_t sandbox_id);
/* Continues where the previous recorder stopped. */
void stream_resume(struct stream *stream, const struct stream_noted *noted);
/* Keeps the noted position of a ring until the ring comes. */
void stream_keep_ring(struct stream *stream, const struct ring_source_note *note);
/* Call this when everything that the stream has read is in the file: frees room in the rings, and
 * tells the supervisor which events are recorded. */
void stream_acknowledge(struct stream *stream);
/* Ends the stream of a sandbox that is over. Message id is answered with the summary when
 * everything is written. dropped: packets that the fence has counted. */
void stream_end(struct stream *stream, uint64_t dropped, uint64_t id);
/* Formats what has come, up to its share. Returns 1: there is more; 0; -ENOMEM: no room, nothing
 * was read; -EIO. */
int stream_drain(struct stream *stream, bool all);
/* Returns a random id, for an event made by the recorder. */
uint64_t stream_new_id(void);
/* Writes one event as a line. Returns 0 or -errno: nothing was recorded. */
int stream_record(struct stream *stream, const struct event *event);
int stream_record_finding(struct stream *stream, enum event_finding finding, const char *detail);
/* Writes the line that ends the log's file, as one of the daemon. Returns 0, also if no daemon is
 * known, because a run ends no file; -errno: nothing was recorded. */
int stream_record_log_end(struct recorder *recorder);
/* Makes room for one more line: without it nothing may be taken from anywhere. */
bool stream_has_room(struct stream *stream);
/* Returns true if its rings are empty, and a wake-up will tell when that changes. */
bool stream_sleep(struct stream *stream);
/* It has its turn from the next batch on. */
void stream_wake(struct stream *stream);
/* For a stream whose rings sleep: no turn until it is woken, unless something of it is due at a
 * later time. */
void stream_rest(struct stream *stream);

/* supervisor_events.c */
/* Takes an event of the supervisor; ids grow. It is recorded after what the workers have reported
 * so far, or ignored if the previous recorder has recorded it. Returns 0, or -EBADMSG, -ENOBUFS,
 * -ENOMEM. */
int stream_take(struct stream *stream, uint64_t id, struct slice encoded);
/* Records the events whose turn has come; all: the last event too. Returns 0 or -errno: the rest
 * waits. */
int stream_drain_supervisor_events(struct stream *stream, bool all);

/* dropped.c */
/* Watches the NFLOG socket in the loop from now on. Returns 0 or -errno. */
int stream_hear_packets(struct stream *stream);
/* Like stream_drain(); all: also kinds whose window is not over. */
int stream_drain_packets(struct stream *stream, bool all);
/* The fence has dropped this many packets, including those before this stream: also counts those
 * without a copy. */
void stream_fence_counted(struct stream *stream, uint64_t dropped);

/* ring_source.c */
/* Takes ownership of the three descriptors. Returns 0 or -errno (they are closed then). */
int ring_source_open(struct stream *stream, uint64_t id, const int fds[3]);
void ring_source_close(struct ring_source *reader);
struct ring_source *ring_source_find(struct stream *stream, uint64_t id);
/* Ends a ring whose writer is gone. Message id is answered when the ring is drained. */
void ring_source_end(struct ring_source *reader, uint64_t id);
/* Like stream_drain(), until the log's pending bytes reach limit. */
int ring_source_drain(struct ring_source *reader, size_t limit);
bool ring_source_sleep(struct ring_source *reader);

#endif
