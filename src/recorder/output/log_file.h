/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_file: the audit log on disk. Lines are formatted into one buffer and written by one write(2);
 * what the file did not take stays in the buffer and is written first next time, so that a line is
 * neither lost, torn nor doubled.
 */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_LOG_FILE_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_LOG_FILE_H

#include <sys/types.h>

#include "recorder/output/chain.h"

#define LOG_FILE_PATH_MAX 1024

struct log_file {
	int fd;                       /* owned; open for append only */
	int reader;                   /* owned; the same file for reading: a descriptor that may do
	                                 both could also be mapped, and old lines be changed */
	char path[LOG_FILE_PATH_MAX]; /* escaped, for messages */
	struct chain chain;
	struct buf pending; /* formatted, not yet in the file */
	off_t end;          /* size of the file after our last write; -1: not yet known */
	bool regular;
	bool locked;
	bool dirty;                        /* written, not yet synced */
	bool goes_on;                      /* behind a line that ended it */
	uint8_t follows[CHAIN_MARK_BYTES]; /* the line that goes before an empty file's first one */
	bool has_follows;
};

/* Takes both descriptors. pending_max: bound of the buffer in bytes. 0 or -errno (they are closed
 * then). */
int log_file_open(struct log_file *log, int fd, int reader, struct slice path, size_t pending_max);
void log_file_close(struct log_file *log);
/* A batch whose writer may have been killed, and the file's size before it. 1: the file has it, up
 * to a point; what is missing is pending, under the lock; 0: the file has something else there;
 * -errno. */
int log_file_adopt(struct log_file *log, struct slice batch, off_t offset);
/* Before a batch: locks the file against other recorders and continues the chain from its last
 * line. 0: lines may be appended to pending; -EAGAIN: another one is writing just now; -ESTALE: its
 * last line ends it, log_file_reopen() is due; -errno. */
int log_file_begin(struct log_file *log);
/* It is written to although its last line ends it: nobody is left who could open another one. */
void log_file_go_on(struct log_file *log);
/* The recorder before this one had left another file, behind the line of this mark (chain.h), and
 * may not have written to this one yet: where it is empty, its first line follows that one. */
void log_file_follow(struct log_file *log, struct slice mark);
/* Whether fd is the same file. */
bool log_file_is(const struct log_file *log, int fd);
/* Writes what is pending and unlocks. 0: all is in the file; -errno: the rest is still pending,
 * under the lock. */
int log_file_flush(struct log_file *log);
/* fdatasync(2) where something was written since the last one. 0 or -errno (then it is still due).
 */
int log_file_sync(struct log_file *log);
/* Goes on in another file, with nothing pending: takes both descriptors. Where that file is empty,
 * its first line names the last one of the old file. Where it is the same file, it is gone on with
 * even behind a line that ends it. 0; or -EAGAIN (another recorder is writing
 * just now), -errno: nothing has changed and the descriptors are still the caller's. */
int log_file_reopen(struct log_file *log, int fd, int reader);
/* What went wrong and what the operator can do, as one sentence. Returns out. */
char *log_file_explain(const struct log_file *log, int error, char *out, size_t out_size);

#endif
