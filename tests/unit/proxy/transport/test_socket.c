/* SPDX-License-Identifier: Apache-2.0 */
/* Links, plain and with TLS at both ends: every segmentation, back-pressure, both kinds of end,
 * resets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../tls/pair.h"
#include "proxy/transport/socket.h"
#include "tls/record/record.h"
#include "vethguard/base/clock.h"

struct end {
	struct socket socket;
	struct buf in;
	unsigned drained;
	enum socket_status last;
	bool deaf;
};

static struct {
	struct loop *loop;
	struct loop_timer stop;
	struct socket_shared shared;
	struct pair tls;
	struct end a, b, c;
} w;

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void pump(int ms)
{
	loop_timer_set(&w.stop, ms);
	loop_run(w.loop);
}

#define UNTIL(condition)                                             \
	do {                                                         \
		int64_t until_end = clock_monotonic_ms() + 30000;    \
		while (!(condition)) {                               \
			if (clock_monotonic_ms() > until_end)        \
				fail_msg("in vain: %s", #condition); \
			pump(1);                                     \
		}                                                    \
	} while (0)

static void take(struct end *e)
{
	static uint8_t bytes[SOCKET_CHUNK];
	size_t n;

	while (!e->deaf) {
		e->last = socket_read(&e->socket, bytes, sizeof(bytes), &n);
		if (e->last != SOCKET_OK)
			return;
		assert_int_equal(buf_append(&e->in, bytes, n), 0);
	}
}

static void on_event(struct socket *socket)
{
	take(container_of(socket, struct end, socket));
}

static void on_drained(struct socket *socket)
{
	container_of(socket, struct end, socket)->drained++;
}

static void end_open(struct end *e, int fd)
{
	memset(e, 0, sizeof(*e));
	e->last = SOCKET_AGAIN;
	buf_init(&e->in, 64u << 20);
	assert_int_equal(socket_open(&w.shared, &e->socket, fd, NULL, on_event, on_drained), 0);
}

static void end_close(struct end *e)
{
	socket_close(&e->socket, false);
	buf_fini(&e->in);
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	memset(&w, 0, sizeof(w));
	w.loop = loop_new();
	loop_timer_open(w.loop, &w.stop, on_stop);
	socket_shared_init(&w.shared, w.loop);
	pair_init(&w.tls);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	end_open(&w.a, pair[0]);
	end_open(&w.b, pair[1]);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	end_close(&w.a);
	end_close(&w.b);
	pair_fini(&w.tls);
	socket_shared_fini(&w.shared);
	loop_timer_close(&w.stop);
	loop_free(w.loop);
	return 0;
}

/* a becomes the client, b the server. */
static void start_tls(void)
{
	const struct ip none = {0};
	bool done_a = false, done_b = false;

	socket_start_tls(&w.a.socket,
	        tls_connect_new(
	                w.tls.client, SLICE("a.test"), &none, PAIR_ALPN, SLICE("k"), &w.shared.tx),
	        SLICE(""));
	socket_start_tls(
	        &w.b.socket, tls_accept_new(w.tls.server, PAIR_ALPN, &w.shared.tx), SLICE(""));
	w.a.deaf = w.b.deaf = true;
	for (int i = 0; i < 200 && !(done_a && done_b); i++) {
		done_a = socket_handshake(&w.a.socket) == SOCKET_OK;
		done_b = socket_handshake(&w.b.socket) == SOCKET_OK;
		pump(0);
		w.a.socket.readable = w.b.socket.readable = true;
	}
	assert_true(done_a && done_b);
	w.a.deaf = w.b.deaf = false;
	take(&w.a);
	take(&w.b);
}

static uint8_t *pattern(size_t n)
{
	uint8_t *p = malloc(n);

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 31 + i / 255);
	return p;
}

static void arrives(struct end *from, struct end *to, size_t n, size_t step)
{
	uint8_t *bytes = pattern(n);

	buf_consume(&to->in, to->in.len);
	for (size_t at = 0; at < n; at += step) {
		socket_write(&from->socket, bytes + at, n - at < step ? n - at : step);
		if (socket_unsent(&from->socket) >= SOCKET_HIGH)
			UNTIL(socket_unsent(&from->socket) < SOCKET_HIGH);
	}
	UNTIL(to->in.len >= n);
	assert_int_equal(to->in.len, n);
	assert_memory_equal(buf_bytes(&to->in), bytes, n);
	free(bytes);
}

