/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: the program's parts. One log, one stream of events per sandbox, fed by the rings of its
 * workers and by the supervisor, one supervisor. */
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

#define RECORDER_BATCH_DELAY_MS 10 /* from a wake-up to the write that covers it */
#define RECORDER_BATCH_BYTES \
	(256u << 10) /* of lines; then they are written before more are formatted */
#define RECORDER_SHARE_BYTES (64u << 10) /* of one sandbox before the next one's turn */
#define RECORDER_PENDING_MAX (RECORDER_BATCH_BYTES + RECORDER_SHARE_BYTES + 2 * OCSF_LINE_MAX)
#define RECORDER_SYNC_MS \
	1000 /* at most this long until lines are on the disk, not only in the file */
#define RECORDER_RETRY_MS 1000 /* while the log cannot be written */
#define RECORDER_ORPHAN_MS 100 /* from the supervisor's death to the end of its workers, amply */
#define RECORDER_LOCK_WAIT_MS                                                                    \
	2000 /* for other recorders of the same file, or for the file that follows it; then that \
	      * counts as a failure */
#define RECORDER_OWN_MAX                                                                           \
	(256u << 10) /* of the supervisor's events of one sandbox, while the log cannot be written \
	              */
#define RECORDER_SOURCES_MAX MESSAGE_RECORDER_RINGS_MAX
#define RECORDER_STREAMS_MAX MESSAGE_RECORDER_SANDBOXES_MAX
#define RECORDER_LOST_NOTE_MS \
	5000 /* at most one finding per so long about copies of packets that were lost */
#define RECORDER_COUNT_MS \
	5000 /* from the first copy of a dropped packet to the question for the fence's count */

struct recorder;

/* One ring of a sandbox: its workers come and go, each with one of its own. */
struct ring_source {
	struct ring_source *next;
	struct stream *stream;
	uint64_t id; /* unique in its sandbox */
	struct ring ring;
	struct loop_io data; /* the ring's eventfd */
	bool broken;     /* the worker wrote what no worker writes: nothing more is read from it */
	bool drained;    /* it was empty when last looked at, and that is in the file */
	bool ending;     /* its writer is gone */
	uint64_t end_id; /* message to answer when it is drained */
	size_t before_own; /* bytes of its records that are older than the supervisor's events */
};

/* How far a ring is read, as noted. */
struct ring_source_note {
	uint64_t id, position;
	uint8_t broken;
};

/* The events of one sandbox. */
struct stream {
	struct stream *next;
	UT_hash_handle hh; /* by the sandbox's id */
	struct stream *awake_prev, *awake_next;
	bool awake;  /* in the recorder's list of these */
	size_t note; /* in the recorder's noted, where is_noted */
	bool is_noted;
	bool unnoted; /* it has changed since, besides what it has read */
	struct recorder *recorder;
	struct ocsf_sandbox ocsf;
	struct summary summary;
	struct ring_source *readers;
	size_t ring_source_count;
	struct ring_source_note
	        known[RECORDER_SOURCES_MAX]; /* of rings that are still to be told */
	size_t known_count;
	int nflog_fd; /* owned; -1: none */
	struct loop_io nflog;
	struct packets packets;
	struct buf own; /* the supervisor's events: struct own_event and bytes each, as they were
	                   encoded */
	uint64_t told, acknowledged; /* ids of the supervisor's last event that became a line, and
	                                that the supervisor has heard of */
	bool packets_lost;           /* since the last note */
	int64_t lost_noted_ms;
	bool drained; /* it had nothing more when last looked at, and that is in the file */
	bool ending;
	uint64_t fence_base; /* packets the fence had counted before this stream;
	                        MESSAGE_DROPPED_UNKNOWN */
	bool count_due;      /* the fence's count is to be asked for, at count_next_ms */
	int64_t count_next_ms;
	uint64_t fence_dropped; /* packets the fence counted, as END tells */
	uint64_t end_id;        /* message to answer with the summary */
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
	char head[SEAL_HASH_DIGITS +
	          1]; /* fingerprint of the last line in the file; "": none yet */
	struct journal journal;
	bool begun;           /* what is pending is in the journal and goes to the file as it is */
	struct buf inherited; /* notes of the recorder before */
	struct stream *streams, *by_id;
	size_t stream_count;
	/* Those of which something may have to be read, written or noted. All others sleep: a batch
	 * costs nothing for them, and a wake-up tells when that changes. */
	struct stream *awake;
	/* Notes has nothing but the notes that noted tells of; of streams that are awake, those of
	 * the last batch, where there was one. */
	bool checkpoint_whole;
	struct noted noted[RECORDER_STREAMS_MAX];
	size_t noted_count;
	size_t checkpoint_bytes;
	uint8_t checkpoint[JOURNAL_NOTES_MAX],
	        note[JOURNAL_NOTES_MAX]; /* of all, as last written; of one */
	enum recorder_state state;
	int64_t waits_since_ms;
	int stall_error;
	bool reopening; /* the files below are to be used as soon as nothing is pending */
	int next_log, next_reader;
	uint64_t reopen_id; /* message to answer then */
	bool asked;         /* for the file that follows one that has ended */
	bool stopping;
	uint64_t stop_id; /* message to answer when all is written */
	int status;       /* of the program */
	struct loop_timer batch, retry, sync, packets;
	bool batch_due, sync_due; /* the timer is set */
	uint8_t record[RING_RECORD_MAX];
	uint8_t message[MESSAGE_BYTES_MAX];
};

