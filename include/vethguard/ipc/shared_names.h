/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_names: maps synthetic addresses to names, in shared memory that outlives the worker that wrote it, so that
 * addresses which a sandbox has cached stay valid with the next worker. A worker keeps its own tables and reads from
 * here only what it does not know. It checks everything it reads, because a worker that an attacker controlled may
 * have written anything.
 *
 * The memory is a memfd of sealed size, which ends with its last holder, or a file (of /run), which outlives every
 * process. A file that is truncated, or whose file system is full, reads as an empty table for a process that has
 * called shared_names_guard(); a worker's own tables stay.
 *
 * Two workers may have it open at a time: the one that opened it last is the newest. Both may claim unclaimed
 * indices; only the newest may replace a name. Any number of further workers may watch it: they read what the newest
 * has written, and write only that they use a name.
 */
#ifndef VETHGUARD_IPC_SHARED_NAMES_H
#define VETHGUARD_IPC_SHARED_NAMES_H

#include <stdbool.h>

#include "vethguard/base/slice.h"

#define SHARED_NAME_MAX 253       /* bytes of a name */
#define SHARED_NAMES_MAX 1000000u /* limits.dns_names is at most this */

struct shared_names {
	struct shared_names_memory *memory; /* the mapping */
	size_t bytes;
	uint32_t limit; /* number of indices */
	uint32_t turn;
};

/* Returns the size of the memory for limit names: about 270 bytes each; only those that are used take memory. A file
 * of that size, all zero, is an empty table. */
size_t shared_names_bytes(uint32_t limit);
/* Makes such a table as a memfd whose size is sealed. Returns a descriptor that the caller owns, or -errno. */
int shared_names_create(uint32_t limit);
/* The same as a new file (0600) of a directory. -EEXIST, -errno. */
int shared_names_create_at(int directory, const char *name, uint32_t limit);
/* Opens such a file. -ENOENT; -EBADMSG: it was not made by shared_names_create_at(), or is truncated, of another
 * version, or writable by others; -errno. Readers check its content. */
int shared_names_open_at(int directory, const char *name);

/* Maps it and becomes the newest; takes ownership of fd (closed in any case: the mapping lasts). Returns 0 or -errno
 * (-EBADMSG: an invalid size). */
int shared_names_open(struct shared_names *names, int fd);
/* Maps it like shared_names_open(), but does not become the newest. */
int shared_names_watch(struct shared_names *names, int fd);
void shared_names_close(struct shared_names *names);

/* From now on, names whose memory has vanished under the mapping read as empty (a handler of SIGBUS; memory of rings
 * is not guarded: without its ring a worker has to end). Returns 0 or -errno. */
int shared_names_guard(void);

/* Returns false if another worker has opened it since. */
bool shared_names_newest(const struct shared_names *names);
/* Returns the number of claimed indices, at most limit. */
uint32_t shared_names_count(const struct shared_names *names);
/* Claims the lowest unclaimed index. Returns 0 or -ENOSPC. */
int shared_names_claim(struct shared_names *names, uint32_t *index);
/* Writes the name of an index below limit, at most SHARED_NAME_MAX bytes. */
void shared_names_put(struct shared_names *names, uint32_t index, struct slice name, int64_t asked_ms);
/* The name was asked for again. */
void shared_names_asked(struct shared_names *names, uint32_t index, int64_t asked_ms);
/* Returns the time that shared_names_asked() or shared_names_put() wrote last, in any worker. */
int64_t shared_names_asked_ms(const struct shared_names *names, uint32_t index);
/* Returns a number that changes whenever the name of this index (below limit) is written. */
uint32_t shared_names_version(const struct shared_names *names, uint32_t index);
/* Copies the entry of an index below limit. Returns the size of the name; 0: none, or an invalid one. The bytes and
 * the time are whatever was written. */
size_t shared_names_get(
        const struct shared_names *names, uint32_t index, char name[SHARED_NAME_MAX], int64_t *asked_ms);

#endif