static void test_bytes_arrive(void **state)
{
	const size_t steps[] = {1, 100, 4095, 4096, 16384, 16385, 60000};

	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
			arrives(&w.a, &w.b, steps[i] == 1 ? 5000 : 400000, steps[i]);
			arrives(&w.b, &w.a, steps[i] == 1 ? 5000 : 400000, steps[i]);
		}
		if (!tls)
			start_tls();
	}
}

/* Many small writes are few records: the shared stage joins them. */
static void test_small_writes_are_joined(void **state)
{
	uint64_t before;

	(void)state;
	start_tls();
	pump(5);
	before = w.a.socket.sent;
	for (int i = 0; i < 1000; i++)
		socket_write(&w.a.socket, "x", 1);
	UNTIL(w.b.in.len == 1000);
	assert_true(w.a.socket.sent - before < 1100);
}

/* One run of the flush task sends all that was written, through stage and TLS, and leaves no task
 * for another turn of the loop. */
static void test_one_task_sends_all(void **state)
{
	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		struct end *ends[] = {&w.a, &w.b, &w.a};

		for (size_t i = 0; i < 3; i++)
			socket_write(&ends[i]->socket, "text", 4);
		assert_true(list_has(&w.shared.flush.place));
		list_remove(&w.shared.flush.place);
		w.shared.flush.run(&w.shared.flush);
		assert_false(list_has(&w.shared.flush.place));
		assert_int_equal(socket_unsent(&w.a.socket) + socket_unsent(&w.b.socket), 0);
		UNTIL(w.a.in.len == 4 && w.b.in.len == 8);
		buf_consume(&w.a.in, 4);
		buf_consume(&w.b.in, 8);
		if (!tls)
			start_tls();
	}
	/* The next write adds the task again. */
	socket_write(&w.a.socket, "more", 4);
	assert_true(list_has(&w.shared.flush.place));
	UNTIL(w.b.in.len == 4);
}

/* Two sockets write in turn: each keeps its own order and bytes, though the buffers are shared. */
static void test_links_do_not_mix(void **state)
{
	int pair[2];
	char text[64];

	(void)state;
	start_tls();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	end_open(&w.c, pair[0]);
	for (int i = 0; i < 100; i++) {
		int n = snprintf(text, sizeof(text), "%04d", i);

		socket_write(&w.a.socket, text, (size_t)n);
		socket_write(&w.c.socket, text, (size_t)n);
		if (i % 7 == 0)
			socket_write_secret(&w.a.socket, text, (size_t)n);
		socket_write(&w.b.socket, text, (size_t)n);
	}
	UNTIL(w.b.in.len == 115 * 4 && w.a.in.len == 400);
	for (size_t i = 0, k = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "%04zu", i);
		assert_memory_equal(buf_bytes(&w.b.in) + 4 * k++, text, 4);
		if (i % 7 == 0)
			assert_memory_equal(buf_bytes(&w.b.in) + 4 * k++, text, 4);
		assert_memory_equal(buf_bytes(&w.a.in) + 4 * i, text, 4);
	}
	assert_int_equal(recv(pair[1], text, sizeof(text), MSG_DONTWAIT), sizeof(text));
	assert_memory_equal(text, "0000000100020003", 16);
	end_close(&w.c);
	close(pair[1]);
}

static void test_back_pressure(void **state)
{
	static uint8_t bytes[32768];

	(void)state;
	w.b.deaf = true;
	for (int i = 0; i < 100 && !socket_is_congested(&w.a.socket); i++) {
		socket_write(&w.a.socket, bytes, sizeof(bytes));
		socket_flush(&w.a.socket);
	}
	assert_true(socket_is_congested(&w.a.socket));
	assert_true(socket_unsent(&w.a.socket) >= SOCKET_HIGH &&
	            socket_unsent(&w.a.socket) < SOCKET_OUT_MAX);
	assert_int_equal(w.a.drained, 0);
	w.b.deaf = false;
	take(&w.b);
	UNTIL(w.a.drained == 1);
	assert_false(socket_is_congested(&w.a.socket));
	UNTIL(socket_unsent(&w.a.socket) == 0);
}

