/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_files: what a daemon keeps for its successor, in the directory of recording_keep_at:
 * rings/SANDBOX.RING and told/SANDBOX.EVENT, ids of 16 hex digits. In a session rings are nameless
 * memory and events are kept by nobody else.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_FILES_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_FILES_H

#include "supervisor/events/recording.h"

/* Of a ring or an event: two ids of 16 digits, a dot, and the end. */
#define RECORDING_NAME_BYTES 34
void recording_file_name(uint64_t sandbox_id, uint64_t id, char out[RECORDING_NAME_BYTES]);

/* Fills in ring->fds. 0 or -errno. */
int recording_make_ring(struct recording *r, uint64_t sandbox_id, struct recorded_ring *ring);
/* Those in store. */
void recording_close_ready(struct recording *r);
void recording_close_ring(const struct recorded_ring *ring);
/* Closes it and removes its file. */
void recording_remove_ring(
        const struct recording *r, uint64_t sandbox_id, struct recorded_ring *ring);
/* Where it cannot be, the event is still told. Failures that follow each other are logged once,
 * with their number when they are over. */
void recording_keep_event(
        struct recording *r, uint64_t sandbox_id, uint64_t id, const uint8_t *encoded, size_t n);
void recording_remove_event(const struct recording *r, uint64_t sandbox_id, uint64_t id);

/* What an earlier supervisor left: a ring, or an event. */
struct recording_orphan {
	uint64_t sandbox_id, id;
};
/* adopt.c: takes the ring up that lies in the folder of rings. 0, also where it cannot be read,
 * which is logged; -EWOULDBLOCK: its writer is still there; -errno. */
int recording_adopt_ring(struct supervisor *sv, const struct recording_orphan *file);
/* wait.c: tries that again, for RECORDING_ADOPT_MS, or as long as there are too few descriptors. 0
 * or -errno. */
int recording_wait_for_ring(struct supervisor *sv, const struct recording_orphan *file);
void recording_wait_fini(struct recording *r);

/* Says what to do about a journal with which nothing can be recorded. */
void recording_blame_journal(const struct recording *r, const char *why);

/* events/outbox.c: an event that an earlier supervisor kept: told under the id it had. */
void outbox_restore(
        struct supervisor *sv, struct recorded *of, uint64_t id, const uint8_t *encoded, size_t n);

#endif
