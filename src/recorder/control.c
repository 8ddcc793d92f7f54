/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's messages and the recorder's:
 *
 *   START     log and journal; answered with READY when the jail has closed
 *   SANDBOX   its name and policy, and an NFLOG socket to read from now on
 *   RING      a ring of a sandbox to read from now on
 *   RING_END  drain that ring, answer RING_DRAINED
 *   COUNT     how many packets a sandbox's fence has dropped, copied or not; COUNT_GET asks for it
 *   EVENT     one of the supervisor's own events; answered with TAKEN when it is in the file
 *   END       drain that sandbox, answer SUMMARY
 *   REOPEN    continue in another file; answered with REOPENED
 *   STOP      drain all, answer STOPPED, exit
 *   HEAD_GET  which line was written last; answered with HEAD
 *
 * ENDED: another recorder has ended the file; the supervisor has to open the file that follows, and
 * send REOPEN. STALLED and FLOWING: the log cannot be written; it can again. FAILED, under a
 * sandbox's id: its worker broke its stream.
 */
#include <errno.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/jail/answer.h"

#include "recorder/recorder.h"

#define START_FDS 3 /* log, the same for reading, journal */
#define RING_FDS 3
#define REOPEN_FDS 2

int control_receive_start(struct recorder *r, int fd, uint64_t *start_id)
{
	struct ipc_message message;
	struct message_recorder_start m;
	int rc = ipc_receive_blocking(fd, -1, r->message, &message);

	if (rc != 0)
		return rc;
	if (message.head.type != MESSAGE_RECORDER_START || message.fd_count != START_FDS ||
	        message_recorder_start_decode(&message.body, &m) != 0)
		return -EBADMSG;
	*start_id = message.head.id;
	log_open("vethguard-recorder", (enum log_level)m.log_level);
	rc = log_file_open(&r->log, message.fds[0], message.fds[1], m.path, RECORDER_PENDING_MAX);
	if (rc == 0)
		rc = journal_open(&r->journal, message.fds[2]);
	return rc == 0 ? checkpoint_inherit(r) : rc;
}

static void say_unreadable(int error)
{
	log_error("a sandbox's events cannot be read: %s", strerror(-error));
}

static void took_fds(struct ipc_message *message)
{
	for (size_t i = 0; i < message->fd_count; i++)
		message->fds[i] = -1;
}

static int on_sandbox(struct recorder *r, struct ipc_message *message)
{
	struct message_recorder_sandbox m;

	if (message_recorder_sandbox_decode(&message->body, &m) != 0 ||
	        message->fd_count != m.has_packets || stream_find(r, m.sandbox_id) ||
	        r->stream_count >= RECORDER_STREAMS_MAX)
		return -EBADMSG;
	int rc = stream_open(r, &m, m.has_packets ? message->fds[0] : -1);
	took_fds(message);
	if (rc == 0) {
		batch_writer_later(r);
	} else {
		say_unreadable(rc);
		tell_supervisor(r, MESSAGE_RECORDER_REFUSED, m.sandbox_id, NULL);
	}
	return 0;
}

/* An unknown sandbox is one that could not be read; the supervisor has been told, or will be
 * soon. */
static int on_ring(struct recorder *r, struct ipc_message *message)
{
	struct message_recorder_ring m;
	struct stream *stream;

	if (message_recorder_ring_decode(&message->body, &m) != 0 || message->fd_count != RING_FDS)
		return -EBADMSG;
	stream = stream_find(r, m.sandbox_id);
	if (!stream)
		return 0;
	if (ring_source_find(stream, m.ring) || stream->ring_source_count >= RECORDER_SOURCES_MAX ||
	        r->ring_count >= RECORDER_SOURCES_ALL_MAX)
		return -EBADMSG;
	int rc = ring_source_open(stream, m.ring, message->fds);
	took_fds(message);
	if (rc == 0) {
		batch_writer_later(r);
	} else {
		say_unreadable(rc);
		tell_supervisor(r, MESSAGE_FAILED, m.sandbox_id,
		        "The recorder cannot read the events of a further worker.");
	}
	return 0;
}

static int on_ring_end(struct recorder *r, struct ipc_message *message)
{
	struct message_recorder_ring m;
	struct stream *stream;
	struct ring_source *reader;

	if (message_recorder_ring_decode(&message->body, &m) != 0)
		return -EBADMSG;
	stream = stream_find(r, m.sandbox_id);
	reader = stream ? ring_source_find(stream, m.ring) : NULL;
	if (!reader) { /* it could not be read */
		tell_supervisor(r, MESSAGE_RECORDER_RING_DRAINED, message->head.id, NULL);
		return 0;
	}
	if (reader->ending)
		return -EBADMSG;
	stream_wake(stream);
	ring_source_end(reader, message->head.id);
	batch_writer_now(r);
	return 0;
}