/* A writer that goes on although nothing is taken breaks its socket, and learns of it when
 * reading: no byte is lost silently. */
static void test_what_cannot_be_queued_breaks_the_link(void **state)
{
	static uint8_t bytes[65536];

	(void)state;
	w.b.deaf = true;
	for (int i = 0; i < 64; i++) {
		socket_write(&w.a.socket, bytes, sizeof(bytes));
		socket_flush(&w.a.socket);
	}
	assert_true(w.a.socket.broken);
	UNTIL(w.a.last == SOCKET_ERROR);
}

static void test_ends(void **state)
{
	(void)state;
	socket_write(&w.a.socket, "last", 4);
	socket_end(&w.a.socket);
	UNTIL(w.b.last == SOCKET_EOF);
	assert_int_equal(w.b.in.len, 4);
	assert_false(w.b.socket.truncated);
	arrives(&w.b, &w.a, 1000, 100); /* the other direction goes on */
}

/* The end comes in the same run of bytes as the last of the content, which fills it to the last
 * record. */
static void test_a_clean_tls_end_is_no_truncation(void **state)
{
	(void)state;
	start_tls();
	for (size_t k = 0; k < 3; k++) { /* asked again, it says the same */
		if (k == 0) {
			socket_write(&w.a.socket, "last", 4);
			socket_end(&w.a.socket);
		}
		UNTIL(w.b.last == SOCKET_EOF);
		assert_int_equal(w.b.in.len, 4);
		assert_false(w.b.socket.truncated);
		take(&w.b);
		assert_int_equal(w.b.last, SOCKET_EOF);
	}
}

static void test_a_tls_end_without_close_notify(void **state)
{
	(void)state;
	start_tls();
	socket_write(&w.a.socket, "part", 4);
	socket_flush(&w.a.socket);
	shutdown(w.a.socket.fd, SHUT_WR);
	UNTIL(w.b.last == SOCKET_EOF);
	assert_int_equal(w.b.in.len, 4);
	assert_true(w.b.socket.truncated);
}

