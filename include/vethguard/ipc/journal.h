/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: the recorder's state, in case it is killed, in shared memory that the supervisor keeps and gives to the
 * next recorder (a sealed-size memfd, or a file that outlives all processes). It holds the batch of lines that is
 * being written, and notes of how far all lines up to it go. A batch is begun, written to the log, committed. A
 * recorder that finds a begun batch checks how much of it the log has, writes the rest and commits. So each line is
 * written once, wherever the previous recorder was stopped.
 *
 * One process has it open at a time. Workers cannot reach the memory; the supervisor never reads it. Its content was
 * written by a recorder, which an attacker may have controlled: lengths are checked here, the caller checks the
 * contents.
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
	int fd;                        /* keeps a file's lock as long as it is open */
};

/* For a journal that is a file. Both are seconds since the epoch, unless the clock was set back. */
struct journal_identity {
	uint32_t created; /* the same at each opening */
	uint32_t opened;  /* of this opening: greater than every earlier one, and than the caller's value */
};

/* Makes the memory. Returns a descriptor that the caller owns, or -errno. */
int journal_create(void);
/* Opens the memory as a file (0600) of a directory, made if missing, with its space allocated (-ENOSPC). The lock on
 * it lasts until its last holder has closed it. Returns a descriptor that the caller owns; -EWOULDBLOCK: another
 * supervisor, or a recorder it left behind, still has it; -EBADMSG: something else is there; -errno. */
int journal_open_at(int directory, const char *name, struct journal_identity *identity);
/* Maps it; takes ownership of fd (closed on failure). Returns 0 or -errno (-EBADMSG: wrong size or seals). */
int journal_open(struct journal *journal, int fd);
void journal_close(struct journal *journal);

/* Returns true if its memory has vanished under the mapping (ring_guard()): its notes are lost. */
bool journal_is_lost(const struct journal *journal);

/* Returns the notes of the last batch that was begun or committed; valid until journal_begin(). Empty: none yet. */
struct slice journal_notes(const struct journal *journal);
/* Returns false if no batch is begun and uncommitted. *batch is valid until journal_begin(). *offset: size of the log
 * before it. */
bool journal_begun(const struct journal *journal, struct slice *batch, off_t *offset);
/* Gives up a begun batch: the notes are again those of the last commit. */
void journal_forget(struct journal *journal);

/* Returns JOURNAL_NOTES_MAX bytes for the notes of the next batch, to be filled in before journal_begin(). */
uint8_t *journal_spare(struct journal *journal);
/* Call before writing a batch (which may be empty) at offset. Lengths within the limits above. */
void journal_begin(struct journal *journal, size_t notes_bytes, struct slice batch, off_t offset);
/* The batch is in the log. */
void journal_commit(struct journal *journal);

/* Sets a few bytes beside the notes, kept as long as they are true; empty: none. A process killed during the change
 * leaves none. */
void journal_set_mark(struct journal *journal, struct slice mark);
struct slice journal_mark(const struct journal *journal);

#endif