/* stream.c */
/* Takes packets, the NFLOG socket or -1. 0 or -errno (it is closed then). */
int stream_open(struct recorder *recorder, const struct message_recorder_sandbox *m, int packets);
void stream_close(struct stream *stream);
struct stream *stream_find(struct recorder *recorder, uint64_t sandbox_id);
/* Formats what has come, up to its share. 1: there is more; 0; -ENOMEM: no room, nothing was read;
 * -EIO. */
int stream_drain(struct stream *stream, bool all);
/* A random one, for an event of the recorder's making. */
uint64_t stream_new_id(void);
/* One event as a line. 0 or -errno: nothing was recorded. */
int stream_record(struct stream *stream, const struct event *event);
int stream_record_finding(struct stream *stream, enum event_finding finding, const char *detail);
/* The line that ends the log's file, as one of the daemon. 0, also where no daemon is known: a run
 * ends no file; -errno: nothing was recorded. */
int stream_record_log_end(struct recorder *recorder);
/* Room for one more line: without it nothing may be taken from anywhere. */
bool stream_has_room(struct stream *stream);
/* True: its rings have nothing, and a wake-up will tell when that changes. */
bool stream_sleep(struct stream *stream);
/* It has its turn from the next batch on. */
void stream_wake(struct stream *stream);
/* Of one whose rings sleep: no turn any more until it is woken, unless something of it waits for
 * its time. */
void stream_rest(struct stream *stream);

/* input/supervisor_events.c */
/* Takes an event of the supervisor, sent under a growing id: it is recorded behind what the workers
 * have reported so far, or passed over where the recorder before has recorded it. 0, or -EBADMSG,
 * -ENOBUFS, -ENOMEM. */
int stream_take(struct stream *stream, uint64_t id, struct slice encoded);
/* Records those whose turn has come; all: the last word, too. 0 or -errno: the rest waits. */
int stream_drain_supervisor_events(struct stream *stream, bool all);

/* dropped.c */
/* The loop tells of copies from now on. 0 or -errno. */
int stream_hear_packets(struct stream *stream);
/* As stream_drain; all: also those whose time to be gathered is not over. */
int stream_drain_packets(struct stream *stream, bool all);
/* The fence has dropped so many packets by now, those before this stream included: what there is no
 * copy of is counted too. */
void stream_fence_counted(struct stream *stream, uint64_t dropped);

/* input/ring_source.c */
/* Takes the three descriptors. 0 or -errno (they are closed then). */
int ring_source_open(struct stream *stream, uint64_t id, const int fds[3]);
void ring_source_close(struct ring_source *reader);
struct ring_source *ring_source_find(struct stream *stream, uint64_t id);
/* As stream_drain, until the log's pending bytes reach limit. */
int ring_source_drain(struct ring_source *reader, size_t limit);
bool ring_source_sleep(struct ring_source *reader);

/* recorder/batch_writer.c: from the streams to the log */
int batch_writer_open(struct recorder *recorder);
void batch_writer_close(struct recorder *recorder);
/* Soon: after the delay that lets a batch grow. */
void batch_writer_later(struct recorder *recorder);
void batch_writer_now(struct recorder *recorder);

/* control.c: the supervisor's messages */
/* Waits for the supervisor's first message and opens the log that comes with it. 0 or -errno. */
int control_receive_start(struct recorder *recorder, int fd, uint64_t *start_id);
/* Takes fd, joins the loop, reports that the recorder is ready. 0 or -errno. */
int control_open(struct recorder *recorder, int fd, uint64_t start_id);
void control_tell(struct recorder *recorder, enum message_type type, uint64_t id, const char *text);
void control_ask_count(struct recorder *recorder, uint64_t sandbox_id);
void control_summary(struct recorder *recorder, struct stream *stream);
void control_stopped(struct recorder *recorder);

#endif
