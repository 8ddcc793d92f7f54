/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head with two counters, then one entry of fixed size per index. An entry's version is 0 before
 * its first write and odd during a write. A reader copies the bytes and then checks that the
 * version has not changed. Every number that is read is bounded here, so that a hostile writer can
 * falsify the content, but cannot harm the reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/shared_names.h"
#include "ipc/private.h"

#define HEAD_BYTES 64
#define LAYOUT 0x76676e31u /* of head and entries: changes with them */

struct entry {
	_Atomic int64_t asked_ms;
	_Atomic uint32_t version;
	uint8_t n;
	char name[SHARED_NAME_MAX];
};

struct shared_names_memory {
	_Alignas(HEAD_BYTES) _Atomic uint32_t turn; /* of the newest */
	_Atomic uint32_t count;
	uint32_t layout; /* of a file: its version; no worker reads it */
	_Alignas(HEAD_BYTES) struct entry entries[];
};
_Static_assert(SHARED_NAME_MAX <= UINT8_MAX, "a name's length fits its field");

size_t shared_names_bytes(uint32_t limit)
{
	return sizeof(struct shared_names_memory) + (size_t)limit * sizeof(struct entry);
}

int shared_names_create(uint32_t limit)
{
	return ipc_memory_new("vethguard-names", shared_names_bytes(limit));
}

/* Its space is not allocated: most tables stay nearly empty. */
static int make_file(int fd, uint32_t limit)
{
	const uint32_t layout = LAYOUT;

	if (ftruncate(fd, (off_t)shared_names_bytes(limit)) < 0)
		return -errno;
	ssize_t n =
	        pwrite(fd, &layout, sizeof(layout), offsetof(struct shared_names_memory, layout));
	if (n == (ssize_t)sizeof(layout))
		return 0;
	return n < 0 ? -errno : -ENOSPC;
}

int shared_names_create_at(int directory, const char *name, uint32_t limit)
{
	int fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = make_file(fd, limit);
	if (rc == 0)
		return fd;
	unlinkat(directory, name, 0);
	close(fd);
	return rc;
}

/* Returns the limit of a table of this size; 0: no table has it. */
static uint32_t limit_of(off_t size)
{
	if (size < (off_t)shared_names_bytes(1) ||
	        size > (off_t)shared_names_bytes(SHARED_NAMES_MAX))
		return 0;
	size_t room = (size_t)size - sizeof(struct shared_names_memory);
	return room % sizeof(struct entry) ? 0 : (uint32_t)(room / sizeof(struct entry));
}

static int look_at_file(int fd, off_t size)
{
	uint32_t layout;

	if (!limit_of(size))
		return -EBADMSG;
	ssize_t n =
	        pread(fd, &layout, sizeof(layout), offsetof(struct shared_names_memory, layout));
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(layout) && layout == LAYOUT ? 0 : -EBADMSG;
}

int shared_names_open_at(int directory, const char *name)
{
	return ipc_memory_open_own(directory, name, look_at_file);
}

static int map(struct shared_names *names, int fd)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	names->limit = limit_of(st.st_size);
	if (!names->limit)
		return -EBADMSG;
	names->bytes = shared_names_bytes(names->limit);
	names->memory = ipc_memory_map(fd, names->bytes, &rc);
	if (names->memory)
		ipc_memory_spare(names->memory);
	return rc;
}

int shared_names_watch(struct shared_names *names, int fd)
{
	*names = (struct shared_names){0};
	int rc = map(names, fd);

	close(fd);
	if (rc)
		*names = (struct shared_names){0};
	return rc;
}

int shared_names_open(struct shared_names *names, int fd)
{
	int rc = shared_names_watch(names, fd);

	if (!rc)
		names->turn = atomic_fetch_add(&names->memory->turn, 1) + 1;
	return rc;
}

void shared_names_close(struct shared_names *names)
{
	if (names->memory)
		ipc_memory_unmap(names->memory, names->bytes);
	*names = (struct shared_names){0};
}

/* If the memory has vanished, no later worker can have it. */
bool shared_names_newest(const struct shared_names *names)
{
	return atomic_load_explicit(&names->memory->turn, memory_order_acquire) == names->turn ||
	       ipc_memory_lost(names->memory);
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

int64_t shared_names_asked_ms(const struct shared_names *names, uint32_t index)
{
	return atomic_load_explicit(&names->memory->entries[index].asked_ms, memory_order_relaxed);
}

uint32_t shared_names_version(const struct shared_names *names, uint32_t index)
{
	return atomic_load_explicit(&names->memory->entries[index].version, memory_order_acquire);
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
