/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorder is told: the log (log.c), each sandbox, the rings of its workers, the
 * supervisor's own events (telling.c), the end of a ring and of a sandbox. All of it can be told
 * again, to a recorder that takes over from one that was killed: the descriptors are kept, and an
 * event until the recorder says that it is in the log.
 *
 * While the log cannot be written, the recorder takes nothing from its rings: so it is given so
 * many rings and events of a sandbox at a time as it has room for (message.h), and further ones
 * when some of those are in the log.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/ipc/ring.h"
#include "vethguard/base/log.h"
#include "supervisor/recording/files.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

int recording_say(
        struct supervisor *sv, const uint8_t *message, size_t n, const int *fds, size_t fd_count)
{
	int error;

	if (!role_runs(&sv->recorder))
		return 0;
	error = role_send(&sv->recorder, message, n, fds, fd_count);
	return error == -EPIPE ? 0 : error;
}

static int say(struct supervisor *sv, size_t n, const int *fds, size_t fd_count)
{
	return recording_say(sv, buffer, n, fds, fd_count);
}

void recording_fini(struct supervisor *sv)
{
	struct recording *r = &sv->recording;

	recording_wait_fini(r);
	if (r->outage_time.event)
		loop_timer_close(&r->outage_time);
	audit_opening_cancel(r->opening);
	r->opening = NULL;
	recording_forget(sv, &r->daemon, false);
	while (r->left) {
		struct recorded *left = r->left;

		r->left = left->next;
		recording_forget(sv, left, false);
		free(left);
	}
	if (r->reopen_request) {
		close(r->next_log);
		close(r->next_reader);
	}
	if (sv->log_given) {
		close(r->log);
		close(r->reader);
		identity_fini(&r->opener);
	}
	if (sv->log_given || r->kept)
		close(r->journal);
	recording_close_ready(r);
	if (r->kept) {
		close(r->rings);
		close(r->told);
	}
	sv->log_given = r->kept = false;
}

struct recorded *recording_of(struct supervisor *sv, struct sandbox *s)
{
	return s ? &s->recorded : &sv->recording.daemon;
}

/* Rings. */

static int say_ring(struct supervisor *sv, enum message_type type, uint64_t id, uint64_t of,
        const struct recorded_ring *ring)
{
	struct message_recorder_ring m = {of, ring->id};
	size_t n = message_recorder_ring_encode(buffer, sizeof buffer, type, id, &m);

	return say(sv, n, ring->fds, type == MESSAGE_RECORDER_RING ? 3 : 0);
}

int recording_open_ring(struct supervisor *sv, uint64_t of, const struct recorded_ring *ring)
{
	int error = say_ring(sv, MESSAGE_RECORDER_RING, supervisor_next_id(sv), of, ring);

	if (!error && ring->end_request)
		error = say_ring(sv, MESSAGE_RECORDER_RING_END, ring->end_request, of, ring);
	return error;
}

static struct recorded_ring *oldest_to_give(const struct recorded *of)
{
	struct recorded_ring *oldest = NULL;

	for (struct recorded_ring *ring = of->rings; ring; ring = ring->next)
		if (!ring->given && (!oldest || ring->id < oldest->id))
			oldest = ring;
	return oldest;
}

int recording_give_rings(struct supervisor *sv, struct recorded *of)
{
	struct recorded_ring *ring;
	int error = 0;

	while (!error && of->rings_given < MESSAGE_RECORDER_RINGS_MAX &&
	        (ring = oldest_to_give(of)) != NULL) {
		error = recording_open_ring(sv, of->id, ring);
		ring->given = !error;
		of->rings_given += ring->given;
	}
	return error;
}

static size_t count_rings(const struct recorded *of)
{
	size_t n = 0;

	for (const struct recorded_ring *ring = of->rings; ring; ring = ring->next)
		n++;
	return n;
}

struct recorded_ring *recording_ring_new(struct supervisor *sv, struct sandbox *s)
{
	bool full = count_rings(&s->recorded) >= RECORDING_RINGS_MAX;
	struct recorded_ring *ring = full ? NULL : calloc(1, sizeof *ring);
	int error = ring ? 0 : full ? -ENOBUFS : -ENOMEM;

	if (!error) {
		ring->id = supervisor_next_id(sv);
		error = recording_make_ring(&sv->recording, s->id, ring);
	}
	if (!error) {
		s->recorded.id = s->id;
		ring->next = s->recorded.rings;
		s->recorded.rings = ring;
		error = s->recorded.open ? recording_give_rings(sv, &s->recorded) : 0;
		if (!error || ring->given)
			return ring;
		s->recorded.rings = ring->next;
		recording_remove_ring(&sv->recording, s->id, ring);
	}
	free(ring);
	errno = -error;
	return NULL;
}

