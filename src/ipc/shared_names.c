/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head with two counters, then one entry of fixed size per index. An entry's version is odd while
 * it is written and 0 before it ever was; a reader copies the bytes out and then looks whether the
 * version has stayed the same. Every number that is read is bounded here, so that a writer gone bad
 * can spoil what is said but not who reads it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/shared_names.h"

#define HEAD_BYTES 64
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct entry {
	_Atomic int64_t asked_ms;
	_Atomic uint32_t version;
	uint8_t n;
	char name[SHARED_NAME_MAX];
};

struct shared_names_memory {
	_Alignas(HEAD_BYTES) _Atomic uint32_t turn; /* of the newest */
	_Atomic uint32_t count;
	_Alignas(HEAD_BYTES) struct entry entries[];
};
_Static_assert(SHARED_NAME_MAX <= UINT8_MAX, "a name's length fits its field");

size_t shared_names_bytes(uint32_t limit)
{
	return sizeof(struct shared_names_memory) + (size_t)limit * sizeof(struct entry);
}

int shared_names_create(uint32_t limit)
{
	int fd = memfd_create("vethguard-names", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)shared_names_bytes(limit)) == 0 &&
	        fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static int map(struct shared_names *names, int fd)
{
	struct stat st;
	uint64_t room;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)shared_names_bytes(1))
		return -EBADMSG;
	room = ((uint64_t)st.st_size - sizeof(struct shared_names_memory)) / sizeof(struct entry);
	names->limit = room < SHARED_NAMES_MAX ? (uint32_t)room : SHARED_NAMES_MAX;
	names->bytes = shared_names_bytes(names->limit);
	void *memory = mmap(NULL, names->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	names->memory = memory;
	return 0;
}

int shared_names_open(struct shared_names *names, int fd)
{
	*names = (struct shared_names){0};
	int error = map(names, fd);

	close(fd);
	if (error)
		*names = (struct shared_names){0};
	else
		names->turn = atomic_fetch_add(&names->memory->turn, 1) + 1;
	return error;
}

void shared_names_close(struct shared_names *names)
{
	if (names->memory)
		munmap(names->memory, names->bytes);
	*names = (struct shared_names){0};
}

bool shared_names_newest(const struct shared_names *names)
{
	return atomic_load_explicit(&names->memory->turn, memory_order_acquire) == names->turn;
}

uint32_t shared_names_count(const struct shared_names *names)
{
	uint32_t count = atomic_load_explicit(&names->memory->count, memory_order_acquire);

	return count < names->limit ? count : names->limit;
}

int shared_names_claim(struct shared_names *names, uint32_t *index)
{
	uint32_t count = atomic_load_explicit(&names->memory->count, memory_order_acquire);

	do {
		if (count >= names->limit)
			return -ENOSPC;
	} while (!atomic_compare_exchange_weak(&names->memory->count, &count, count + 1));
	*index = count;
	return 0;
}

void shared_names_put(
        struct shared_names *names, uint32_t index, struct slice name, int64_t asked_ms)
{
	struct entry *entry = &names->memory->entries[index];
	uint32_t version = atomic_load_explicit(&entry->version, memory_order_relaxed) | 1;

	atomic_store_explicit(&entry->version, version, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(entry->name, name.p, name.n);
	entry->n = (uint8_t)name.n;
	shared_names_asked(names, index, asked_ms);
	version += version == UINT32_MAX ? 3 : 1; /* never 0 again */
	atomic_store_explicit(&entry->version, version, memory_order_release);
}

void shared_names_asked(struct shared_names *names, uint32_t index, int64_t asked_ms)
{
	atomic_store_explicit(
	        &names->memory->entries[index].asked_ms, asked_ms, memory_order_relaxed);
}

size_t shared_names_get(const struct shared_names *names, uint32_t index,
        char name[SHARED_NAME_MAX], int64_t *asked_ms)
{
	const struct entry *entry = &names->memory->entries[index];
	uint32_t version = atomic_load_explicit(&entry->version, memory_order_acquire);
	size_t n = *(const volatile uint8_t *)&entry->n;

	if (version == 0 || version & 1 || n > SHARED_NAME_MAX)
		return 0;
	memcpy(name, entry->name, n);
	*asked_ms = atomic_load_explicit(&entry->asked_ms, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&entry->version, memory_order_relaxed) == version ? n : 0;
}
