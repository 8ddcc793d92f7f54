/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several runs may share one file. Each takes flock(2) for the length of a batch: under the lock it
 * checks whether the file has grown since its own last write and, if so, continues from the last
 * line there. So there is one chain through the file, whoever wrote which line. Nothing waits for
 * the lock: the caller tries again.
 *
 * A short write keeps the lock until the rest is written, because nobody else may continue a line.
 * A writer that was killed in between leaves a torn line; the next one ends it and continues after
 * the last whole line, and `vethguard audit verify` reports it.
 *
 * If the file is moved away, the first recorder to leave it writes a last line that ends it
 * (OCSF_TYPE_LOG_ENDED), and the new file's first line follows that one. Recorders that still have
 * the old file find this line under the lock and write nothing after it: so the chain does not
 * fork. A recorder that dies while the new file is empty has left a mark in the journal
 * (checkpoint.c). The end is recognized by its type, a number at a fixed place of a line whose hash
 * is right: no text in a line can be taken for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"

#include "recorder/output/log_file.h"
#include "recorder/ocsf/ocsf.h"

/* Enough for one torn line and the whole one before it. */
#define TAIL_BYTES_MAX (2 * OCSF_LINE_MAX)

int log_file_open(struct log_file *log, int fd, int reader, struct slice path, size_t pending_max)
{
	struct stat st;
	int rc;

	memset(log, 0, sizeof(*log));
	log->fd = fd;
	log->reader = reader;
	log->end = -1;
	slice_escape(path, log->path, sizeof(log->path));
	buf_init(&log->pending, pending_max);
	rc = fstat(fd, &st) < 0 ? -errno : chain_init(&log->chain);
	if (rc != 0) {
		log_file_close(log);
		return rc;
	}
	log->regular = S_ISREG(st.st_mode);
	return 0;
}

void log_file_close(struct log_file *log)
{
	if (log->fd >= 0)
		close(log->fd);
	if (log->reader >= 0)
		close(log->reader);
	log->fd = log->reader = -1;
	buf_fini(&log->pending);
	chain_fini(&log->chain);
}

