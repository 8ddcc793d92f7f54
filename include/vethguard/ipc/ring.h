/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: the worker's events on their way to the recorder, in shared memory, so that recording costs the worker a copy
 * and no system call, and nothing is lost when the worker is killed: what it wrote is in memory that the recorder holds
 * too. One writer, one reader, both single-threaded. The reader trusts nothing in it.
 *
 * The memory is a memfd of sealed size, which ends with its last holder, or a file (of /run), which outlives every
 * process. A file has no seals. Should somebody cut it all the same, the side that has called ring_guard() reads zeros
 * where it was, which no ring holds; a side without the guard is killed by SIGBUS.
 *
 * Full: the writer must wait (never drop).
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
/* As ring_create, with the memory as a new file (0600) of a directory; its space is taken at once (-ENOSPC), so that
 * a full file system cannot fail a writer later. It is locked until its last holder has closed it. */
int ring_create_at(int directory, const char *name, int fds[3]);
/* The same in two steps: all that takes time, without a name (-EOPNOTSUPP: not on this file system; it is gone with
 * its last holder), and its name, for a directory of the same file system. Each 0 or -errno. */
int ring_prepare(int directory, int fds[3]);
int ring_name(const int fds[3], int directory, const char *name);
/* What a writer has left there: new eventfds to the same memory. -EWOULDBLOCK: somebody has it open still; -EBADMSG:
 * no ring. */
int ring_adopt_at(int directory, const char *name, int fds[3]);
/* Maps the ring; takes the fds (closed where this fails). The reader may open a ring that already has records. 0 or
 * -errno (-EBADMSG: wrong size). */
int ring_open_writer(struct ring *ring, int memory_fd, int data_fd, int space_fd);
int ring_open_reader(struct ring *ring, int memory_fd, int data_fd, int space_fd);
void ring_close(struct ring *ring);
/* From now on, memory of a ring, a journal or shared names that has vanished under a mapping reads as zeros (a
 * handler of SIGBUS). Such a fault elsewhere ends the program as before. 0 or -errno. */
int ring_guard(void);

/* Writer: copies the record in. 0; -EAGAIN: full, space_fd will become readable when half is free; -EMSGSIZE. Wakes the
 * reader only where it sleeps. */
int ring_write(struct ring *ring, const void *record, size_t n);

/* Reader: copies the next record into out (RING_RECORD_MAX). Its size; 0: empty; -EBADMSG: the writer broke the
 * ring. */
int ring_read(struct ring *ring, void *out);
/* Reader: gives the space of everything read so far back and wakes a waiting writer. */
void ring_release(struct ring *ring);
/* Reader, before its first read: goes on at position, where another reader of this ring has ended, and wakes the
 * writer, which that one may have left waiting. Any position is safe: one that makes no sense is -EBADMSG when read. */
void ring_seek(struct ring *ring, uint64_t position);
/* Reader, in place of ring_seek where no position is known: goes on behind everything where everything was given back
 * to the writer, else at the beginning. */
void ring_seek_unknown(struct ring *ring);
/* Reader: about to sleep; true: still empty, data_fd will tell; false: records came meanwhile, go on reading. */
bool ring_sleep(struct ring *ring);

#endif
