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
#include "recorder/input/stream.h"

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
#define RECORDER_STREAMS_MAX MESSAGE_RECORDER_SANDBOXES_MAX
/* Interval of findings about lost copies of packets. */
#define RECORDER_LOST_NOTE_MS 5000
/* From the first copy of a dropped packet to asking for the fence's count. */
#define RECORDER_COUNT_MS 5000

struct recorder;

enum recorder_state {
	RECORDER_FLOWS,
	RECORDER_WAITS,
	RECORDER_STALLED,
	RECORDER_DONE,
	RECORDER_STATE_COUNT
};

/* The state says whether the log takes lines. What the supervisor has asked for (reopening, asked,
 * stopping) is done when the log allows it: each may be true in any state, and together. */
struct recorder {
	struct loop *loop;
	struct ipc_peer supervisor;
	struct log_file log;
	/* Fingerprint of the last line in the file; "": none yet. */
	char head[SEAL_HASH_DIGITS + 1];
	struct journal journal;
	struct checkpoint checkpoint;
	struct stream *streams, *by_id;
	size_t stream_count, ring_count;
	/* Streams of which something may have to be read, written or noted. All others sleep: a
	 * batch costs nothing for them, and a wake-up tells when that changes. */
	struct stream *awake;
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

/* tell.c: messages to the supervisor */
void tell_supervisor(
        struct recorder *recorder, enum message_type type, uint64_t id, const char *text);
void tell_ask_count(struct recorder *recorder, uint64_t sandbox_id);
void tell_summary(struct recorder *recorder, struct stream *stream);
void tell_stopped(struct recorder *recorder);

#endif