void recording_ring_ends(struct supervisor *sv, struct recorded *of, struct recorded_ring *ring)
{
	ring->end_request = supervisor_next_id(sv);
	ring->of = of;
	DL_APPEND2(sv->recording.ending, ring, ending_prev, ending_next);
}

/* It is in no sandbox's list any more. */
static void free_ring(
        struct supervisor *sv, const struct recorded *of, struct recorded_ring *ring, bool for_good)
{
	if (ring->end_request)
		DL_DELETE2(sv->recording.ending, ring, ending_prev, ending_next);
	if (for_good)
		recording_remove_ring(&sv->recording, of->id, ring);
	else
		recording_close_ring(ring);
	free(ring);
}

void recording_ring_end(struct supervisor *sv, struct sandbox *s, struct recorded_ring *ring)
{
	if (ring->end_request)
		return;
	recording_ring_ends(sv, &s->recorded, ring);
	if (s->recorded.open && ring->given &&
	        say_ring(sv, MESSAGE_RECORDER_RING_END, ring->end_request, s->id, ring) != 0)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "the recorder could not be told that a worker has ended");
}

/* What was left behind is over with its last ring. Others are not in that list. */
void recording_end_left(struct supervisor *sv, struct recorded *of)
{
	struct message_sandbox m = {of->id, 0};

	if (of->rings || of->told)
		return;
	for (struct recorded **at = &sv->recording.left; *at; at = &(*at)->next) {
		struct recorded *left = *at;

		if (left != of)
			continue;
		*at = left->next;
		if (!left->end_told)
			say(sv,
			        message_sandbox_encode(buffer, sizeof buffer, MESSAGE_RECORDER_END,
			                supervisor_next_id(sv), &m),
			        NULL, 0);
		free(left);
		return;
	}
}

static void take_out(struct recorded_ring *ring)
{
	struct recorded_ring **at = &ring->of->rings;

	while (*at != ring)
		at = &(*at)->next;
	*at = ring->next;
	ring->of->rings_given -= ring->given;
}

void recording_drained(struct supervisor *sv, uint64_t id)
{
	struct recorded_ring *ring = sv->recording.ending;
	struct recorded *of;

	while (ring && ring->end_request != id)
		ring = ring->ending_next;
	if (!ring)
		return;
	of = ring->of;
	take_out(ring);
	free_ring(sv, of, ring, true);
	if (recording_give_rings(sv, of) != 0)
		log_error("the recorder could not be given a ring");
	recording_end_waiting(sv, of);
	recording_end_left(sv, of);
}

/* Sandboxes. */

/* To a recorder that has just heard of it. */
static int open_rings(struct supervisor *sv, struct recorded *of)
{
	for (struct recorded_ring *ring = of->rings; ring; ring = ring->next)
		ring->given = false;
	of->rings_given = 0;
	return recording_give_rings(sv, of);
}

static int say_sandbox(
        struct supervisor *sv, const struct message_recorder_sandbox *m, const int *packets)
{
	size_t n = message_recorder_sandbox_encode(
	        buffer, sizeof buffer, MESSAGE_RECORDER_SANDBOX, supervisor_next_id(sv), m);

	return say(sv, n, packets, m->has_packets);
}

int recording_open(struct supervisor *sv, struct sandbox *s)
{
	struct message_recorder_sandbox m = {.sandbox_id = s->id,
	        .sandbox = slice_from_string(s->name),
	        .policy = policy_name(&s->generation->settings->policy),
	        .fingerprint = policy_fingerprint(&s->generation->settings->policy),
	        .gate4 = s->gate.gate4,
	        .gate6 = s->gate.gate6,
	        .has_packets = true,
	        .dropped = s->dropped_before};
	int error = say_sandbox(sv, &m, &s->gate.packets);

	if (error)
		return error;
	s->recorded.id = s->id;
	s->recorded.open = true;
	return open_rings(sv, &s->recorded);
}

static int say_daemon(struct supervisor *sv)
{
	struct message_recorder_sandbox m = {
	        .sandbox_id = sv->recording.daemon.id, .sandbox = SLICE(MESSAGE_NAME_DAEMON)};
	int error = say_sandbox(sv, &m, NULL);

	return error ? error : open_rings(sv, &sv->recording.daemon);
}

