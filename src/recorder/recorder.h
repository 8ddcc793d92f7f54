/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: the program's parts: one log, one supervisor, and one stream of events per sandbox, fed
 * by the rings of its workers and by the supervisor. */
#ifndef VETHGUARD_SRC_RECORDER_RECORDER_H
#define VETHGUARD_SRC_RECORDER_RECORDER_H

#include "vethguard/base/table.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/ipc/ring.h"

#include "recorder/output/log_file.h"
#include "recorder/output/checkpoint.h"
#include "recorder/ocsf/ocsf.h"
#include "recorder/input/packets.h"
#include "recorder/output/summary.h"

#define RECORDER_BATCH_DELAY_MS 10 /* from a wake-up to the write for it */
/* Of lines; when so many are pending, they are written before more are formatted. */
#define RECORDER_BATCH_BYTES (256u << 10)
#define RECORDER_SHARE_BYTES (64u << 10) /* of one sandbox before the next one's turn */
#define RECORDER_PENDING_MAX (RECORDER_BATCH_BYTES + RECORDER_SHARE_BYTES + 2 * OCSF_LINE_MAX)
/* At most this long until lines are on the disk, not only in the file. */
#define RECORDER_SYNC_MS 1000
#define RECORDER_RETRY_MS 1000 /* while the log cannot be written */
#define RECORDER_ORPHAN_MS 100 /* from the supervisor's death to the end of its workers, amply */
/* For other recorders of the same file, or for the file that follows it; a longer wait counts as a
 * failure. */
#define RECORDER_LOCK_WAIT_MS 2000
/* Of the supervisor's events of one sandbox, while the log cannot be written. */
#define RECORDER_OWN_MAX (256u << 10)
#define RECORDER_SOURCES_MAX MESSAGE_RECORDER_RINGS_MAX
#define RECORDER_STREAMS_MAX MESSAGE_RECORDER_SANDBOXES_MAX
/* Interval of findings about lost copies of packets. */
#define RECORDER_LOST_NOTE_MS 5000
/* From the first copy of a dropped packet to asking for the fence's count. */
#define RECORDER_COUNT_MS 5000

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
	bool awake;  /* in the recorder's list of awake streams */
	size_t note; /* index in the recorder's noted, if is_noted */
	bool is_noted;
	bool unnoted; /* changed since its note, apart from what it has read */
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

/* Where a stream's note was written last. */
struct noted {
	struct stream *stream;
	size_t at, bytes;
};

enum recorder_state {
	RECORDER_FLOWS,
	RECORDER_WAITS,
	RECORDER_STALLED,
	RECORDER_DONE,
	RECORDER_STATE_COUNT
};

struct recorder {
	struct loop *loop;
	struct ipc_peer supervisor;
	struct log_file log;
	/* Fingerprint of the last line in the file; "": none yet. */
	char head[SEAL_HASH_DIGITS + 1];
	struct journal journal;
	bool begun; /* the pending batch is in the journal and goes to the file as it is */
	struct buf inherited; /* notes of the previous recorder */
	struct stream *streams, *by_id;
	size_t stream_count;
	/* Streams of which something may have to be read, written or noted. All others sleep: a
	 * batch costs nothing for them, and a wake-up tells when that changes. */
	struct stream *awake;
	/* checkpoint holds only the notes that noted lists; for awake streams those of the last
	 * batch, if there was one. */
	bool checkpoint_whole;
	struct noted noted[RECORDER_STREAMS_MAX];
	size_t noted_count;
	size_t checkpoint_bytes;
	/* The notes of all as last written; of one. */
	uint8_t checkpoint[JOURNAL_NOTES_MAX], note[JOURNAL_NOTES_MAX];
	enum recorder_state state;
	int64_t waits_since_ms;
	int stall_error;
	bool reopening; /* use the files below as soon as nothing is pending */
	int next_log, next_reader;
	uint64_t reopen_id; /* id of the message to answer then */
	bool asked;         /* for the file that follows an ended one */
	bool stopping;
	uint64_t stop_id; /* id of the message to answer when all is written */
	int status;       /* of the program */
	struct loop_timer batch, retry, sync, packets;
	bool batch_due, sync_due; /* the timer is set */
	uint8_t record[RING_RECORD_MAX];
	uint8_t message[MESSAGE_BYTES_MAX];
};

/* stream.c */
/* Takes ownership of packets, the NFLOG socket or -1. Returns 0 or -errno (it is closed then). */
int stream_open(struct recorder *recorder, const struct message_recorder_sandbox *m, int packets);
void stream_close(struct stream *stream);
struct stream *stream_find(struct recorder *recorder, uint64_t sandbox_id);
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
/* Like stream_drain(), until the log's pending bytes reach limit. */
int ring_source_drain(struct ring_source *reader, size_t limit);
bool ring_source_sleep(struct ring_source *reader);

/* batch_writer.c: from the streams to the log */
int batch_writer_open(struct recorder *recorder);
void batch_writer_close(struct recorder *recorder);
/* Writes a batch after a delay that lets it grow. */
void batch_writer_later(struct recorder *recorder);
void batch_writer_now(struct recorder *recorder);

/* control.c: the supervisor's messages */
/* Waits for the supervisor's first message and opens the log that comes with it. Returns 0 or
 * -errno. */
int control_receive_start(struct recorder *recorder, int fd, uint64_t *start_id);
/* Takes ownership of fd, adds it to the loop, and reports that the recorder is ready. Returns 0 or
 * -errno. */
int control_open(struct recorder *recorder, int fd, uint64_t start_id);
void control_tell(struct recorder *recorder, enum message_type type, uint64_t id, const char *text);
void control_ask_count(struct recorder *recorder, uint64_t sandbox_id);
void control_summary(struct recorder *recorder, struct stream *stream);
void control_stopped(struct recorder *recorder);

#endif
