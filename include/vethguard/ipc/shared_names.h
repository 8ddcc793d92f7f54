/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_names: which synthetic address stands for which name, in shared memory that outlives the worker that wrote
 * it, so that addresses which a sandbox has cached stay valid with the worker that takes over. A worker keeps its own
 * tables and reads from here only what it does not know; nothing here is used without a look at it, since a worker
 * that was taken over may have written anything.
 *
 * The memory is a memfd of sealed size, which ends with its last holder, or a file (of /run), which outlives every
 * process. A file that is cut, or whose file system is full, reads as an empty table for whoever has called
 * shared_names_guard(); what a worker has in tables of its own stays.
 *
 * Two workers may have it open at a time: the one that opened it last is the newest. Both may claim indices that
 * nobody has claimed yet; only the newest may put another name in place of one.
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
	uint32_t limit; /* indices there is room for */
	uint32_t turn;
};

/* Size of the memory for so many names: about 270 bytes each; only those that are used take memory. A file of that
 * size, all zero, is an empty table. */
size_t shared_names_bytes(uint32_t limit);
/* Such a file as a memfd whose size is sealed: a descriptor that the caller owns, or -errno. */
int shared_names_create(uint32_t limit);
/* The same as a new file (0600) of a directory. -EEXIST, -errno. */
int shared_names_create_at(int directory, const char *name, uint32_t limit);
/* Such a file that is there. -ENOENT; -EBADMSG: not one that shared_names_create_at has made, or cut, or of another
 * version, or one that others may write to; -errno. What it says of a name is looked at by whoever reads it. */
int shared_names_open_at(int directory, const char *name);

/* Maps it and becomes the newest; takes fd (closed in any case: the mapping lasts). 0 or -errno (-EBADMSG: a size
 * that is none). */
int shared_names_open(struct shared_names *names, int fd);
void shared_names_close(struct shared_names *names);

/* From now on, names whose memory has vanished under the mapping read as empty (a handler of SIGBUS; memory of rings
 * is not guarded: without its ring a worker has to end). 0 or -errno. */
int shared_names_guard(void);

/* False: another worker has opened it since. */
bool shared_names_newest(const struct shared_names *names);
/* Indices claimed so far, at most limit. */
uint32_t shared_names_count(const struct shared_names *names);
/* The lowest index nobody has claimed. 0 or -ENOSPC. */
int shared_names_claim(struct shared_names *names, uint32_t *index);
/* The name of an index below limit, at most SHARED_NAME_MAX bytes. */
void shared_names_put(struct shared_names *names, uint32_t index, struct slice name, int64_t asked_ms);
/* It was asked for again. */
void shared_names_asked(struct shared_names *names, uint32_t index, int64_t asked_ms);
/* Copies out what an index below limit has: size of the name, 0: none, or none that makes sense. The bytes and the
 * time are whatever was written. */
size_t shared_names_get(const struct shared_names *names, uint32_t index, char name[SHARED_NAME_MAX], int64_t *asked_ms);

#endif
