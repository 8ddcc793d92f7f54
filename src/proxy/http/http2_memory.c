/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a session has one frame buffer. take() recognizes it by its size, and
 * give_back() by its address. An arena is a run of 64 buffers, each in pages of its own. Arenas
 * with free buffers come first in the list. An empty arena is unmapped if another one has room. A
 * free buffer gives its pages back, but a few keep their memory ("warm") for the next sessions.
 *
 * Where pages are larger than 4 KiB this gains nothing, so malloc() serves everything.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proxy/http/http2_memory.h"
#include "vethguard/base/list.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define PERMIT(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define FORBID(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#else
#define PERMIT(p, n) ((void)(p), (void)(n))
#define FORBID(p, n) ((void)(p), (void)(n))
#endif

/* nghttp2 asks for room for the longest payload, a frame's head and a little more. */
#define FRAME_LEAST 16384u
#define PAGE_BYTES 4096u
#define FRAME_BYTES (5 * PAGE_BYTES)
#define ARENA_FRAMES 64u
#define ARENA_BYTES ((size_t)ARENA_FRAMES * FRAME_BYTES)
#define WARM_MAX 8

struct http2_arena {
	struct list place; /* in pool.arenas */
	uint8_t *frames;
	uint64_t used, warm; /* a bit for each buffer; warm: free, but keeps its memory */
};
_Static_assert(ARENA_FRAMES == 64, "a bit for each buffer");

static _Thread_local struct {
	struct list arenas; /* zero before the first session */
	size_t count;       /* of arenas */
	size_t warm;        /* buffers */
} pool;

/* --- arenas --- */

static bool is_full(const struct http2_arena *arena)
{
	return arena->used == UINT64_MAX;
}

static struct http2_arena *first_arena(void)
{
	return container_of(pool.arenas.next, struct http2_arena, place);
}

static void put_first(struct http2_arena *arena)
{
	list_remove(&arena->place);
	list_append(pool.arenas.next, &arena->place);
}

static struct http2_arena *arena_new(void)
{
	struct http2_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return NULL;
	arena->frames =
	        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena->frames == MAP_FAILED) {
		free(arena);
		return NULL;
	}
	FORBID(arena->frames, ARENA_BYTES);
	put_first(arena);
	pool.count++;
	return arena;
}

static void arena_free(struct http2_arena *arena)
{
	list_remove(&arena->place);
	pool.count--;
	pool.warm -= (size_t)__builtin_popcountll(arena->warm);
	PERMIT(arena->frames, ARENA_BYTES);
	munmap(arena->frames, ARENA_BYTES);
	free(arena);
}

static struct http2_arena *arena_with_room(void)
{
	if (!pool.arenas.next)
		list_init(&pool.arenas);
	if (list_is_empty(&pool.arenas) || is_full(first_arena()))
		return arena_new();
	return first_arena();
}

/* --- frame buffers --- */

static uint8_t *frame_at(const struct http2_arena *arena, unsigned i)
{
	return arena->frames + (size_t)i * FRAME_BYTES;
}

static bool take_frame(struct http2_memory *m, size_t n)
{
	struct http2_arena *arena = arena_with_room();
	uint64_t bit;
	unsigned i;

	if (!arena)
		return false;
	i = (unsigned)__builtin_ctzll(arena->warm ? arena->warm : ~arena->used);
	bit = UINT64_C(1) << i;
	pool.warm -= (arena->warm & bit) != 0;
	arena->warm &= ~bit;
	arena->used |= bit;
	if (is_full(arena)) { /* arenas with room stay in front */
		list_remove(&arena->place);
		list_append(&pool.arenas, &arena->place);
	}
	m->arena = arena;
	m->frame = frame_at(arena, i);
	m->frame_n = n;
	PERMIT(m->frame, n);
	return true;
}

/* True if an arena besides this one has room. */
static bool is_dispensable(const struct http2_arena *arena)
{
	const struct list *next = arena->place.next;

	return !arena->used && next != &pool.arenas &&
	       !is_full(container_of(next, struct http2_arena, place));
}

static void give_frame(struct http2_memory *m)
{
	struct http2_arena *arena = m->arena;
	uint64_t bit = UINT64_C(1) << (size_t)(m->frame - arena->frames) / FRAME_BYTES;

	arena->used &= ~bit;
	if (pool.warm < WARM_MAX) {
		arena->warm |= bit;
		pool.warm++;
	} else {
		madvise(m->frame, FRAME_BYTES, MADV_DONTNEED);
	}
	FORBID(m->frame, FRAME_BYTES);
	m->frame = NULL;
	m->arena = NULL;
	put_first(arena);
	if (is_dispensable(arena))
		arena_free(arena);
}

/* --- for nghttp2 --- */

static void *take(size_t n, void *context)
{
	struct http2_memory *m = context;

	if (n >= FRAME_LEAST && n <= FRAME_BYTES && !m->frame_n &&
	        sysconf(_SC_PAGESIZE) == PAGE_BYTES && take_frame(m, n))
		return m->frame;
	return malloc(n);
}

static void *take_zeroed(size_t count, size_t n, void *context)
{
	(void)context;
	return calloc(count, n);
}

static void give_back(void *p, void *context)
{
	struct http2_memory *m = context;

	if (p && p == m->frame)
		give_frame(m);
	else
		free(p);
}

static void *resize(void *p, size_t n, void *context)
{
	struct http2_memory *m = context;
	void *other;

	if (!p)
		return take(n, m);
	if (p != m->frame)
		return realloc(p, n);
	other = malloc(n);
	if (!other)
		return NULL;
	memcpy(other, p, n < m->frame_n ? n : m->frame_n);
	give_frame(m);
	return other;
}

void http2_memory_init(struct http2_memory *m, nghttp2_session **session)
{
	*m = (struct http2_memory){.functions = {.mem_user_data = m,
	                                   .malloc = take,
	                                   .free = give_back,
	                                   .calloc = take_zeroed,
	                                   .realloc = resize},
	        .session = session};
}

void http2_memory_fini(struct http2_memory *m)
{
	loop_deadline_clear(&m->idle);
}

/* --- giving memory back --- */

void http2_memory_sent(struct http2_memory *m, const uint8_t *p)
{
	if (m->frame && p >= m->frame && p < m->frame + m->frame_n)
		m->proven = true;
}

void http2_memory_idle(struct http2_memory *m, struct loop_deadlines *list)
{
	if (!m->idle.list && m->frame)
		loop_deadline_set(list, &m->idle);
}

/* A session that neither reads nor writes is over, but may have begun to send: its frame buffer
 * stays. */
void http2_memory_on_deadline(struct loop_deadline *deadline)
{
	struct http2_memory *m = container_of(deadline, struct http2_memory, idle);
	nghttp2_session *session = *m->session;

	if (session && m->frame && m->proven && nghttp2_session_want_read(session) &&
	        !nghttp2_session_want_write(session))
		madvise(m->frame, FRAME_BYTES, MADV_DONTNEED);
}

void http2_memory_release(void)
{
	if (!pool.arenas.next)
		return;
	for (const struct list *l = pool.arenas.next; l != &pool.arenas; l = l->next) {
		struct http2_arena *arena = container_of(l, struct http2_arena, place);

		for (; arena->warm; arena->warm &= arena->warm - 1)
			madvise(frame_at(arena, (unsigned)__builtin_ctzll(arena->warm)),
			        FRAME_BYTES, MADV_DONTNEED);
	}
	pool.warm = 0;
}
