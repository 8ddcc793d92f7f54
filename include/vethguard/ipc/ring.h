/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: the worker's events on their way to the recorder, in shared memory (a sealed-size memfd), so that recording
 * costs the worker a copy and no system call, and nothing is lost when the worker is killed: what it wrote is in memory
 * that the recorder holds too. One writer, one reader, both single-threaded. The reader trusts nothing in it.
 *
 * Full: the writer must wait (never drop). The reader's stop flag (the log cannot be written) makes the writer refuse
 * new work at once.
 */
#ifndef VETHGUARD_IPC_RING_H
#define VETHGUARD_IPC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_BYTES (256u << 10)  /* of records; a power of two */
#define RING_RECORD_MAX 16384

struct ring {
	struct ring_shared *shared; /* the mapping */
	uint64_t position;          /* own side's cursor: never read back from shared memory */
	int memory_fd;
	int data_fd;                /* eventfd: writer tells reader that an idle ring has data */
	int space_fd;               /* eventfd: reader tells a waiting writer that there is room */
};

/* Makes memory and both eventfds. fds: memory, data, space; the caller owns them. 0 or -errno. */
int ring_create(int fds[3]);
/* Maps the ring; takes the fds (closed where this fails). The reader may open a ring that already has records. 0 or -errno (-EBADMSG: wrong size). */
int ring_open_writer(struct ring *ring, int memory_fd, int data_fd, int space_fd);
int ring_open_reader(struct ring *ring, int memory_fd, int data_fd, int space_fd);
void ring_close(struct ring *ring);

/* Writer: copies the record in. 0; -EAGAIN: full, space_fd will become readable when half is free; -EMSGSIZE. Wakes the
 * reader only where it sleeps. */
int ring_write(struct ring *ring, const void *record, size_t n);
/* Writer: room for this many further records of the largest size. */
size_t ring_room(const struct ring *ring);

/* Reader: copies the next record into out (RING_RECORD_MAX). Its size; 0: empty; -EBADMSG: the writer broke the ring. */
int ring_read(struct ring *ring, void *out);
/* Reader: gives the space of everything read so far back and wakes a waiting writer. */
void ring_release(struct ring *ring);
/* Reader, before its first read: goes on at position, where another reader of this ring has ended, and wakes the writer, which
 * that one may have left waiting. Any position is safe: one that makes no sense is -EBADMSG when read. */
void ring_seek(struct ring *ring, uint64_t position);
/* Reader: raises or lowers the stop flag. Writer: true while it is raised. */
void ring_stop(struct ring *ring, bool stop);
bool ring_stopped(const struct ring *ring);
/* Reader: about to sleep; true: still empty, data_fd will tell; false: records came meanwhile, go on reading. */
bool ring_sleep(struct ring *ring);

#endif
