/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_file: the audit log on disk. Lines are formatted into one buffer and written by one write(2).
 * What the file did not take stays in the buffer and is written first the next time, so that no
 * line is lost, torn or doubled.
 */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_LOG_FILE_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_LOG_FILE_H

#include <sys/types.h>

#include "recorder/output/chain.h"

#define LOG_FILE_PATH_MAX 1024

struct log_file {
	int fd; /* owned; open for appending only */
	/* Owned; the same file for reading: a descriptor that can do both could be mapped, and old
	 * lines changed. */
	int reader;
	char path[LOG_FILE_PATH_MAX]; /* escaped, for messages */
	struct chain chain;
	struct buf pending; /* formatted, not yet in the file */
	off_t end;          /* size of the file after our last write; -1: unknown */
	bool regular;
	bool locked;
	bool dirty;                        /* written, not yet synced */
	bool goes_on;                      /* after a line that ended it */
	uint8_t follows[CHAIN_MARK_BYTES]; /* the line before an empty file's first one */
	bool has_follows;
};

/* Takes ownership of both descriptors. pending_max: limit of the buffer in bytes. Returns 0 or
 * -errno (the descriptors are closed then). */
int log_file_open(struct log_file *log, int fd, int reader, struct slice path, size_t pending_max);
void log_file_close(struct log_file *log);
/* Adopts a batch whose writer may have been killed; offset: the file's size before it. Returns 1:
 * the file has the batch up to a point; the rest is pending, under the lock; 0: the file has
 * something else there; -errno. */
int log_file_adopt(struct log_file *log, struct slice batch, off_t offset);
/* Call before a batch: locks the file against other recorders and continues the chain from its last
 * line. Returns 0: lines may be appended to pending; -EAGAIN: another recorder is writing; -ESTALE:
 * its last line ends it, log_file_reopen() is due; -errno. */
int log_file_begin(struct log_file *log);
/* From now on writes to it although its last line ends it: no supervisor is left to open another
 * file. */
void log_file_go_on(struct log_file *log);
/* mark (chain.h) is the last line of the file that the previous recorder had left, possibly before
 * it wrote to this one: if this file is empty, its first line follows the marked one. */
void log_file_follow(struct log_file *log, struct slice mark);
/* Returns whether fd is the same file. */
bool log_file_is(const struct log_file *log, int fd);
/* Writes what is pending and unlocks. Returns 0: all is in the file; -errno: the rest is still
 * pending, under the lock. */
int log_file_flush(struct log_file *log);
/* fdatasync(2) if something was written since the last one. Returns 0 or -errno (then it is still
 * due). */
int log_file_sync(struct log_file *log);
/* Continues in another file, with nothing pending: takes ownership of both descriptors. If that
 * file is empty, its first line names the last one of the old file. If it is the same file, it is
 * continued even after a line that ends it. Returns 0; -EAGAIN (another recorder is writing) or
 * -errno: nothing has changed and the descriptors are still the caller's. */
int log_file_reopen(struct log_file *log, int fd, int reader);
/* Writes to out, as one sentence, what went wrong and what the operator can do. Returns out. */
char *log_file_explain(const struct log_file *log, int error, char *out, size_t out_size);

#endif