static void test_garbage_instead_of_tls(void **state)
{
	(void)state;
	start_tls();
	assert_int_equal(send(w.a.socket.fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
	UNTIL(w.b.last == SOCKET_ERROR);
}

/* A writable event between the asking for the end and its sending: nothing that still waits may be
 * lost. */
static void test_an_end_waits_for_what_was_written(void **state)
{
	(void)state;
	socket_write(&w.a.socket, "all of it", 9);
	socket_end(&w.a.socket);
	w.a.socket.io.on_ready(&w.a.socket.io, LOOP_WRITE);
	UNTIL(w.b.last == SOCKET_EOF);
	assert_int_equal(w.b.in.len, 9);
	assert_false(w.a.socket.broken);
}

/* The owner hears when a socket that was to end has sent all it had. */
static void test_the_end_of_a_full_link_is_told(void **state)
{
	static uint8_t bytes[65536];
	unsigned n = 0;

	(void)state;
	w.b.deaf = true;
	for (; n < 100 && !socket_is_congested(&w.a.socket); n++) {
		socket_write(&w.a.socket, bytes, sizeof(bytes));
		socket_flush(&w.a.socket);
	}
	socket_end(&w.a.socket);
	w.b.deaf = false;
	take(&w.b);
	UNTIL(socket_unsent(&w.a.socket) == 0 && w.b.last == SOCKET_EOF);
	assert_true(w.a.drained >= 1);
	assert_int_equal(w.b.in.len, n * sizeof(bytes));
}

/* A run of bytes ends with a record of which the reader's room took only a part: the rest needs no
 * further byte. */
/* Reading sends nothing of what another socket has queued. */
static void test_reading_claims_no_output(void **state)
{
	static const uint8_t later[20000];
	size_t unsent;

	(void)state;
	start_tls();
	arrives(&w.a, &w.b, 1, 1);
	arrives(&w.b, &w.a, 1, 1);
	w.b.deaf = true;
	socket_write(&w.b.socket, "from b", 6);
	socket_flush(&w.b.socket);
	socket_write(&w.b.socket, later, sizeof(later));
	unsent = socket_unsent(&w.b.socket);
	assert_true(unsent >= sizeof(later));
	buf_consume(&w.a.in, w.a.in.len);
	w.a.socket.readable = true;
	take(&w.a);
	assert_int_equal(w.a.in.len, 6);
	assert_int_equal(socket_unsent(&w.b.socket), unsent);
	UNTIL(w.a.in.len == 6 + sizeof(later));
}

/* What TLS writes while it reads (here new keys, which the peer has asked for) leaves before what
 * is written later, whoever has the output meanwhile. */
static void test_an_answer_while_reading(void **state)
{
	static const uint8_t update[] = {24, 0, 0, 1, 1}; /* KeyUpdate, update_requested */
	struct record_layer *layer;
	struct buf out;

	(void)state;
	start_tls();
	arrives(&w.a, &w.b, 1, 1);
	arrives(&w.b, &w.a, 1, 1);
	arrives(&w.a, &w.b, 1, 1);
	layer = w.a.socket.tls->layer;
	assert_null(w.a.socket.tls->ssl);
	assert_null(w.b.socket.tls->ssl);
	buf_init(&out, 1000);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(
		        record_seal(layer, RECORD_HANDSHAKE, update, sizeof(update), &out), 0);
		assert_true(record_keys_update(layer, &layer->writing));
		assert_int_equal(send(w.a.socket.fd, buf_bytes(&out), out.len, 0), out.len);
		buf_consume(&out, out.len);
		socket_write(&w.a.socket, "x", 1); /* a has the output when b reads */
		w.b.socket.readable = true;
		take(&w.b);
		assert_int_equal(w.shared.answer.len, 0);
		arrives(&w.b, &w.a, 20000, 700);
		UNTIL(w.b.in.len > 0);
		buf_consume(&w.b.in, w.b.in.len);
	}
	assert_int_equal(
	        w.a.socket.tls->layer->reading.sequence, w.b.socket.tls->layer->writing.sequence);
	buf_fini(&out);
}

static void test_the_rest_of_a_record_is_read(void **state)
{
	const size_t record = 15000, count = 5;
	uint8_t *bytes = pattern(record);
	static uint8_t out[SOCKET_CHUNK];
	size_t total = 0, n;

	(void)state;
	start_tls();
	w.b.deaf = true;
	/* The first record in two parts, so that its beginning waits inside OpenSSL when the others
	 * come in one run. */
	for (size_t i = 0; i < count; i++)
		socket_write(&w.a.socket, bytes, record);
	w.a.socket.writable = false;
	socket_flush(&w.a.socket);
	assert_int_equal(send(w.a.socket.fd, buf_bytes(&w.a.socket.out), 12000, 0), 12000);
	w.b.socket.readable = true;
	assert_int_equal(socket_read(&w.b.socket, out, sizeof(out), &n), SOCKET_AGAIN);
	w.b.socket.readable = true;
	for (size_t at = 12000; at < w.a.socket.out.len;) {
		ssize_t r = send(
		        w.a.socket.fd, buf_bytes(&w.a.socket.out) + at, w.a.socket.out.len - at, 0);

		assert_true(r > 0);
		at += (size_t)r;
	}
	buf_consume(&w.a.socket.out, w.a.socket.out.len);
	for (int i = 0; i < 8; i++)
		if (socket_read(&w.b.socket, out, sizeof(out), &n) == SOCKET_OK)
			total += n;
	assert_int_equal(total, record * count);
	free(bytes);
}

/* Both ends anew, over TCP. */
static void over_tcp(struct end *from, struct end *to)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(sin);
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0),
	    one = 1;

	/* Accepted ones inherit it: what is sent leaves at once, before a reset too. */
	setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	assert_int_equal(bind(listener, (struct sockaddr *)&sin, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&sin, &n);
	assert_int_equal(connect(client, (struct sockaddr *)&sin, n), 0);
	end_close(to);
	end_open(to, accept4(listener, NULL, NULL, SOCK_NONBLOCK));
	end_close(from);
	end_open(from, client);
	close(listener);
}

static void test_reset(void **state)
{
	(void)state;
	over_tcp(&w.a, &w.c);
	socket_write(&w.a.socket, "x", 1);
	socket_flush(&w.a.socket);
	UNTIL(w.c.in.len == 1);
	socket_close(&w.a.socket, true);
	UNTIL(w.c.last == SOCKET_ERROR);
	socket_write(&w.c.socket, "y", 1);
	socket_end(&w.c.socket);
	pump(2);
	end_close(&w.c);
}

