/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: notes of how far each sandbox's lines go, in the journal (ipc/journal.h), for a
 * recorder that may have to continue after this one. */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_CHECKPOINT_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_CHECKPOINT_H

#include "vethguard/ipc/journal.h"

struct recorder;
struct stream;
struct ring_source;

/* Takes over what the previous recorder has left: notes, and a batch that it had begun, which is
 * then pending. Returns 0 or -errno. */
int checkpoint_inherit(struct recorder *recorder);
/* Sets a new stream to what is noted of its sandbox. Returns 0 or -ENOMEM. */
int checkpoint_apply(struct stream *stream);
/* Sets a new ring source to the noted position. */
void checkpoint_apply_source(struct ring_source *reader);
/* Call before the pending batch is written: notes what the streams have read so far. */
void checkpoint_begin(struct recorder *recorder);
/* Call before the stream is closed. */
void checkpoint_forget(struct stream *stream);
/* Call when the log continues in another file, before anything is told so. */
void checkpoint_mark(struct recorder *recorder);
/* Call when the batch is in the file: publishes the readers' positions, and tells the supervisor
 * which of its own events are recorded. */
void checkpoint_commit(struct recorder *recorder);

#endif
