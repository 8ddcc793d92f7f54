/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page of cursors, then RING_BYTES of records. A record is its length (u32, native order: both
 * ends are on this machine), its bytes, and padding to 8; it may wrap around the end. Cursors count
 * bytes since the beginning and never wrap; each side advances its own and reads the other's.
 *
 * The reader is the more trusted side. The writer may be hostile at any moment, also in the middle
 * of a copy. So the reader keeps its own cursor in its own memory, reads the writer's cursor and
 * each length exactly once into a local, checks them, and copies the bytes out before anything
 * looks at them. A writer cannot make the reader fault: memory.c.
 *
 * Sleeping follows Dekker's method: each side first publishes its flag (or its cursor), then looks
 * at the other's cursor (or flag), with a full fence between the two. At least one of them always
 * sees the other.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vethguard/ipc/ring.h"
#include "ipc/private.h"

#define CURSORS_BYTES 4096
#define ALIGNMENT 8u
#define LENGTH_BYTES ((uint32_t)sizeof(uint32_t))

struct ring_shared {
	_Alignas(64) _Atomic uint64_t head; /* written by the writer */
	_Atomic uint32_t writer_waits;
	_Alignas(64) _Atomic uint64_t tail; /* written by the reader */
	_Atomic uint32_t reader_sleeps;
	_Alignas(CURSORS_BYTES) uint8_t records[RING_BYTES];
};
_Static_assert((RING_BYTES & (RING_BYTES - 1)) == 0, "positions are masked");
_Static_assert(
        sizeof(struct ring_shared) == CURSORS_BYTES + RING_BYTES, "the memory's sealed size");
_Static_assert(
        RING_RECORD_MAX < RING_BYTES / 4, "a waiting writer's record fits once half is free");