int recording_open_daemon(struct supervisor *sv)
{
	struct recorded *daemon = &sv->recording.daemon;
	int error;

	daemon->open = true;
	error = say_daemon(sv);
	return error ? error : recording_adopt_told(sv, daemon->id);
}

static int say_left(struct supervisor *sv, struct recorded *left)
{
	struct message_recorder_sandbox m = {
	        .sandbox_id = left->id, .sandbox = SLICE(MESSAGE_NAME_LEFT)};
	int error = say_sandbox(sv, &m, NULL);

	left->end_told = false;
	return error ? error : open_rings(sv, left);
}

struct recorded *recording_open_left(struct supervisor *sv, uint64_t id)
{
	struct recorded *left = calloc(1, sizeof *left);

	if (!left)
		return NULL;
	left->id = id;
	left->open = true;
	left->next = sv->recording.left;
	sv->recording.left = left;
	if (say_left(sv, left) != 0)
		log_error("events that were left behind cannot be given to the recorder");
	return left;
}

size_t recording_count_left(const struct supervisor *sv)
{
	size_t n = 0;

	for (const struct recorded *left = sv->recording.left; left; left = left->next)
		n++;
	return n;
}

int recording_end(struct supervisor *sv, struct sandbox *s)
{
	struct message_sandbox m = {.sandbox_id = s->id};

	s->recorded.end_waits = s->recorded.next_told || oldest_to_give(&s->recorded);
	if (s->recorded.end_waits)
		return 0;
	/* What another daemon's recorder reads meanwhile is not to be counted here. */
	m.dropped = s->is_given ? 0 : gate_dropped(&s->gate).packets;
	return say(sv,
	        message_sandbox_encode(
	                buffer, sizeof buffer, MESSAGE_RECORDER_END, s->summary_request, &m),
	        NULL, 0);
}

void recording_end_waiting(struct supervisor *sv, struct recorded *of)
{
	struct sandbox *s = of->end_waits ? supervisor_find(sv, of->id) : NULL;

	if (s && recording_end(sv, s) != 0)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "the recorder could not be told that it has ended");
}

void recording_count(struct supervisor *sv, struct sandbox *s)
{
	struct message_sandbox m = {s->id, gate_dropped(&s->gate).packets};
	int error = say(sv,
	        message_sandbox_encode(
	                buffer, sizeof buffer, MESSAGE_RECORDER_COUNT, supervisor_next_id(sv), &m),
	        NULL, 0);

	if (error)
		log_sandbox(LOG_LEVEL_DEBUG, s->name, "the recorder cannot be told a count: %s",
		        strerror(-error));
}

static int open_again(struct supervisor *sv, struct sandbox *s)
{
	int error = recording_open(sv, s);

	if (!error)
		told_say_again(sv, &s->recorded);
	if (!error && s->state == SANDBOX_SUMMING)
		error = recording_end(sv, s);
	return error;
}

int recording_again(struct supervisor *sv)
{
	struct sandbox *s, *next;
	int error = sv->log_given ? recording_say_start(sv) : 0;

	if (!error && sv->recording.daemon.open) {
		error = say_daemon(sv);
		told_say_again(sv, &sv->recording.daemon);
	}
	if (!error && sv->recording.reopen_request)
		error = recording_say_reopen(sv);
	for (struct recorded *left = sv->recording.left; left && !error; left = left->next) {
		error = say_left(sv, left);
		told_say_again(sv, left);
	}
	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		if (s->recorded.open && !error)
			error = open_again(sv, s);
	}
	return error;
}

void recording_leave(struct supervisor *sv, struct recorded *of)
{
	struct recorded *left = of->rings || of->told ? malloc(sizeof *left) : NULL;

	if (!left) { /* files stay where they are, for a further supervisor */
		recording_forget(sv, of, false);
		return;
	}
	*left = *of;
	left->end_told = !of->end_waits;
	left->end_waits = false;
	left->next = sv->recording.left;
	sv->recording.left = left;
	told_move(left);
	for (struct recorded_ring *ring = left->rings; ring; ring = ring->next)
		ring->of = left;
	of->rings = NULL;
	of->told = of->next_told = NULL;
	of->ahead = of->rings_given = 0;
}

void recording_forget(struct supervisor *sv, struct recorded *of, bool for_good)
{
	struct recorded_ring *ring;

	told_forget(sv, of, UINT64_MAX, for_good);
	while ((ring = of->rings) != NULL) {
		of->rings = ring->next;
		free_ring(sv, of, ring, for_good);
	}
}