/* Reads want bytes at offset, or as many as there are. Returns their count, or -errno. */
static ssize_t read_at(int fd, off_t offset, char *out, size_t want)
{
	size_t have = 0;

	while (have < want) {
		ssize_t n = pread(fd, out + have, want - have, offset + (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* Returns the last whole line of text (which ends in a newline), without its newline. */
static struct slice last_line(struct slice text)
{
	struct slice line = {text.p, text.n - 1};
	const char *start = memrchr(line.p, '\n', line.n);

	if (start)
		line = slice_of(start + 1, line.n - (size_t)(start + 1 - line.p));
	return line;
}

void log_file_follow(struct log_file *log, struct slice mark)
{
	log->has_follows = mark.n == sizeof(log->follows);
	if (log->has_follows)
		memcpy(log->follows, mark.p, mark.n);
}

static bool follow(struct log_file *log)
{
	return log->has_follows &&
	       chain_follow(&log->chain, slice_of(log->follows, sizeof(log->follows))) == 0;
}

static int resume_from(struct log_file *log, struct slice tail)
{
	const char *end = tail.n ? memrchr(tail.p, '\n', tail.n) : NULL;
	size_t whole = end ? (size_t)(end - tail.p) + 1 : 0;

	if (tail.n == 0 && follow(log))
		return 0;
	if (whole < tail.n) {
		log_warn("%s ends in a torn line: its writer was interrupted", log->path);
		if (buf_append(&log->pending, "\n", 1) != 0)
			return -ENOMEM;
	}
	if (whole == 0 || chain_resume(&log->chain, last_line(slice_of(tail.p, whole))) != 0) {
		if (tail.n)
			log_warn("%s does not end in a line of an audit log: a new chain begins "
			         "here",
			        log->path);
		chain_restart(&log->chain);
	}
	return 0;
}

static int resume(struct log_file *log, off_t size)
{
	size_t want = size < TAIL_BYTES_MAX ? (size_t)size : TAIL_BYTES_MAX;
	char *tail = malloc(TAIL_BYTES_MAX);
	ssize_t n;
	int rc;

	if (!tail)
		return -ENOMEM;
	n = read_at(log->reader, size - (off_t)want, tail, want);
	rc = n < 0 ? (int)n : resume_from(log, slice_of(tail, (size_t)n));
	free(tail);
	return rc;
}

/* True if the last line says that the log continues in another file. For an empty file, the last
 * line is the old file's. */
static bool has_ended(struct log_file *log, off_t size)
{
	bool ended = size > 0 && log->chain.last.type_uid == OCSF_TYPE_LOG_ENDED;

	log->goes_on &= ended;
	return ended && !log->goes_on;
}

static void unlock(struct log_file *log)
{
	if (log->locked)
		flock(log->fd, LOCK_UN);
	log->locked = false;
}

/* Compares the file from offset on with the batch. Returns how many bytes of the batch are there,
 * or -EBADMSG, -errno. */
static ssize_t count_written(struct log_file *log, struct slice batch, off_t offset)
{
	char *text = malloc(batch.n + 1);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = read_at(log->reader, offset, text, batch.n);
	if (n > 0 && memcmp(text, batch.p, (size_t)n) != 0)
		n = -EBADMSG;
	free(text);
	return n;
}

int log_file_adopt(struct log_file *log, struct slice batch, off_t offset)
{
	struct stat st;
	ssize_t written;

	if (!log->regular)
		return 0;
	/* The writer of the batch had the lock, and if a part is missing, still has it: the
	 * supervisor holds the same open file. */
	log->locked = flock(log->fd, LOCK_EX | LOCK_NB) == 0;
	if (fstat(log->fd, &st) < 0)
		return -errno;
	/* A smaller file or a larger batch: no recorder has begun this batch. */
	written = st.st_size < offset || batch.n > log->pending.max
	                  ? -EBADMSG
	                  : count_written(log, batch, offset);
	if (written < 0 && written != -EBADMSG)
		return (int)written;
	if (written < 0 || ((size_t)written < batch.n && !log->locked)) {
		unlock(log);
		return 0;
	}
	log->dirty = true;
	return buf_append(&log->pending, batch.p + written, batch.n - (size_t)written) == 0
	               ? 1
	               : -ENOMEM;
}

int log_file_begin(struct log_file *log)
{
	struct stat st;
	int rc;

	if (!log->regular || log->locked)
		return 0;
	if (flock(log->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	log->locked = true;
	rc = fstat(log->fd, &st) < 0 ? -errno : 0;
	if (rc == 0 && st.st_size != log->end)
		rc = resume(log, st.st_size);
	if (rc == 0) {
		log->end = st.st_size;
		rc = has_ended(log, st.st_size) ? -ESTALE : 0;
	}
	if (rc == -ESTALE) /* a torn line after the end stays torn */
		buf_consume(&log->pending, log->pending.len);
	if (rc != 0)
		unlock(log);
	return rc;
}

void log_file_go_on(struct log_file *log)
{
	log->goes_on = true;
}

bool log_file_is(const struct log_file *log, int fd)
{
	struct stat ours, other;

	return fstat(log->fd, &ours) == 0 && fstat(fd, &other) == 0 &&
	       ours.st_dev == other.st_dev && ours.st_ino == other.st_ino;
}

int log_file_flush(struct log_file *log)
{
	while (log->pending.len) {
		ssize_t n = write(log->fd, buf_bytes(&log->pending), log->pending.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		buf_consume(&log->pending, (size_t)n);
		log->has_follows = false;
		if (log->end >= 0) /* else log_file_begin() still has to look */
			log->end += n;
		log->dirty = true;
	}
	unlock(log);
	return 0;
}

int log_file_sync(struct log_file *log)
{
	if (!log->dirty || !log->regular)
		return 0;
	if (fdatasync(log->fd) < 0)
		return -errno;
	log->dirty = false;
	return 0;
}

/* Before the file is left, its last line has to be known; it may be another program's. */
static int settle_chain(struct log_file *log)
{
	int rc = log_file_begin(log);

	if (rc == 0)
		rc = log_file_flush(log); /* the end of a torn line, and the lock */
	return rc == 0 || rc == -ESTALE ? log_file_sync(log) : rc;
}

int log_file_reopen(struct log_file *log, int fd, int reader)
{
	struct stat st;
	int rc = settle_chain(log);

	if (rc == 0 && fstat(fd, &st) < 0)
		rc = -errno;
	if (rc != 0)
		return rc;
	log->goes_on = log_file_is(log, fd);
	close(log->fd);
	close(log->reader);
	log->fd = fd;
	log->reader = reader;
	log->regular = S_ISREG(st.st_mode);
	log->end = st.st_size == 0 ? 0 : -1; /* existing lines are continued */
	return 0;
}

static const char *advice(int error)
{
	switch (-error) {
	case ENOSPC:
	case EDQUOT:
		return "Free some space on its file system";
	case EFBIG:
		return "Move the file away (it has reached the largest permitted size) and start "
		       "again";
	case EAGAIN:
		return "Another program keeps it locked; end that program";
	case ESTALE:
		return "It was moved away and its last line ends it; the file that is to follow "
		       "cannot be opened: see to its directory";
	case EROFS:
		return "Make its file system writable";
	case ENOLCK:
		return "Put it on a file system that can lock files";
	case ENOMEM:
		return "Free some memory";
	case ENODEV:
		return "The recorder's journal was cut by another program; restart vethguard";
	default:
		return "Check the disk and the kernel's messages";
	}
}

char *log_file_explain(const struct log_file *log, int error, char *out, size_t out_size)
{
	snprintf(out, out_size,
	        "The audit log %s cannot be written: %s. %s; nothing is lost, the sandboxes wait "
	        "until it can be written again.",
	        log->path, strerror(-error), advice(error));
	return out;
}
