/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: what the recorder has to know of itself should it be killed, in shared memory that the supervisor keeps
 * and hands to the next one (a sealed-size memfd, or a file that outlives all processes): the batch of lines that is
 * being written, and notes of how far all lines up to it go. A batch is begun, written to the log, committed; a
 * recorder that finds one begun looks how much of it the log has, writes the rest and commits. So each line is
 * written once, wherever the other one was stopped.
 *
 * One process has it open at a time. The memory is out of reach of workers; the supervisor never reads it. What is
 * found there was written by a recorder, which may have been taken over: lengths are checked, contents are the
 * caller's to check.
 */
#ifndef VETHGUARD_IPC_JOURNAL_H
#define VETHGUARD_IPC_JOURNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "vethguard/base/slice.h"

#define JOURNAL_BATCH_MAX (512u << 10) /* bytes of lines */
#define JOURNAL_NOTES_MAX (2u << 20)   /* bytes of notes */
#define JOURNAL_MARK_MAX 256

struct journal {
	struct journal_shared *shared; /* the mapping */
	int fd;                        /* a file's lock lasts as long as it is open */
};

/* Of a journal that is a file. Both are seconds since the epoch, but for clocks that were set back. */
struct journal_identity {
	uint32_t created; /* the same at each opening */
	uint32_t opened;  /* of this opening: greater than of every one before, and than what the caller has filled in */
};

/* The memory: a descriptor that the caller owns, or -errno. */
int journal_create(void);
/* The memory as a file (0600) of a directory, made where there is none; its space is taken at once (-ENOSPC). The
 * lock on it lasts until its last holder has closed it. A descriptor that the caller owns; -EWOULDBLOCK: another
 * supervisor, or the recorder that one has left behind, still has it; -EBADMSG: something else is there; -errno. */
int journal_open_at(int directory, const char *name, struct journal_identity *identity);
/* Maps it; takes fd (closed where this fails). 0 or -errno (-EBADMSG: wrong size or seals). */
int journal_open(struct journal *journal, int fd);
void journal_close(struct journal *journal);

/* Its memory has vanished under the mapping (ring_guard): what is noted is noted nowhere. */
bool journal_is_lost(const struct journal *journal);

/* The notes of the last batch that was begun or committed; valid until journal_begin. Empty: none yet. */
struct slice journal_notes(const struct journal *journal);
/* A batch that was begun and not committed: false: none. Valid until journal_begin. offset: size of the log before
 * it. */
bool journal_begun(const struct journal *journal, struct slice *batch, off_t *offset);
/* What was begun is given up: notes are again those of the last commit. */
void journal_forget(struct journal *journal);

/* Room of JOURNAL_NOTES_MAX bytes for the notes of the next batch: filled in before journal_begin. */
uint8_t *journal_spare(struct journal *journal);
/* A batch (may be empty) is about to be written at offset. Lengths within the bounds above. */
void journal_begin(struct journal *journal, size_t notes_bytes, struct slice batch, off_t offset);
/* It is in the log. */
void journal_commit(struct journal *journal);

/* A few bytes beside the notes, for as long as they are true; empty: none. Replaced at once: who is killed meanwhile
 * leaves none. */
void journal_set_mark(struct journal *journal, struct slice mark);
struct slice journal_mark(const struct journal *journal);

#endif