static uint64_t stride(uint32_t n)
{
	return ((uint64_t)LENGTH_BYTES + n + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static int eventfd_new(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void wake(int fd)
{
	/* Fails only if the counter is full, and then the other side was told more than often
	 * enough. */
	(void)!eventfd_write(fd, 1);
}

static void drain(int fd)
{
	eventfd_t count;

	(void)!eventfd_read(fd, &count);
}

static void close_three(const int fds[3])
{
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int add_eventfds(int fds[3], int memory_fd)
{
	if (memory_fd < 0)
		return memory_fd;
	fds[0] = memory_fd;
	fds[1] = eventfd_new();
	fds[2] = eventfd_new();
	if (fds[1] >= 0 && fds[2] >= 0)
		return 0;
	int rc = fds[1] < 0 ? fds[1] : fds[2];
	close_three(fds);
	return rc;
}

int ring_create(int fds[3])
{
	return add_eventfds(fds, ipc_memory_new("vethguard-ring", sizeof(struct ring_shared)));
}

int ring_create_at(int directory, const char *name, int fds[3])
{
	int memory_fd = ipc_memory_new_at(directory, name, sizeof(struct ring_shared));
	int rc = add_eventfds(fds, memory_fd);

	if (rc && memory_fd >= 0)
		unlinkat(directory, name, 0);
	return rc;
}

int ring_prepare(int directory, int fds[3])
{
	return add_eventfds(fds, ipc_memory_nameless(directory, sizeof(struct ring_shared)));
}

int ring_name(const int fds[3], int directory, const char *name)
{
	return ipc_memory_name(fds[0], directory, name);
}

int ring_adopt_at(int directory, const char *name, int fds[3])
{
	return add_eventfds(fds, ipc_memory_open_at(directory, name, sizeof(struct ring_shared)));
}

static int map(struct ring *ring, int memory_fd, int data_fd, int space_fd)
{
	int rc;

	*ring = (struct ring){.memory_fd = memory_fd, .data_fd = data_fd, .space_fd = space_fd};
	ring->shared = ipc_memory_map(memory_fd, sizeof(struct ring_shared), &rc);
	if (ring->shared)
		return 0;
	close_three((const int[]){memory_fd, data_fd, space_fd});
	ring->memory_fd = ring->data_fd = ring->space_fd = -1;
	return rc;
}

int ring_open_writer(struct ring *ring, int memory_fd, int data_fd, int space_fd)
{
	return map(ring, memory_fd, data_fd, space_fd);
}

int ring_open_reader(struct ring *ring, int memory_fd, int data_fd, int space_fd)
{
	return map(ring, memory_fd, data_fd, space_fd);
}

void ring_close(struct ring *ring)
{
	if (!ring->shared)
		return;
	ipc_memory_unmap(ring->shared, sizeof(struct ring_shared));
	close_three((const int[]){ring->memory_fd, ring->data_fd, ring->space_fd});
	*ring = (struct ring){.memory_fd = -1, .data_fd = -1, .space_fd = -1};
}

/* Returns the free bytes as the writer sees them; 0 if the reader's cursor is invalid. */
static uint64_t writer_free(const struct ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
	uint64_t used = ring->position - tail;

	return used > RING_BYTES ? 0 : RING_BYTES - used;
}

static void copy_in(uint8_t *records, uint64_t position, const void *p, size_t n)
{
	size_t at = (size_t)(position & (RING_BYTES - 1));
	size_t first = n < RING_BYTES - at ? n : RING_BYTES - at;

	memcpy(records + at, p, first);
	memcpy(records, (const uint8_t *)p + first, n - first);
}

static void copy_out(const uint8_t *records, uint64_t position, void *out, size_t n)
{
	size_t at = (size_t)(position & (RING_BYTES - 1));
	size_t first = n < RING_BYTES - at ? n : RING_BYTES - at;

	memcpy(out, records + at, first);
	memcpy((uint8_t *)out + first, records, n - first);
}

/* Asks to be told of space, and looks once more: the reader may have released it meanwhile. */
static bool wait_for_room(struct ring *ring, uint64_t need)
{
	drain(ring->space_fd);
	atomic_store_explicit(&ring->shared->writer_waits, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (writer_free(ring) < need)
		return false;
	atomic_store_explicit(&ring->shared->writer_waits, 0, memory_order_relaxed);
	return true;
}

int ring_write(struct ring *ring, const void *record, size_t n)
{
	struct ring_shared *shared = ring->shared;

	if (n == 0 || n > RING_RECORD_MAX)
		return -EMSGSIZE;
	uint32_t length = (uint32_t)n;
	uint64_t need = stride(length);
	if (writer_free(ring) < need && !wait_for_room(ring, need))
		return -EAGAIN;
	copy_in(shared->records, ring->position, &length, sizeof(length));
	copy_in(shared->records, ring->position + sizeof(length), record, n);
	ring->position += need;
	atomic_store_explicit(&shared->head, ring->position, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&shared->reader_sleeps, memory_order_relaxed) &&
	        atomic_exchange(&shared->reader_sleeps, 0))
		wake(ring->data_fd);
	return 0;
}

int ring_read(struct ring *ring, void *out)
{
	const struct ring_shared *shared = ring->shared;
	uint64_t head = atomic_load_explicit(&shared->head, memory_order_acquire);
	uint64_t there = head - ring->position;
	uint32_t length;

	if (there == 0)
		return 0;
	if (there > RING_BYTES || there % ALIGNMENT)
		return -EBADMSG;
	copy_out(shared->records, ring->position, &length, sizeof(length));
	if (length == 0 || length > RING_RECORD_MAX || stride(length) > there)
		return -EBADMSG;
	copy_out(shared->records, ring->position + sizeof(length), out, length);
	ring->position += stride(length);
	return (int)length;
}

void ring_release(struct ring *ring)
{
	struct ring_shared *shared = ring->shared;

	atomic_store_explicit(&shared->tail, ring->position, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&shared->writer_waits, memory_order_relaxed))
		return;
	uint64_t head = atomic_load_explicit(&shared->head, memory_order_relaxed);
	if (head - ring->position <= RING_BYTES / 2 && atomic_exchange(&shared->writer_waits, 0))
		wake(ring->space_fd);
}

void ring_seek(struct ring *ring, uint64_t position)
{
	ring->position = position;
	ring_release(ring);
	wake(ring->space_fd);
}

void ring_seek_unknown(struct ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&ring->shared->head, memory_order_acquire);

	ring_seek(ring, head == tail ? head : 0);
}

bool ring_sleep(struct ring *ring)
{
	struct ring_shared *shared = ring->shared;

	drain(ring->data_fd);
	atomic_store_explicit(&shared->reader_sleeps, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&shared->head, memory_order_acquire) == ring->position)
		return true;
	atomic_store_explicit(&shared->reader_sleeps, 0, memory_order_relaxed);
	return false;
}