/* The sandbox may have ended meanwhile. */
static int on_count(struct recorder *r, struct ipc_message *message)
{
	struct message_sandbox m;
	struct stream *stream;

	if (message_sandbox_decode(&message->body, &m) != 0)
		return -EBADMSG;
	stream = stream_find(r, m.sandbox_id);
	if (stream && !stream->ending) {
		stream_fence_counted(stream, m.dropped);
		stream_wake(stream);
		batch_writer_later(r);
	}
	return 0;
}

static int on_event(struct recorder *r, struct ipc_message *message)
{
	struct message_recorder_event m;
	struct stream *stream;
	int rc;

	if (message_recorder_event_decode(&message->body, &m) != 0)
		return -EBADMSG;
	stream = stream_find(r, m.sandbox_id);
	if (!stream)
		return -EBADMSG;
	rc = stream_take(stream, message->head.id, m.event);
	if (rc == 0)
		batch_writer_now(r);
	return rc;
}

static int on_end(struct recorder *r, struct ipc_message *message)
{
	struct message_sandbox m;
	struct stream *stream;

	if (message_sandbox_decode(&message->body, &m) != 0)
		return -EBADMSG;
	stream = stream_find(r, m.sandbox_id);
	if (!stream || stream->ending)
		return -EBADMSG;
	stream_wake(stream);
	stream_end(stream, m.dropped, message->head.id);
	batch_writer_now(r);
	return 0;
}

static int on_reopen(struct recorder *r, struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->fd_count != REOPEN_FDS || r->reopening)
		return -EBADMSG;
	r->reopening = true;
	r->next_log = message->fds[0];
	r->next_reader = message->fds[1];
	r->reopen_id = message->head.id;
	took_fds(message);
	batch_writer_now(r);
	return 0;
}

static int on_head_get(struct recorder *r, struct ipc_message *message)
{
	if (!reader_done(&message->body))
		return -EBADMSG;
	tell_supervisor(r, MESSAGE_RECORDER_HEAD, message->head.id, r->head);
	return 0;
}

static int on_stop(struct recorder *r, struct ipc_message *message)
{
	if (!reader_done(&message->body))
		return -EBADMSG;
	r->stopping = true;
	r->stop_id = message->head.id;
	batch_writer_now(r);
	return 0;
}

static bool may_have_fds(enum message_type type)
{
	return type == MESSAGE_RECORDER_SANDBOX || type == MESSAGE_RECORDER_RING ||
	       type == MESSAGE_RECORDER_REOPEN;
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct recorder *r = container_of(peer, struct recorder, supervisor);

	if (message->fd_count && !may_have_fds(message->head.type))
		return -EBADMSG;
	switch (message->head.type) {
	case MESSAGE_RECORDER_SANDBOX:
		return on_sandbox(r, message);
	case MESSAGE_RECORDER_RING:
		return on_ring(r, message);
	case MESSAGE_RECORDER_RING_END:
		return on_ring_end(r, message);
	case MESSAGE_RECORDER_COUNT:
		return on_count(r, message);
	case MESSAGE_RECORDER_EVENT:
		return on_event(r, message);
	case MESSAGE_RECORDER_END:
		return on_end(r, message);
	case MESSAGE_DESCRIBE:
		return jail_answer(peer, message);
	case MESSAGE_RECORDER_REOPEN:
		return on_reopen(r, message);
	case MESSAGE_RECORDER_HEAD_GET:
		return on_head_get(r, message);
	case MESSAGE_STOP:
		return on_stop(r, message);
	default:
		return -EBADMSG;
	}
}

/* The supervisor is gone: what is in the rings is still recorded, then this program ends. The
 * kernel is killing the supervisor's workers at the same time, and what they answer until then is
 * recorded too. */
static void on_peer_end(struct ipc_peer *peer, int error)
{
	struct recorder *r = container_of(peer, struct recorder, supervisor);

	if (error != 0) {
		log_error("a message of the supervisor cannot be decoded: %s", strerror(-error));
		r->status = 1;
	}
	if (r->state == RECORDER_STALLED)
		loop_stop(r->loop);
	else
		loop_timer_set(&r->retry, RECORDER_ORPHAN_MS);
}

int control_open(struct recorder *r, int fd, uint64_t start_id)
{
	int rc = ipc_peer_open(r->loop, &r->supervisor, fd, "supervisor", on_message, on_peer_end);

	if (rc == 0)
		tell_supervisor(r, MESSAGE_RECORDER_READY, start_id, NULL);
	if (rc == 0 && r->checkpoint.begun)
		batch_writer_later(r);
	return rc;
}
