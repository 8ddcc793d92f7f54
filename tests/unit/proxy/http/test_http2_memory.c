/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2's memory: frame buffers in pages of their own, given back while a session is idle and
 * never while it has something to send. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/http/http2_memory.h"

#define FRAME 16394 /* what nghttp2 asks for */
#define MANY 200    /* more than three arenas */

static struct {
	nghttp2_session *session;
	struct http2_memory memory;
	size_t sent;
	bool full;     /* the socket takes nothing */
	bool unproven; /* the memory is not told what is sent */
	struct loop *loop;
	struct loop_deadlines waits;
} w;

static bool has_slots(void)
{
	return sysconf(_SC_PAGESIZE) == 4096;
}

static ssize_t on_send(
        nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *context)
{
	(void)session, (void)flags, (void)context;
	if (w.full)
		return NGHTTP2_ERR_WOULDBLOCK;
	if (!w.unproven)
		http2_memory_sent(&w.memory, p);
	w.sent += n;
	return (ssize_t)n;
}

static int set_up(void **state)
{
	nghttp2_session_callbacks *callbacks;

	(void)state;
	memset(&w, 0, sizeof(w));
	w.loop = loop_new();
	assert_int_equal(loop_deadlines_open(w.loop, &w.waits, 60000, http2_memory_on_deadline), 0);
	http2_memory_init(&w.memory, &w.session);
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	assert_int_equal(
	        nghttp2_session_server_new3(&w.session, callbacks, NULL, NULL, &w.memory.functions),
	        0);
	nghttp2_session_callbacks_del(callbacks);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nghttp2_session_del(w.session);
	http2_memory_fini(&w.memory);
	loop_deadlines_close(&w.waits);
	loop_free(w.loop);
	return 0;
}

static size_t say(void)
{
	static const uint8_t text[8] = "pingpong";
	size_t before = w.sent;

	assert_int_equal(nghttp2_submit_ping(w.session, NGHTTP2_FLAG_NONE, text), 0);
	assert_int_equal(nghttp2_session_send(w.session), 0);
	return w.sent - before;
}

/* Whether the frame buffer still has what was sent last. */
static bool remembers(void)
{
	return memmem(w.memory.frame, 64, "pingpong", 8) != NULL;
}

static void time_passes(void)
{
	http2_memory_idle(&w.memory, &w.waits);
	assert_ptr_equal(w.memory.idle.list, &w.waits);
	loop_deadline_clear(&w.memory.idle);
	http2_memory_on_deadline(&w.memory.idle);
}

static void test_an_idle_session_gives_back(void **state)
{
	(void)state;
	if (!has_slots())
		skip();
	assert_non_null(w.memory.frame);
	assert_int_equal((uintptr_t)w.memory.frame % 4096, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(say(), 17);
		assert_true(remembers());
		time_passes();
		assert_false(remembers());
	}
}

static void test_a_session_with_something_to_send_does_not(void **state)
{
	(void)state;
	if (!has_slots())
		skip();
	say();
	w.full = true;
	assert_int_equal(say(), 0);
	time_passes();
	assert_true(remembers());
	w.full = false;
	assert_int_equal(nghttp2_session_send(w.session), 0);
	assert_int_equal(w.sent, 34);
	time_passes();
	assert_false(remembers());
}

static void test_a_buffer_that_nothing_was_sent_from_does_not(void **state)
{
	(void)state;
	if (!has_slots())
		skip();
	w.unproven = true;
	say();
	http2_memory_sent(&w.memory, (const uint8_t *)"elsewhere");
	http2_memory_sent(&w.memory, w.memory.frame - 1);
	http2_memory_sent(&w.memory, w.memory.frame + w.memory.frame_n);
	time_passes();
	assert_true(remembers());
	w.unproven = false;
	say();
	time_passes();
	assert_false(remembers());
}

