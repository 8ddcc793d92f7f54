/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: carries the worker's events to the recorder in shared memory. Recording costs the worker a copy and no system
 * call, and nothing is lost when the worker is killed, because the recorder holds the memory too. One writer, one
 * reader, both single-threaded. The reader trusts nothing in it.
 *
 * The memory is a memfd of sealed size, which ends with its last holder, or a file (of /run), which outlives every
 * process. A file has no seals: if somebody truncates it, a side that has called ring_guard() reads zeros, which no
 * valid ring holds; a side without the guard is killed by SIGBUS.
 *
 * When it is full, the writer must wait (never drop).
 */
#ifndef VETHGUARD_IPC_RING_H
#define VETHGUARD_IPC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_BYTES (256u << 10) /* of records; a power of two */
#define RING_RECORD_MAX 16384

struct ring {
	struct ring_shared *shared; /* the mapping */
	uint64_t position;          /* own side's cursor: never read back from shared memory */
	int memory_fd;
	int data_fd;  /* eventfd: writer tells reader that an idle ring has data */
	int space_fd; /* eventfd: reader tells a waiting writer that there is room */
};

/* Makes memory and both eventfds. fds: memory, data, space; the caller owns them. Returns 0 or -errno. */
int ring_create(int fds[3]);
/* Like ring_create(), with the memory as a new file (0600) of a directory. Its space is allocated at once (-ENOSPC),
 * so that a full file system cannot fail a writer later. It is locked until its last holder has closed it. */
int ring_create_at(int directory, const char *name, int fds[3]);
/* The same in two steps: ring_prepare() does all that takes time, without a name (-EOPNOTSUPP: not on this file
 * system; it ends with its last holder); ring_name() gives the name, in a directory of the same file system. Each
 * returns 0 or -errno. */
int ring_prepare(int directory, int fds[3]);
int ring_name(const int fds[3], int directory, const char *name);
/* Opens what a writer has left there: new eventfds to the same memory. -EWOULDBLOCK: a process still has it open;
 * -EBADMSG: no ring. */
int ring_adopt_at(int directory, const char *name, int fds[3]);
/* Maps the ring; takes ownership of the fds (closed on failure). The reader may open a ring that already has records.
 * Returns 0 or -errno (-EBADMSG: wrong size). */
int ring_open_writer(struct ring *ring, int memory_fd, int data_fd, int space_fd);
int ring_open_reader(struct ring *ring, int memory_fd, int data_fd, int space_fd);
void ring_close(struct ring *ring);
/* From now on, memory of a ring, a journal or shared names that has vanished under a mapping reads as zeros (a
 * handler of SIGBUS). Such a fault elsewhere ends the program as before. Returns 0 or -errno. */
int ring_guard(void);

/* Writer: copies the record in. Returns 0; -EAGAIN: full, space_fd becomes readable when half is free; -EMSGSIZE.
 * Wakes the reader only if it sleeps. */
int ring_write(struct ring *ring, const void *record, size_t n);

/* Reader: copies the next record to out (RING_RECORD_MAX). Returns its size; 0: empty; -EBADMSG: the writer broke the
 * ring. */
int ring_read(struct ring *ring, void *out);
/* Reader: gives back the space of everything read so far and wakes a waiting writer. */
void ring_release(struct ring *ring);
/* Reader, before its first read: continues at position, where another reader of this ring has ended, and wakes the
 * writer, which that reader may have left waiting. Any position is safe: reading from an invalid one is -EBADMSG. */
void ring_seek(struct ring *ring, uint64_t position);
/* Reader, instead of ring_seek() if no position is known: continues after everything if everything was given back to
 * the writer, else at the beginning. */
void ring_seek_unknown(struct ring *ring);
/* Reader, before sleeping. Returns true: still empty, data_fd will tell; false: records came meanwhile, read on. */
bool ring_sleep(struct ring *ring);

#endif
