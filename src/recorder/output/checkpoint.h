/* SPDX-License-Identifier: Apache-2.0 */
/* notes: how far each sandbox's lines go, for the recorder that may have to go on after this one
 * (ipc/journal.h). */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_CHECKPOINT_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_CHECKPOINT_H

#include "vethguard/ipc/journal.h"

struct recorder;
struct stream;
struct ring_source;

/* Takes over what the one before has left: notes, and a batch that it had begun, which is pending
 * then. 0 or -errno. */
int checkpoint_inherit(struct recorder *recorder);
/* Gives a new stream what is noted of its sandbox. 0 or -ENOMEM. */
int checkpoint_apply(struct stream *stream);
/* Sets a new ring source to where it is noted to have been read to. */
void checkpoint_apply_source(struct ring_source *reader);
/* The pending batch is about to be written; its lines are of what the streams have read so far. */
void checkpoint_begin(struct recorder *recorder);
/* The stream is about to be closed. */
void checkpoint_forget(struct stream *stream);
/* The log goes on in another file now, before anybody is told so. */
void checkpoint_mark(struct recorder *recorder);
/* It is in the file: readers' positions are public, the supervisor hears what is recorded of its
 * own. */
void checkpoint_commit(struct recorder *recorder);

#endif
