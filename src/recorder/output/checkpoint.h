/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: notes of how far each sandbox's lines go, in the journal (ipc/journal.h), for a
 * recorder that may have to continue after this one. */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_CHECKPOINT_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_CHECKPOINT_H

#include "vethguard/ipc/journal.h"
#include "vethguard/wire/message.h"

struct recorder;
struct stream;

/* The place where a stream's note was written last. */
struct checkpoint_noted {
	struct stream *stream;
	size_t at, bytes;
};

/* The recorder's part. */
struct checkpoint {
	bool begun; /* the pending batch is in the journal and will be written to the file unchanged
	             */
	struct buf inherited; /* notes that the previous recorder left */
	/* True if notes has exactly the notes that `noted` lists; those of awake streams are of the
	 * last batch, if there was one. */
	bool whole;
	struct checkpoint_noted noted[MESSAGE_RECORDER_SANDBOXES_MAX];
	size_t noted_count;
	size_t bytes; /* bytes used in notes */
	/* The notes of all streams as last written; room for one note. */
	uint8_t notes[JOURNAL_NOTES_MAX], note[JOURNAL_NOTES_MAX];
};

/* A stream's part. */
struct checkpoint_place {
	bool is_noted;
	size_t at;    /* index in noted, if is_noted */
	bool changed; /* changed since its note, apart from what it has read */
};

/* Tells that the stream needs a new note, although it may have read nothing. */
static inline void checkpoint_change(struct checkpoint_place *place)
{
	place->changed = true;
}

/* Takes over what the previous recorder has left: notes, and a batch that it had begun, which is
 * then pending. Returns 0 or -errno. */
int checkpoint_inherit(struct recorder *recorder);
/* Sets a new stream to what is noted of its sandbox. Returns 0 or -ENOMEM. */
int checkpoint_apply(struct stream *stream);
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