static void test_a_session_that_has_ended_does_not(void **state)
{
	(void)state;
	if (!has_slots())
		skip();
	say();
	nghttp2_session_terminate_session(w.session, NGHTTP2_NO_ERROR);
	nghttp2_session_send(w.session);
	memcpy(w.memory.frame, "pingpong", 8);
	time_passes();
	assert_true(remembers());
	nghttp2_session_del(w.session);
	w.session = NULL;
	http2_memory_on_deadline(&w.memory.idle);
	assert_null(w.memory.frame);
	http2_memory_idle(&w.memory, &w.waits); /* there is nothing to give back */
	assert_null(w.memory.idle.list);
}

/* --- the functions by themselves --- */

static void *ask(struct http2_memory *m, size_t n)
{
	void *p = m->functions.malloc(n, m->functions.mem_user_data);

	assert_non_null(p);
	memset(p, 0x5a, n);
	return p;
}

static void give(struct http2_memory *m, void *p)
{
	m->functions.free(p, m->functions.mem_user_data);
}

static void test_only_the_first_of_its_size(void **state)
{
	static const size_t others[] = {0, 1, 100, 4096, 16383, 20481, 65536};
	struct http2_memory m;
	void *first, *second;

	(void)state;
	http2_memory_init(&m, &w.session);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		void *p = m.functions.malloc(others[i], &m);

		assert_null(m.frame);
		give(&m, p);
	}
	first = ask(&m, FRAME);
	second = ask(&m, FRAME);
	assert_ptr_not_equal(second, m.frame);
	if (has_slots())
		assert_ptr_equal(first, m.frame);
	give(&m, first);
	assert_null(m.frame);
	first = ask(&m, FRAME); /* a session has one frame buffer in its life */
	assert_null(m.frame);
	give(&m, first);
	give(&m, second);
	give(&m, NULL);
}

static void test_another_size(void **state)
{
	static const size_t sizes[] = {10, FRAME - 1, FRAME, FRAME + 1, 40000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct http2_memory m;
		uint8_t *p;

		http2_memory_init(&m, &w.session);
		p = m.functions.realloc(NULL, FRAME, &m);
		assert_non_null(p);
		for (size_t k = 0; k < FRAME; k++)
			p[k] = (uint8_t)(k * 7);
		p = m.functions.realloc(p, sizes[i], &m);
		assert_non_null(p);
		assert_null(m.frame);
		for (size_t k = 0; k < FRAME && k < sizes[i]; k++)
			assert_int_equal(p[k], (uint8_t)(k * 7));
		p = m.functions.realloc(p, 2 * sizes[i], &m);
		assert_non_null(p);
		give(&m, p);
		p = m.functions.calloc(100, 3, &m);
		assert_memory_equal(p, (uint8_t[300]){0}, 300);
		give(&m, p);
	}
}

static void test_many(void **state)
{
	static struct http2_memory m[MANY];
	static uint8_t *p[MANY];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < MANY; i++) {
			http2_memory_init(&m[i], &w.session);
			p[i] = ask(&m[i], FRAME);
			memset(p[i], (int)i, FRAME);
		}
		/* Ends from both sides, and from the middle, so that arenas become free in turn. */
		for (size_t step = 0; step < MANY; step++) {
			size_t i = round == 0   ? step
			           : round == 1 ? MANY - 1 - step
			                        : step * 7 % MANY;

			for (size_t k = 0; k < FRAME; k += 511)
				assert_int_equal(p[i][k], (uint8_t)i);
			give(&m[i], p[i]);
			assert_null(m[i].frame);
			if (step % 50 == 0)
				http2_memory_release();
		}
	}
	http2_memory_release();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(test_an_idle_session_gives_back),
	        TEST(test_a_session_with_something_to_send_does_not),
	        TEST(test_a_buffer_that_nothing_was_sent_from_does_not),
	        TEST(test_a_session_that_has_ended_does_not),
	        TEST(test_only_the_first_of_its_size),
	        TEST(test_another_size),
	        TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
