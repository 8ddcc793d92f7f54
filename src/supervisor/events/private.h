/* SPDX-License-Identifier: Apache-2.0 */
/* recording_private: what the files of the recording share (recording.c, rings.c, events/orphans.c,
 * log.c, events/outbox.c, adopt.c). What each is told by the recorder is in recording.h. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_PRIVATE_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_PRIVATE_H

#include "supervisor/supervisor.h"

/* recording.c */
/* Sends a message of n bytes to the recorder. 0, also where none runs just now: the next one is
 * told everything; or -errno. */
int recording_say(
        struct supervisor *sv, const uint8_t *message, size_t n, const int *fds, size_t fd_count);
/* Tells of a sandbox. packets: its socket, where m says that there is one. 0 or -errno. */
int recording_say_sandbox(
        struct supervisor *sv, const struct message_recorder_sandbox *m, const int *packets);
/* What is recorded of s; of the daemon itself where it is NULL. */
struct recorded *recording_of(struct supervisor *sv, struct sandbox *s);
/* Its end, where that waits and nothing is to be given before it any more. */
void recording_end_waiting(struct supervisor *sv, struct recorded *of);

/* rings.c */
/* The recorder is to read this one, and to say when it has read the rest where its writer is gone.
 * 0 or -errno. */
int recording_open_ring(struct supervisor *sv, uint64_t of, const struct recorded_ring *ring);
/* As many of its rings as the recorder takes, the oldest first. 0 or -errno. */
int recording_give_rings(struct supervisor *sv, struct recorded *of);
/* The same, to a recorder that has just heard of it. */
int recording_open_rings(struct supervisor *sv, struct recorded *of);
/* Some are still to be given. */
bool recording_rings_wait(const struct recorded *of);
/* Its writer is gone; the recorder is still to be told, under ring->end_request. */
void recording_ring_ends(struct supervisor *sv, struct recorded *of, struct recorded_ring *ring);
/* Closes and frees all of them; for_good: their files go, too. */
void recording_forget_rings(struct supervisor *sv, struct recorded *of, bool for_good);

/* events/orphans.c */
/* A stream under an id of which nothing else is known. NULL: no memory. */
struct recorded *recording_open_orphans(struct supervisor *sv, uint64_t id);
/* All that are left, to another recorder. 0 or -errno. */
int recording_orphans_again(struct supervisor *sv);
/* Where it is one of those, and nothing of it waits any more, it is over: frees it then. */
void recording_end_orphans(struct supervisor *sv, struct recorded *of);

/* log.c: the message that a recorder begins with, and the one that gives it another file. 0 or
 * -errno. */
int recording_say_start(struct supervisor *sv);
int recording_say_reopen(struct supervisor *sv);

/* events/outbox.c */
/* To a recorder that was not given anything yet. */
void outbox_say_again(struct supervisor *sv, struct recorded *of);
/* Frees those up to this id; for_good: their files go, too. */
void outbox_forget(struct supervisor *sv, struct recorded *of, uint64_t up_to, bool for_good);
/* They are in the list of this one now. */
void outbox_move(struct recorded *of);

#endif
