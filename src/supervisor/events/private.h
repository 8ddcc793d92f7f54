/* SPDX-License-Identifier: Apache-2.0 */
/* recording_private: what the files of this folder share. The messages from the recorder are
 * handled by functions in recording.h. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_PRIVATE_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_PRIVATE_H

#include "supervisor/supervisor.h"

/* recording.c */
/* Sends a message of n bytes to the recorder. Returns 0, also if none runs at the moment (the next
 * one is told everything), or -errno. */
int recording_say(
        struct supervisor *sv, const uint8_t *message, size_t n, const int *fds, size_t fd_count);
/* Announces a sandbox to the recorder. packets: its NFLOG socket, if m says that there is one.
 * Returns 0 or -errno. */
int recording_say_sandbox(
        struct supervisor *sv, const struct message_recorder_sandbox *m, const int *packets);
/* Returns the recorded state of s, or of the daemon itself if s is NULL. */
struct recorded *recording_of(struct supervisor *sv, struct sandbox *s);
/* Sends the end of the sandbox if it waits and nothing is left to be sent before it. */
void recording_end_waiting(struct supervisor *sv, struct recorded *of);

/* rings.c */
/* Gives the ring to the recorder; if its writer is gone, asks to be told when the rest is read.
 * Returns 0 or -errno. */
int recording_open_ring(struct supervisor *sv, uint64_t of, const struct recorded_ring *ring);
/* Gives as many of its rings as the recorder takes, the oldest first. Returns 0 or -errno. */
int recording_give_rings(struct supervisor *sv, struct recorded *of);
/* The same, to a recorder that was just told of it. */
int recording_open_rings(struct supervisor *sv, struct recorded *of);
/* Returns true if some are still to be given. */
bool recording_rings_wait(const struct recorded *of);
/* The ring's writer is gone; the recorder is still to be told, under ring->end_request. */
void recording_ring_ends(struct supervisor *sv, struct recorded *of, struct recorded_ring *ring);
/* Closes and frees all rings; for_good: also removes their files. */
void recording_forget_rings(struct supervisor *sv, struct recorded *of, bool for_good);

/* orphans.c */
/* Opens a stream for an id of which nothing else is known. Returns NULL if there is no memory. */
struct recorded *recording_open_orphans(struct supervisor *sv, uint64_t id);
/* Sends all orphans to a new recorder. Returns 0 or -errno. */
int recording_orphans_again(struct supervisor *sv);
/* If of is an orphan and nothing of it waits any more, ends and frees it. */
void recording_end_orphans(struct supervisor *sv, struct recorded *of);

/* log.c: send the first message to a recorder, and the one that gives it another file. Return 0 or
 * -errno. */
int recording_say_start(struct supervisor *sv);
int recording_say_reopen(struct supervisor *sv);

/* outbox.c */
/* Sends the events to a new recorder. */
void outbox_say_again(struct supervisor *sv, struct recorded *of);
/* Frees the events up to this id; for_good: also removes their files. */
void outbox_forget(struct supervisor *sv, struct recorded *of, uint64_t up_to, bool for_good);
/* The events are in the list of this one now. */
void outbox_move(struct recorded *of);

#endif
