/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_files: what a daemon keeps for its successor, in the directory of recording_keep_at():
 * rings/SANDBOX.RING and told/SANDBOX.EVENT, with ids of 16 hex digits. In a run, rings are
 * anonymous memory and events are kept in memory only.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_FILES_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_FILES_H

#include "supervisor/events/recording.h"

/* Name of a ring or event file: two ids of 16 digits, a dot, and NUL. */
#define RECORDING_NAME_BYTES 34
void recording_file_name(uint64_t sandbox_id, uint64_t id, char out[RECORDING_NAME_BYTES]);

/* Fills in ring->fds. Returns 0 or -errno. */
int recording_make_ring(struct recording *r, uint64_t sandbox_id, struct recorded_ring *ring);
/* Closes the rings in store. */
void recording_close_ready(struct recording *r);
void recording_close_ring(const struct recorded_ring *ring);
/* Closes the ring and removes its file. */
void recording_remove_ring(
        const struct recording *r, uint64_t sandbox_id, struct recorded_ring *ring);
/* Writes an event to its file. If that fails, the event is still sent. Consecutive failures are
 * logged once, and their number when they are over. */
void recording_keep_event(
        struct recording *r, uint64_t sandbox_id, uint64_t id, const uint8_t *encoded, size_t n);
void recording_remove_event(const struct recording *r, uint64_t sandbox_id, uint64_t id);

/* A ring or event that an earlier supervisor left. */
struct recording_orphan {
	uint64_t sandbox_id, id;
};
/* adopt.c: adopts the ring from the rings folder. Returns 0, also if it cannot be read, which is
 * logged; -EWOULDBLOCK: its writer still exists; -errno. */
int recording_adopt_ring(struct supervisor *sv, const struct recording_orphan *file);
/* wait.c: tries that again for RECORDING_ADOPT_MS, or as long as there are too few descriptors.
 * Returns 0 or -errno. */
int recording_wait_for_ring(struct supervisor *sv, const struct recording_orphan *file);
void recording_wait_fini(struct recording *r);

/* Logs what to do about a journal with which nothing can be recorded. */
void recording_blame_journal(const struct recording *r, const char *why);

/* outbox.c: an event that an earlier supervisor kept is sent under its old id. */
void outbox_restore(
        struct supervisor *sv, struct recorded *of, uint64_t id, const uint8_t *encoded, size_t n);

#endif
