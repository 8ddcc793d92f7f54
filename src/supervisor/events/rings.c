/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings: one for each worker, made before it starts, given to the recorder, and closed when the
 * worker is gone and the recorder has read the rest. The recorder holds MESSAGE_RECORDER_RINGS_MAX
 * of a sandbox at a time: the others wait here, and the oldest is given first when one is drained.
 */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/events/files.h"
#include "supervisor/events/private.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

static int say_ring(struct supervisor *sv, enum message_type type, uint64_t id, uint64_t of,
        const struct recorded_ring *ring)
{
	struct message_recorder_ring m = {of, ring->id};
	size_t n = message_recorder_ring_encode(buffer, sizeof(buffer), type, id, &m);

	return recording_say(sv, buffer, n, ring->fds, type == MESSAGE_RECORDER_RING ? 3 : 0);
}

int recording_open_ring(struct supervisor *sv, uint64_t of, const struct recorded_ring *ring)
{
	int rc = say_ring(sv, MESSAGE_RECORDER_RING, supervisor_next_id(sv), of, ring);

	if (!rc && ring->end_request)
		rc = say_ring(sv, MESSAGE_RECORDER_RING_END, ring->end_request, of, ring);
	return rc;
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
	int rc = 0;

	while (!rc && of->rings_given < MESSAGE_RECORDER_RINGS_MAX &&
	        (ring = oldest_to_give(of)) != NULL) {
		rc = recording_open_ring(sv, of->id, ring);
		ring->given = !rc;
		of->rings_given += ring->given;
	}
	return rc;
}

int recording_open_rings(struct supervisor *sv, struct recorded *of)
{
	for (struct recorded_ring *ring = of->rings; ring; ring = ring->next)
		ring->given = false;
	of->rings_given = 0;
	return recording_give_rings(sv, of);
}

bool recording_rings_wait(const struct recorded *of)
{
	return oldest_to_give(of) != NULL;
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
	bool full = count_rings(&s->recorded) >= RECORDING_RINGS_MAX ||
	            sv->recording.ring_count >= RECORDING_RINGS_ALL_MAX;
	struct recorded_ring *ring = full ? NULL : calloc(1, sizeof(*ring));
	int rc = ring ? 0 : full ? -ENOBUFS : -ENOMEM;

	if (!rc) {
		ring->id = supervisor_next_id(sv);
		rc = recording_make_ring(&sv->recording, s->id, ring);
	}
	if (!rc) {
		s->recorded.id = s->id;
		ring->next = s->recorded.rings;
		s->recorded.rings = ring;
		sv->recording.ring_count++;
		rc = s->recorded.open ? recording_give_rings(sv, &s->recorded) : 0;
		if (!rc || ring->given)
			return ring;
		s->recorded.rings = ring->next;
		sv->recording.ring_count--;
		recording_remove_ring(&sv->recording, s->id, ring);
	}
	free(ring);
	errno = -rc;
	return NULL;
}

void recording_ring_ends(struct supervisor *sv, struct recorded *of, struct recorded_ring *ring)
{
	ring->end_request = supervisor_next_id(sv);
	ring->of = of;
	DL_APPEND2(sv->recording.ending, ring, ending_prev, ending_next);
}

/* The ring is not in its sandbox's list any more. */
static void free_ring(
        struct supervisor *sv, const struct recorded *of, struct recorded_ring *ring, bool for_good)
{
	if (ring->end_request)
		DL_DELETE2(sv->recording.ending, ring, ending_prev, ending_next);
	if (for_good)
		recording_remove_ring(&sv->recording, of->id, ring);
	else
		recording_close_ring(ring);
	sv->recording.ring_count--;
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
	recording_end_orphans(sv, of);
}

void recording_forget_rings(struct supervisor *sv, struct recorded *of, bool for_good)
{
	struct recorded_ring *ring;

	while ((ring = of->rings) != NULL) {
		of->rings = ring->next;
		free_ring(sv, of, ring, for_good);
	}
}