#define LAST_WORDS 20000

/* b says something and is gone before a has read any of it; then a sends, in vain. */
static void go_unread(bool tls, bool politely, bool reads_on)
{
	uint8_t *bytes = pattern(LAST_WORDS);

	over_tcp(&w.a, &w.b);
	if (tls)
		start_tls();
	w.a.socket.reads_on = reads_on;
	w.a.deaf = true;
	socket_write(&w.b.socket, bytes, LAST_WORDS);
	if (politely)
		socket_end(&w.b.socket);
	socket_flush(&w.b.socket);
	socket_close(&w.b.socket, !politely);
	for (int i = 0; i < 2 && !w.a.socket.broken; i++) { /* the answer to the first is a reset */
		socket_write(&w.a.socket, bytes, 1);
		socket_flush(&w.a.socket);
	}
	assert_true(w.a.socket.broken);
	free(bytes);
}

/* Sending fails before the received bytes were read: they are still there, and no clean end
 * follows. */
static void test_what_came_before_a_reset_is_read(void **state)
{
	uint8_t *bytes = pattern(LAST_WORDS);

	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		go_unread(tls, false, true);
		w.a.deaf = false;
		UNTIL(w.a.last != SOCKET_AGAIN);
		assert_int_equal(w.a.last, SOCKET_ERROR);
		assert_int_equal(w.a.in.len, LAST_WORDS);
		assert_memory_equal(buf_bytes(&w.a.in), bytes, LAST_WORDS);
		take(&w.a);
		assert_int_equal(w.a.last, SOCKET_ERROR);
		socket_write(&w.a.socket, "more", 4);
		assert_int_equal(socket_unsent(&w.a.socket), 0);
	}
	free(bytes);
}

/* A FIN that had come before the reset is an end. */
static void test_what_came_before_an_end_and_a_reset_is_read(void **state)
{
	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		go_unread(tls, true, true);
		w.a.deaf = false;
		UNTIL(w.a.last != SOCKET_AGAIN);
		assert_int_equal(w.a.last, SOCKET_EOF);
		assert_false(w.a.socket.truncated);
		assert_int_equal(w.a.in.len, LAST_WORDS);
	}
}

/* An owner that does not ask for it learns at once that the peer is gone. */
static void test_a_link_that_does_not_read_on(void **state)
{
	(void)state;
	go_unread(false, false, false);
	w.a.deaf = false;
	UNTIL(w.a.last != SOCKET_AGAIN);
	assert_int_equal(w.a.last, SOCKET_ERROR);
	assert_int_equal(w.a.in.len, 0);
}

static void test_a_closed_link_is_harmless(void **state)
{
	uint8_t out[SOCKET_RECORD];
	size_t n;

	(void)state;
	socket_close(&w.a.socket, false);
	socket_close(&w.a.socket, true);
	socket_write(&w.a.socket, "x", 1);
	socket_write_secret(&w.a.socket, "x", 1);
	socket_end(&w.a.socket);
	socket_flush(&w.a.socket);
	assert_int_equal(socket_read(&w.a.socket, out, sizeof(out), &n), SOCKET_ERROR);
	assert_int_equal(n, 0);
	pump(1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(test_bytes_arrive),
	        TEST(test_small_writes_are_joined),
	        TEST(test_one_task_sends_all),
	        TEST(test_links_do_not_mix),
	        TEST(test_back_pressure),
	        TEST(test_what_cannot_be_queued_breaks_the_link),
	        TEST(test_ends),
	        TEST(test_a_clean_tls_end_is_no_truncation),
	        TEST(test_a_tls_end_without_close_notify),
	        TEST(test_garbage_instead_of_tls),
	        TEST(test_an_end_waits_for_what_was_written),
	        TEST(test_the_end_of_a_full_link_is_told),
	        TEST(test_reading_claims_no_output),
	        TEST(test_an_answer_while_reading),
	        TEST(test_the_rest_of_a_record_is_read),
	        TEST(test_reset),
	        TEST(test_what_came_before_a_reset_is_read),
	        TEST(test_what_came_before_an_end_and_a_reset_is_read),
	        TEST(test_a_link_that_does_not_read_on),
	        TEST(test_a_closed_link_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
